/* SPDX-License-Identifier: MIT */
/*
 * A profile numbered as the page's data need it (docs/formats.md): strings, functions with the
 * roots of threads, ticks, and each thread's samples by time.
 */
#pragma once

#include <stdint.h>

#include "output/artefact.h"
#include "output/profile/origin.h"
#include "output/tables/string_table.h"
#include "output/text/text.h"

/* A function; after all of them the roots of threads, in the order of their frames. */
struct page_function {
	uint32_t name, path; /* numbers in strings */
	int32_t first_line;
	enum function_kind kind;
	enum origin origin;
};

struct page_index {
	const struct profile *profile; /* borrowed */

	uint32_t *frames;   /* owned; frames that have nodes, in the order of their first nodes */
	uint32_t *frame_of; /* owned; place in frames, by the profile's index */
	uint32_t nr_frames;

	struct string_table strings;
	struct text root_names;		 /* names of the threads' roots, each terminated */
	struct page_function *functions; /* owned */
	uint32_t nr_functions;

	uint64_t start_us;  /* time 0 of the page, in CLOCK_REALTIME */
	uint64_t *ticks_us; /* owned; distinct times of samples since start_us, ascending */
	uint32_t nr_ticks;

	/* The stacks of samples, as node + 1, or 0 without a node; most frequent first. */
	uint32_t *stacks; /* owned */
	uint32_t nr_stacks;
	uint32_t *stack_of; /* owned; by node + 1 */

	/* The samples thread by thread, by time; owned. */
	uint32_t *samples;	/* their indices in the profile */
	uint32_t *first_sample; /* start of each group in samples, and the end */
	uint32_t nr_groups;	/* a group for each thread, and one for samples without a thread */
};

/*
 * Number an artefact's profile, which is borrowed and must keep its samples. Returns 0 or
 * -ENOMEM, with nothing to free.
 */
int page_index_init(struct page_index *index, const struct artefact *artefact);
void page_index_done(struct page_index *index);

/* Returns the index of a sample's stack in stacks. */
uint32_t page_index_stack(const struct page_index *index, const struct profile_sample *sample);

/* Returns the time of a sample since start_us. */
uint64_t page_index_time_us(const struct page_index *index, const struct profile_sample *sample);

/* Returns the tick of a sample's time. Fast if it is at hint or shortly after. */
uint32_t page_index_tick(const struct page_index *index, uint64_t time_us, uint32_t hint);
