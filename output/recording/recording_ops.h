/* SPDX-License-Identifier: MIT */
/* The callbacks for the items of a recording, which are called in file order. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "output/profile/profile.h"
#include "sampler/sample.h"

/*
 * A sample of a recording. thread counts all threads from 0, node the nodes since the last reset.
 */
struct recorded_sample {
	uint64_t time_ns; /* CLOCK_REALTIME of the tick; a multiple of 1000 */
	uint64_t wall_ns; /* also a multiple of 1000 */
	uint64_t cpu_ns;
	uint32_t thread;
	uint32_t node;	/* PROFILE_NONE: no frames */
	uint32_t flags; /* enum sample_flags */
};

/*
 * Called for each item of a recording in file order. A negative errno ends the reading. Items
 * whose function is NULL are skipped.
 */
struct recording_ops {
	/*
	 * Define the next process, thread (in that process), function or node. Arguments are
	 * borrowed during the call. Unknown strings of a process are "", and its start_ns is in
	 * CLOCK_REALTIME.
	 */
	int (*process)(void *context, const struct process_info *process);
	int (*thread)(void *context, uint32_t process, const struct profile_thread *thread);
	int (*function)(void *context, const struct function *function);
	/* The parent of outermost frames is PROFILE_NONE; line is the executing one. */
	int (*node)(void *context, uint32_t parent, uint32_t function, int32_t line);

	/* A process has ended, at end_ns of CLOCK_REALTIME. */
	int (*process_ended)(void *context, uint32_t process, uint64_t end_ns);

	/* A thread changed its name. */
	int (*renamed)(void *context, uint32_t thread, const char *name);
	int (*sample)(void *context, const struct recorded_sample *sample);

	/* Functions and nodes are numbered from 0 again; threads and processes continue. */
	int (*reset)(void *context);
};
