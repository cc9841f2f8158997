/* SPDX-License-Identifier: MIT */
/*
 * The mean time slice of threads: the CPU time that they get each time they are switched in. Some
 * threads at a time are measured, from one moment to another.
 *
 * Source: proc_pid_schedstat(5), of which the first number is a thread's CPU time and the last how
 * often it was switched in.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "procmem/process.h"

enum { TIME_SLICES_MAX_THREADS = 16 };

struct time_slices {
	struct {
		pid_t tid;
		uint64_t used_ns, nr_runs;
	} threads[TIME_SLICES_MAX_THREADS];
	uint32_t nr_threads;
};

/* Returned by time_slices_end() if the threads were switched in too seldom. */
#define TIME_SLICES_UNKNOWN UINT64_MAX

/*
 * Begin to measure thread tid, an id in our PID namespace, unless it cannot be read or there is no
 * room. Reads a file.
 */
void time_slices_begin(struct time_slices *slices, const struct process *process, pid_t tid);

/*
 * End it. Returns the mean time slice in ns of all threads that were measured, provided that they
 * were switched in at least least_runs times, together.
 */
uint64_t time_slices_end(struct time_slices *slices, const struct process *process,
			 uint64_t least_runs);
