/* SPDX-License-Identifier: MIT */
/*
 * Proof that no thread of a process has run since its last look, by clocks alone: a process that
 * waits is sampled again without a look at its memory.
 *
 * The task clock of each thread with a state of its own is read after two looks in a row. If all
 * are equal, nothing ran in between, and the second look shows where every thread still is as long
 * as no clock advances. Other threads of the process may add states to its list, and are covered
 * by the clock of the whole process, which may be up to a tick of the kernel old while one runs.
 */
#include <errno.h>

#include "sampler/sampler_state.h"

/* The exact clock of a thread; NULL: it has none. */
static const struct cpu_clock *open_clock(struct sampler *sampler, struct sampled_thread *sampled)
{
	struct cpu_clock *clock = &sampled->cpu.clock;
	int err = 0;

	if (clock->kind == CPU_CLOCK_NONE)
		err = cpu_clock_open(sampler->process, sampled->info->tid, clock);
	if (clock->kind == CPU_CLOCK_TASK)
		return clock;
	/* It would fail again. */
	sampler->standstill.is_impossible = err != -ESRCH;
	return NULL;
}

/* Whether a thread is where its last sample shows it, unless it has run since. */
static bool is_known(const struct sampler *sampler, const struct snapshot_thread *thread)
{
	return thread->proof.is_known &&
	       sampler->snapshot.instant.nr_looks >= thread->proof.foreign_until_look;
}

/* Read all clocks. Returns whether all are known, and have not advanced since they were noted. */
static bool read_clocks(struct sampler *sampler)
{
	struct standstill *standstill = &sampler->standstill;
	const struct snapshot *snapshot = &sampler->snapshot;
	bool is_same = true;
	uint64_t now_ns;

	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct sampled_thread *sampled = &sampler->threads[snapshot->threads[i]->slot];
		const struct cpu_clock *clock = open_clock(sampler, sampled);

		if (!is_known(sampler, snapshot->threads[i]) || !clock)
			return false;
		sampler->stats.clock_reads++;
		if (cpu_clock_read(clock, &now_ns))
			return false;
		is_same = is_same && now_ns == sampled->cpu.noted_ns;
		sampled->cpu.noted_ns = now_ns;
	}
	sampler->stats.clock_reads++;
	if (cpu_clock_read_process(sampler->process->pid, &now_ns))
		return false;
	is_same = is_same && now_ns == standstill->process_ns;
	standstill->process_ns = now_ns;
	return is_same;
}

static bool is_possible(const struct sampler *sampler)
{
	return !sampler->standstill.is_impossible && sampler->process && !sampler->native &&
	       !sampler->is_racing && !sampler->snapshot.is_stale && sampler->snapshot.nr_threads &&
	       !snapshot_may_swap(&sampler->snapshot);
}

void sampler_note_standstill(struct sampler *sampler)
{
	struct standstill *standstill = &sampler->standstill;

	if (!standstill->is_proven)
		standstill->is_proven = is_possible(sampler) && read_clocks(sampler);
}

bool sampler_stands_still(struct sampler *sampler)
{
	struct standstill *standstill = &sampler->standstill;

	standstill->is_proven =
		standstill->is_proven && is_possible(sampler) && read_clocks(sampler);
	return standstill->is_proven;
}
