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

/* Measure all processes. Returns what they used since the last time. */
static uint64_t measure(struct cpu_use *use, const struct live *live)
{
	const uint32_t nr = live_nr_processes(live);
	struct cpu_use_row *rows = array_reserve(use->rows, nr, &use->max, sizeof(*rows));
	uint64_t used_ns = 0;

	if (!rows)
		return 0;
	use->rows = rows;
	for (; use->nr < nr; use->nr++)
		rows[use->nr] = (struct cpu_use_row){0};
	for (uint32_t i = 0; i < nr; i++) {
		const struct live_process *process = live_process(live, i);
		const pid_t pid = process ? process->pid : 0;
		const uint64_t cpu_ns = pid ? cpu_ns_of(pid) : 0;

		if (rows[i].pid == pid && rows[i].cpu_ns && cpu_ns > rows[i].cpu_ns)
			used_ns += cpu_ns - rows[i].cpu_ns;
		rows[i] = (struct cpu_use_row){pid, cpu_ns};
	}
	return used_ns;
}

double cpu_use_update(struct cpu_use *use, const struct live *live, uint64_t now_ns)
{
	const uint64_t passed_ns = now_ns - use->at_ns;
	uint64_t used_ns;

	if (use->at_ns && passed_ns < CPU_USE_LEAST_NS)
		return use->share;
	used_ns = measure(use, live);
	use->share = use->at_ns ? (double)used_ns / (double)passed_ns : -1;
	use->at_ns = now_ns;
	return use->share;
}

void cpu_use_done(struct cpu_use *use)
{
	free(use->rows);
	*use = (struct cpu_use){.nr = 0};
}
