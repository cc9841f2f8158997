/* SPDX-License-Identifier: MIT */
/*
 * The kept samples of a profile thread by thread, for the formats that have a table for each
 * thread. A profile keeps them by time over all threads of a recording, and one recording
 * after the other.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "output/profile/label.h"
#include "output/profile/profile.h"
#include "output/text/text.h"

/* One thread that has samples. */
struct thread_slice {
	uint32_t thread;	 /* index into threads; PROFILE_NONE for those without a row */
	uint32_t first, end;	 /* its samples are order[first, end), by time */
	uint64_t cpu_ns;	 /* all of them together */
	uint64_t with_frames_ns; /* the weights of those with Python frames */
};

/* All zero it is empty. */
struct thread_samples {
	uint32_t *order;	     /* owned; indices into samples */
	struct thread_slice *slices; /* owned; by process, the main thread first */
	uint32_t nr_slices;
	uint32_t busiest;  /* index into slices: most CPU time if it was measured, else most
			    time with Python frames; 0 if there are none */
	uint64_t start_ns; /* where the first sample's time begins; 0 if there are none */
	uint64_t end_ns;   /* the time of the last one */
};

/*
 * Sort the samples of a profile, which is borrowed by nothing afterwards; 4 bytes a sample.
 * 0 or -ENOMEM, and samples are empty then.
 */
int thread_samples_init(struct thread_samples *samples, const struct profile *profile);

/* Free what they hold; they are empty then. */
void thread_samples_done(struct thread_samples *samples);

/* Where a sample's time begins: its own, less what it weighs in wall time. */
uint64_t thread_samples_begin_ns(const struct profile_sample *sample);

/* The process of a thread's row, PROFILE_NONE among them; NULL if it is not known. */
const struct profile_process *thread_samples_process(const struct profile *profile,
						     uint32_t thread);

/*
 * The node whose stack is the sample's: PROFILE_NONE if it has no Python frame, be it the
 * root of its thread.
 */
uint32_t thread_samples_node(const struct profile *profile, uint32_t node);

/* What a thread is called: "MainThread", what its number makes of one without a name. */
void thread_samples_name(struct text *text, const struct profile *profile, uint32_t thread);
