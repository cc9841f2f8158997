/* SPDX-License-Identifier: MIT */
#include "sampler/time_slices.h"

#include <stdbool.h>

#include "procmem/sched/cpu_clock.h"
#include "procmem/sched/thread_stat.h"

static bool read_schedstat(const struct process *process, pid_t tid, uint64_t *ret_used_ns,
			   uint64_t *ret_nr_runs)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	char text[THREAD_SCHEDSTAT_MAX_BYTES];
	ssize_t length;

	process_thread_path(name, tid, "schedstat");
	length = process_read_file(process, name, text, sizeof(text));
	return length >= 0 && !cpu_clock_parse(text, (size_t)length, ret_used_ns) &&
	       !thread_schedstat_parse(text, ret_nr_runs);
}

void time_slices_begin(struct time_slices *slices, const struct process *process, pid_t tid)
{
	uint64_t used_ns, nr_runs;

	if (slices->nr_threads == TIME_SLICES_MAX_THREADS ||
	    !read_schedstat(process, tid, &used_ns, &nr_runs))
		return;
	slices->threads[slices->nr_threads].tid = tid;
	slices->threads[slices->nr_threads].used_ns = used_ns;
	slices->threads[slices->nr_threads].nr_runs = nr_runs;
	slices->nr_threads++;
}

uint64_t time_slices_end(struct time_slices *slices, const struct process *process,
			 uint64_t least_runs)
{
	uint64_t sum_ns = 0, nr = 0;

	for (uint32_t i = 0; i < slices->nr_threads; i++) {
		uint64_t used_ns, nr_runs;

		/* Smaller numbers are those of another thread, which has the id by now. */
		if (!read_schedstat(process, slices->threads[i].tid, &used_ns, &nr_runs) ||
		    used_ns < slices->threads[i].used_ns || nr_runs < slices->threads[i].nr_runs)
			continue;
		sum_ns += used_ns - slices->threads[i].used_ns;
		nr += nr_runs - slices->threads[i].nr_runs;
	}
	slices->nr_threads = 0;
	return !nr || nr < least_runs ? TIME_SLICES_UNKNOWN : sum_ns / nr;
}
