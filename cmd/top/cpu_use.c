/* SPDX-License-Identifier: MIT */
#include "cmd/top/cpu_use.h"

#include <stdlib.h>
#include <time.h>

#include "procmem/array.h"
#include "procmem/clock.h"

/* Returns the CPU time of a process; 0 if it is unknown. */
static uint64_t cpu_ns_of(pid_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
		return 0;
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/* Measure a process at now_ns. Returns what it used since the last update, at last_ns. */
static uint64_t measure(struct cpu_use_row *row, pid_t pid, uint64_t last_ns, uint64_t now_ns)
{
	const struct cpu_use_row before = *row;

	if (before.at_ns == now_ns)
		return 0;
	*row = (struct cpu_use_row){pid, now_ns, cpu_ns_of(pid)};
	if (before.pid != pid || before.at_ns != last_ns || !before.cpu_ns ||
	    row->cpu_ns < before.cpu_ns)
		return 0;
	return row->cpu_ns - before.cpu_ns;
}

/*
 * Measure the processes that have recent samples, at first all: later the id of one without may be
 * that of a process outside. Returns what they used since the last update.
 */
static uint64_t measure_all(struct cpu_use *use, const struct live *live, uint64_t now_ns)
{
	const uint32_t nr = live_nr_processes(live);
	struct cpu_use_row *rows = array_reserve(use->rows, nr, &use->max, sizeof(*rows));
	uint64_t used_ns = 0;
	uint32_t nr_threads;
	const struct live_thread *threads = live_threads(live, &nr_threads);

	if (!rows)
		return 0;
	use->rows = rows;
	for (; use->nr < nr; use->nr++)
		rows[use->nr] = (struct cpu_use_row){0};
	for (uint32_t i = 0; !use->at_ns && i < nr; i++)
		if (live_process(live, i))
			used_ns += measure(&rows[i], live_process(live, i)->pid, 0, now_ns);
	for (uint32_t i = 0; i < nr_threads; i++) {
		const uint32_t index = threads[i].thread.process;
		const struct live_process *process = live_process(live, index);

		if (threads[i].is_used && process)
			used_ns += measure(&rows[index], process->pid, use->at_ns, now_ns);
	}
	return used_ns;
}

double cpu_use_update(struct cpu_use *use, const struct live *live, uint64_t now_ns)
{
	const uint64_t passed_ns = now_ns - use->at_ns;
	uint64_t used_ns;

	if (use->at_ns && passed_ns < CPU_USE_LEAST_NS)
		return use->share;
	used_ns = measure_all(use, live, now_ns);
	use->share = use->at_ns ? (double)used_ns / (double)passed_ns : -1;
	use->at_ns = now_ns;
	return use->share;
}

void cpu_use_done(struct cpu_use *use)
{
	free(use->rows);
	*use = (struct cpu_use){.nr = 0};
}
