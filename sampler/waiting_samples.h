/* SPDX-License-Identifier: MIT */
/*
 * The samples with C frames of threads that wait. A thread that has not been given a processor
 * since it was looked at is where it was: its last sample is handed on again, which takes a quarter
 * of the time of a look. That is a proof, not a guess by content or time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/process.h"
#include "sampler/sample.h"

/*
 * For so long at most: then a thread is looked at again, as code that is made at run time may have
 * got its name.
 */
#define WAITING_SAMPLES_MAX_AGE_NS 1000000000u

/* Of more frames nothing is kept. */
#define WAITING_SAMPLES_MAX_FRAMES 1024

/* What one thread was last seen to do. */
struct waiting_sample {
	struct frame *frames;	      /* owned; outermost first */
	struct frame_detail *details; /* owned; one for each */
	uint32_t nr_frames, max_frames, max_details;
	uint32_t flags;	    /* enum sample_flags */
	uint32_t thread_id; /* sample_thread.id */
	uint64_t nr_runs;   /* as task_read_runs() has told; 0: nothing is kept */
	bool has_runs;
	int runs_fd;	   /* if it has, to read that again (procmem/task_runs.h); owned */
	uint64_t until_ns; /* it is looked at again then */
};

/* Of all threads. Zero-initialised it has none. Private. */
struct waiting_samples {
	struct sample_sink sink;
	uint64_t nr_runs;
	struct sample_sink *next;
	struct waiting_sample *threads; /* by slot */
	uint32_t max_threads;
};

void waiting_samples_done(struct waiting_samples *samples);

/*
 * The sink that keeps a sample of a thread, which had been given a processor nr_runs times before
 * it waited all the time while that was read, and hands it on to next, borrowed. Nothing is kept
 * where nr_runs is 0: it is not told.
 */
struct sample_sink *waiting_samples_keep(struct waiting_samples *samples, uint64_t nr_runs,
					 struct sample_sink *next);

/*
 * How often a thread of process has been given a processor; 0: it is not told. It costs a
 * microsecond where something was kept of the thread, else six.
 */
uint64_t waiting_samples_read_runs(struct waiting_samples *samples, const struct process *process,
				   const struct sample_thread *thread);

/*
 * What is kept of a thread, if it has been given a processor as often by now; else NULL. Borrowed
 * until a sample is kept.
 */
const struct waiting_sample *waiting_samples_find(struct waiting_samples *samples,
						  const struct sample_thread *thread,
						  uint64_t nr_runs, uint64_t now_ns);

/* It as a sample of time_ns, for sampler_thread_tell(). Borrowed like what is kept. */
struct sample waiting_sample_at(const struct waiting_sample *kept, uint64_t time_ns);
