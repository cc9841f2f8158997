/* SPDX-License-Identifier: MIT */
/* What a recording is made of, for whoever reads one. Data only. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "output/profile/profile.h"
#include "sampler/sample.h"

/* A sample of a recording. Indices count definitions since the last reset, from 0. */
struct recorded_sample {
	uint64_t time_ns; /* CLOCK_REALTIME, of the tick; a multiple of 1000 */
	uint64_t wall_ns; /* the same unit */
	uint64_t cpu_ns;
	uint32_t thread;
	uint32_t node;	/* PROFILE_NONE: no Python frame */
	uint32_t flags; /* enum sample_flags */
};

/* What a recording is made of, in the order of the file. A negative errno ends the reading. */
struct recording_ops {
	/* The next process, thread (of that process), function, node; borrowed during the call. */
	int (*process)(void *context, pid_t pid, const char *command_line);
	int (*thread)(void *context, uint32_t process, const struct profile_thread *thread);
	int (*function)(void *context, const struct function *function);
	/* parent is PROFILE_NONE for outermost frames; line is the executing one. */
	int (*node)(void *context, uint32_t parent, uint32_t function, int32_t line);

	/* A thread has another name now. */
	int (*renamed)(void *context, uint32_t thread, const char *name);
	int (*sample)(void *context, const struct recorded_sample *sample);

	/* Functions and nodes are numbered from 0 again; threads and processes go on. */
	int (*reset)(void *context);
};
