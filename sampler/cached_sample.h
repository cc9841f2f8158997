/* SPDX-License-Identifier: MIT */
/*
 * The last sample with C frames of a waiting thread. If the thread has not been switched in
 * since, it is where it was, and the sample is emitted again without a look. The kernel's count
 * proves that, not the sample's content or age.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/process.h"
#include "sampler/sample.h"

/*
 * Maximum age of a cached sample. After that the thread is looked at again, because its run-time
 * code may have been named meanwhile.
 */
#define CACHED_SAMPLE_MAX_AGE_NS 1000000000u

/* Stacks with more frames are not cached. */
#define CACHED_SAMPLE_MAX_FRAMES 1024

/* Private. All zero: nothing is cached. */
struct cached_sample {
	struct frame *frames; /* owned; outermost first */
	uint32_t nr_frames, max_frames;
	uint32_t flags;	  /* enum sample_flags */
	uint64_t nr_runs; /* from run_count_read_once(); 0: nothing is cached */
	bool has_runs;
	int runs_fd; /* valid if has_runs; re-reads the count (procmem/sched/run_count.h); owned */
	uint64_t expires_ns; /* when the thread has to be looked at again */
};

/* Free what is cached of a thread, so that another one may take its place. */
void cached_sample_done(struct cached_sample *cached);

/*
 * Cache a sample of the thread, which had been switched in nr_runs times before it was read, and
 * waited throughout. Caches nothing if nr_runs is 0: unknown. Returns 0 or -ENOMEM.
 */
int cached_sample_store(struct cached_sample *cached, uint64_t nr_runs,
			const struct sample *sample);

/*
 * How often the thread, tid of process, was switched in; 0: unknown. Takes 1 µs if a sample of
 * the thread is cached, and otherwise 6 µs.
 */
uint64_t cached_sample_read_runs(struct cached_sample *cached, const struct process *process,
				 pid_t tid);

/*
 * Get the cached sample, with time_ns and without details, for sampler_thread_send(). Its frames
 * are borrowed until another one is cached. Returns false if none is cached, the thread was
 * switched in since, or the sample is too old.
 */
bool cached_sample_get(const struct cached_sample *cached, uint64_t nr_runs, uint64_t time_ns,
		       struct sample *ret_sample);
