/* SPDX-License-Identifier: MIT */
/*
 * The kept samples of a profile by thread, for the formats that have a table for each thread. The
 * profile itself keeps them in time order across threads, one recording after the other.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "output/profile/label.h"
#include "output/profile/profile.h"
#include "output/text/text.h"

/* One thread that has samples. */
struct thread_slice {
	uint32_t thread;	 /* index into threads; PROFILE_NONE for threads without a row */
	uint32_t first, end;	 /* its samples are order[first, end), by time */
	uint64_t cpu_ns;	 /* sum over its samples */
	uint64_t with_frames_ns; /* weight of the samples with Python frames */
};

/* Empty when all zero. */
struct thread_samples {
	uint32_t *order;	     /* owned; indices into samples */
	struct thread_slice *slices; /* owned; by process, the main thread first */
	uint32_t nr_slices;
	/*
	 * Index into slices: the thread with the most CPU time if that was measured, else with
	 * the most time in Python frames; 0 if there are none.
	 */
	uint32_t busiest;
	uint64_t start_ns; /* start of the first sample; 0 if there are none */
	uint64_t end_ns;   /* time of the last one */
};

/*
 * Sort the samples of a profile, in 4 bytes a sample. profile is not needed afterwards. Returns
 * 0, or -ENOMEM with samples empty.
 */
int thread_samples_init(struct thread_samples *samples, const struct profile *profile);

/* Free the tables and empty samples. */
void thread_samples_done(struct thread_samples *samples);

/* Returns where a sample's time begins: its time less its wall time. */
uint64_t thread_samples_begin_ns(const struct profile_sample *sample);

/* Returns the process of a thread's row; NULL if it is unknown or thread is PROFILE_NONE. */
const struct profile_process *thread_samples_process(const struct profile *profile,
						     uint32_t thread);

/*
 * Returns the node of a sample's stack: PROFILE_NONE if it has no frames, even if node is the root
 * of its thread.
 */
uint32_t thread_samples_node(const struct profile *profile, uint32_t node);

/* Append a thread's name, such as "MainThread", or "thread TID" if it has none. */
void thread_samples_name(struct text *text, const struct profile *profile, uint32_t thread);
