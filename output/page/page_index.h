/* SPDX-License-Identifier: MIT */
/*
 * A profile as the page's data number it (docs/formats.md): strings, functions with the roots
 * of threads among them, ticks, and each thread's samples by time.
 */
#pragma once

#include <stdint.h>

#include "output/artefact.h"
#include "output/profile/origin.h"
#include "output/text/string_table.h"
#include "output/text/text.h"

/* A function, or behind all of them the root of a thread, in the order of the frames. */
struct page_function {
	uint32_t name, path; /* numbers of strings */
	int32_t first_line;
	enum function_kind kind;
	enum origin origin;
};

struct page_index {
	const struct profile *profile; /* borrowed */

	uint32_t *frames;   /* owned; the frames that nodes have, in the order of the first ones */
	uint32_t *frame_of; /* owned; by the profile's index, the place there */
	uint32_t nr_frames;

	struct string_table strings;
	struct text root_names;		 /* what the threads' roots are called, each terminated */
	struct page_function *functions; /* owned */
	uint32_t nr_functions;

	uint64_t start_us;  /* time 0 of the page, CLOCK_REALTIME */
	uint64_t *ticks_us; /* owned; the times of the samples since then, ascending, each once */
	uint32_t nr_ticks;

	/* Where samples were, as node + 1, 0 without a node; the most frequent first. */
	uint32_t *stacks; /* owned */
	uint32_t nr_stacks;
	uint32_t *stack_of; /* owned; by node + 1 */

	/* The samples of one thread after the other, by time; owned. */
	uint32_t *samples;	/* their indices */
	uint32_t *first_sample; /* of each thread in samples, of those of none, and the end */
	uint32_t nr_groups;	/* threads and one */
};

/*
 * Number what is in the artefact's profile, which is borrowed and has its samples. 0, or
 * -ENOMEM; then there is nothing to be done.
 */
int page_index_init(struct page_index *index, const struct artefact *artefact);
void page_index_done(struct page_index *index);

/* The number of a sample's stack in stacks. */
uint32_t page_index_stack(const struct page_index *index, const struct profile_sample *sample);

/* When a sample was taken, since time 0. */
uint64_t page_index_time_us(const struct page_index *index, const struct profile_sample *sample);

/* The tick of a time that a sample has; fast if it is not far behind the tick at hint. */
uint32_t page_index_tick(const struct page_index *index, uint64_t time_us, uint32_t hint);
