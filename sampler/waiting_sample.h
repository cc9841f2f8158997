/* SPDX-License-Identifier: MIT */
/*
 * The last sample with C frames of a thread that waits. A thread that has not been given a
 * processor since it was looked at is where it was: its last sample is handed on again, which takes
 * a quarter of the time of a look. That is a proof, not a guess by content or time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/process.h"
#include "sampler/sample.h"

/*
 * A sample is kept for so long at most: then the thread is looked at again, as code that is made at
 * run time may have got its name.
 */
#define WAITING_SAMPLE_MAX_AGE_NS 1000000000u

/* Nothing is kept of a stack with more frames. */
#define WAITING_SAMPLE_MAX_FRAMES 1024

/* Private. All zero nothing is kept. */
struct waiting_sample {
	struct frame *frames;	      /* owned; outermost first */
	struct frame_detail *details; /* owned; one for each */
	uint32_t nr_frames, max_frames, max_details;
	uint32_t flags;	  /* enum sample_flags */
	uint64_t nr_runs; /* as task_read_runs() has told; 0: nothing is kept */
	bool has_runs;
	int runs_fd;	   /* if it has, to read that again (procmem/sched/task_runs.h); owned */
	uint64_t until_ns; /* the thread is looked at again then */
};

/* Free what is kept of a thread; another one may have its place then. */
void waiting_sample_done(struct waiting_sample *kept);

/*
 * Keep a sample of the thread, which had been given a processor nr_runs times before it waited all
 * the time while that was read. Nothing is kept where nr_runs is 0: it is not told. 0 or -ENOMEM.
 */
int waiting_sample_keep(struct waiting_sample *kept, uint64_t nr_runs, const struct sample *sample);

/*
 * How often the thread, tid of process, has been given a processor; 0: it is not told. It costs a
 * microsecond where something is kept of the thread, else six.
 */
uint64_t waiting_sample_read_runs(struct waiting_sample *kept, const struct process *process,
				  pid_t tid);

/*
 * What is kept as a sample of time_ns, for sampler_thread_tell(); its frames are borrowed until
 * another one is kept. False: nothing is, the thread has been given a processor since, or it is too
 * old.
 */
bool waiting_sample_at(const struct waiting_sample *kept, uint64_t nr_runs, uint64_t time_ns,
		       struct sample *ret_sample);
