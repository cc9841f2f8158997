/* SPDX-License-Identifier: MIT */
/*
 * The last sample with C frames of a waiting thread. A thread that got no processor since its
 * last look is where it was, so its last sample is emitted again, in a quarter of the time of a
 * look. That is a proof, not a guess by content or time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/process.h"
#include "sampler/sample.h"

/*
 * Maximum age of a kept sample. Then the thread is looked at again, since run-time code may have
 * got its name.
 */
#define WAITING_SAMPLE_MAX_AGE_NS 1000000000u

/* Stacks with more frames are not kept. */
#define WAITING_SAMPLE_MAX_FRAMES 1024

/* Private. All zero: nothing is kept. */
struct waiting_sample {
	struct frame *frames;	      /* owned; outermost first */
	struct frame_detail *details; /* owned; one per frame */
	uint32_t nr_frames, max_frames, max_details;
	uint32_t flags;	  /* enum sample_flags */
	uint64_t nr_runs; /* from task_read_runs(); 0: nothing is kept */
	bool has_runs;
	int runs_fd; /* valid if has_runs; re-reads the count (procmem/sched/task_runs.h); owned */
	uint64_t until_ns; /* when the thread has to be looked at again */
};

/* Free what is kept of a thread, so that another one may take its place. */
void waiting_sample_done(struct waiting_sample *kept);

/*
 * Keep a sample of the thread, which had got a processor nr_runs times before it was read, and
 * waited throughout. Keeps nothing if nr_runs is 0: unknown. Returns 0 or -ENOMEM.
 */
int waiting_sample_keep(struct waiting_sample *kept, uint64_t nr_runs, const struct sample *sample);

/*
 * How often the thread, tid of process, got a processor; 0: unknown. Takes 1 µs if a sample of
 * the thread is kept, and otherwise 6 µs.
 */
uint64_t waiting_sample_read_runs(struct waiting_sample *kept, const struct process *process,
				  pid_t tid);

/*
 * Get the kept sample, with time_ns, for sampler_thread_send(). Its frames are borrowed until
 * another one is kept. Returns false if nothing is kept, the thread got a processor since, or the
 * sample is too old.
 */
bool waiting_sample_at(const struct waiting_sample *kept, uint64_t nr_runs, uint64_t time_ns,
		       struct sample *ret_sample);
