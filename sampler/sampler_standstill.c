/* SPDX-License-Identifier: MIT */
/*
 * Proof that no thread of a process has run since its last look, without a look at its memory: a
 * process that waits gets its samples again.
 *
 * A thread that was seen waiting has not run as long as its run count stays the same. The counts of
 * all threads with states are read after two looks in a row. If none has changed, nothing ran in
 * between, so the second look shows where every thread is until a count changes. Other threads of
 * the process may add states to its list. They are covered by the CPU time of the process, which
 * may be a tick of the kernel old while one runs.
 */
#include <errno.h>
#include <unistd.h>

#include "procmem/sched/cpu_clock.h"
#include "procmem/sched/run_count.h"
#include "procmem/sched/thread_wait.h"
#include "sampler/sampler_state.h"

void thread_runs_close(struct thread_runs *runs)
{
	if (runs->is_open)
		(void)close(runs->fd);
	if (runs->has_place)
		(void)close(runs->place_fd);
	*runs = (struct thread_runs){0};
}

int thread_runs_place(const struct sampler *sampler, struct thread_runs *runs, pid_t tid,
		      uint64_t nr_runs, struct wait_place *ret_place)
{
	if (!runs->has_place && !runs->has_no_place) {
		runs->place_fd = wait_place_open(sampler->process, tid);
		runs->has_place = runs->place_fd >= 0;
		runs->has_no_place = !runs->has_place;
	}
	return runs->has_place ? wait_place_read_fd(runs->place_fd, nr_runs, ret_place)
			       : wait_place_read(sampler->process, tid, nr_runs, ret_place);
}

/* Open the run count of a thread, unless it is open. Returns false if it cannot be read. */
static bool open_runs(struct sampler *sampler, struct thread_runs *runs, pid_t tid)
{
	if (runs->is_open)
		return true;
	runs->fd = run_count_open_fd(sampler->process, tid);
	runs->is_open = runs->fd >= 0;
	/* Anything else would fail again. */
	sampler->standstill.is_impossible = !runs->is_open && runs->fd != -ESRCH;
	return runs->is_open;
}

/* Whether a thread is where its last sample shows it, unless it has run since. */
static bool is_known(const struct sampler *sampler, const struct snapshot_thread *thread)
{
	return thread->proof.is_known && thread->tid &&
	       sampler->snapshot.instant.nr_looks >= thread->proof.foreign_until_look;
}

/* Read a thread's run count. Returns whether it has not run since the last reading. */
static bool has_not_run(struct sampler *sampler, const struct snapshot_thread *thread)
{
	struct thread_runs *runs = &sampler->threads[thread->slot].runs;
	struct wait_place place;
	uint64_t nr;
	bool is_same;

	if (!is_known(sampler, thread) || !open_runs(sampler, runs, thread->tid))
		return false;
	sampler->stats.other_syscalls++;
	if (run_count_read_fd(runs->fd, &nr))
		return false;
	is_same = runs->was_waiting && runs->nr == nr;
	if (!is_same) {
		sampler->stats.other_syscalls++;
		runs->was_waiting = thread_runs_place(sampler, runs, thread->tid, nr, &place) == 0;
		runs->nr = nr;
	}
	return is_same;
}

/* Read all counts. Returns whether no thread has run since the last reading. */
static bool read_all(struct sampler *sampler)
{
	struct standstill *standstill = &sampler->standstill;
	const struct snapshot *snapshot = &sampler->snapshot;
	uint64_t process_ns;
	bool is_same = true;

	for (size_t i = 0; i < snapshot->nr_threads; i++)
		is_same = has_not_run(sampler, snapshot->threads[i]) && is_same;
	sampler->stats.clock_reads++;
	if (cpu_clock_read_process(sampler->process->pid, &process_ns))
		return false;
	is_same = is_same && process_ns == standstill->process_ns;
	standstill->process_ns = process_ns;
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
		standstill->is_proven = is_possible(sampler) && read_all(sampler);
}

bool sampler_stands_still(struct sampler *sampler)
{
	struct standstill *standstill = &sampler->standstill;

	standstill->is_proven = standstill->is_proven && is_possible(sampler) && read_all(sampler);
	return standstill->is_proven;
}
