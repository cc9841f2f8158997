/* SPDX-License-Identifier: MIT */
#include "sampler/instant.h"

/*
 * A thread that could run in one of so many last looks is expected to be able to run in the next:
 * its witness is called before anything else is read.
 */
enum { EXPECTED_LOOKS = 64 };

/* Nothing is proven of a state for so many looks once another thread was found to run it. */
enum { FOREIGN_LOOKS = 1024 };

void instant_init(struct instant *instant, struct remote_memory *memory)
{
	*instant = (struct instant){.is_dead = true};
	look_memory_init(&instant->look, memory);
}

void instant_done(struct instant *instant)
{
	look_memory_done(&instant->look);
}

void instant_hold_target(struct instant *instant, const struct witness_means *means)
{
	instant->is_dead = false;
	instant->means = *means;
}

void instant_take_cpus(struct instant *instant)
{
	instant->nr_looks++;
	if (instant->preempt)
		preempt_hold(instant->preempt, &instant->held);
}

/* Whether the thread has not been given a CPU since the last late look; notes how often it was. */
static bool has_not_run(struct instant_thread *thread)
{
	const uint64_t before = thread->late_runs;

	if (task_runs_read(&thread->witness.runs, &thread->late_runs))
		thread->late_runs = 0;
	return before && before == thread->late_runs;
}

/*
 * Whether a late look waited until the thread went to sleep. Asked first of all, while its CPU is held:
 * one that is woken from then on could run, too.
 */
static bool has_slept(struct instant *instant, struct instant_thread *thread, pid_t tid)
{
	struct task_now now;

	return !witness_now(&thread->witness, &instant->means, tid, &now) && now.state != 'R' &&
	       !has_not_run(thread);
}

int instant_watch_thread(struct instant *instant, struct instant_thread *thread,
			 uint64_t thread_pointer, pid_t tid)
{
	thread->is_own = thread->is_foreign = thread->is_untold = thread->has_moved = false;
	thread->slept = false;
	thread->is_watched = !instant->is_dead && thread->runner_look &&
			     thread->runner_look + EXPECTED_LOOKS >= instant->nr_looks;
	if (!thread->is_watched)
		return 0;
	/* The user may have learnt the thread's id since. */
	if (!thread->has_witness ||
	    (thread->witness.kind == WITNESS_NONE && tid != thread->witness_tid)) {
		instant_thread_done(thread);
		thread->witness_tid = tid;
		witness_open(&instant->means, thread_pointer, tid, &thread->witness);
		thread->has_witness = true;
	}
	if (instant->is_late)
		thread->slept = has_slept(instant, thread, tid);
	return witness_begin(&thread->witness, &instant->look, &instant->held);
}

int instant_watch_gil(struct instant *instant, struct instant_gil *gil)
{
	return look_memory_seal(&instant->look, gil->place.addr, gil_place_bytes(&gil->place),
				&gil->seal);
}

int instant_begin(struct instant *instant)
{
	return look_memory_begin(&instant->look);
}

void instant_read_gil(struct instant *instant, struct instant_gil *gil)
{
	const struct look_seal *seal;

	gil->now = (struct gil){.known = false};
	if (!gil->place.addr)
		return;
	seal = look_memory_seal_at(&instant->look, gil->seal);
	if (seal->is_read)
		gil->now = gil_decode(&gil->place, seal->first);
}

bool instant_note_runner(struct instant *instant, struct instant_thread *thread)
{
	thread->runner_look = instant->nr_looks;
	return thread->is_watched || instant->is_dead;
}

bool instant_clock_stands(const struct instant *instant, const struct instant_thread *thread)
{
	return !instant->gil_distrusted && instant->nr_looks >= thread->foreign_until &&
	       thread->is_known && thread->is_watched && thread->known_cpu_ns &&
	       thread->known_cpu_ns == witness_cpu_ns(&thread->witness);
}

bool instant_gil_tells(const struct instant *instant, const struct instant_gil *gil,
		       const struct instant_thread *thread, remote_addr thread_addr)
{
	return !instant->is_dead && !instant->gil_distrusted && thread->is_known &&
	       gil->now.known && !gil_names(&gil->told, &gil->now, thread_addr) &&
	       !gil_unclear(&gil->told, &gil->now);
}

int instant_end(struct instant *instant)
{
	return look_memory_end(&instant->look);
}

void instant_end_thread(struct instant *instant, struct instant_thread *thread, pid_t tid)
{
	if (thread->is_watched)
		witness_end(&thread->witness, &instant->means, tid);
}

void instant_release_cpus(struct instant *instant)
{
	instant->slept = instant->preempt && preempt_release(instant->preempt, &instant->held);
}

void instant_judge_thread(struct instant *instant, struct instant_thread *thread, pid_t tid)
{
	struct task_now now;

	thread->stood = instant->is_dead;
	if (!thread->is_watched)
		return;
	thread->stood = witness_stood(&thread->witness, &instant->look, &instant->held);
	instant->nr_stood += thread->stood;
	if (thread->stood && instant_finds_foreign(instant, thread))
		thread->stood = false;
	if (!thread->stood && thread->witness.kind != WITNESS_RSEQ &&
	    !witness_now(&thread->witness, &instant->means, tid, &now))
		thread->witness.cpu = now.cpu;
	if (instant->preempt && !preempt_follow(instant->preempt, thread->witness.cpu) &&
	    !thread->stood && instant->away_look != instant->nr_looks) {
		instant->away_look = instant->nr_looks;
		instant->nr_away++;
	}
}

bool instant_finds_foreign(struct instant *instant, struct instant_thread *thread)
{
	/* That a state has moved is evidence only if its thread stood still. */
	if (thread->is_foreign || (thread->has_moved && thread->stood))
		thread->foreign_until = instant->nr_looks + FOREIGN_LOOKS;
	if (thread->is_own || (!thread->is_foreign && instant->nr_looks >= thread->foreign_until))
		return thread->is_untold;
	instant->nr_foreign++;
	return true;
}

void instant_judge_gil(struct instant *instant, struct instant_gil *gil)
{
	const struct look_seal *seal;
	struct gil last;

	gil->stood = false;
	if (!gil->now.known)
		return;
	seal = look_memory_seal_at(&instant->look, gil->seal);
	if (!seal->is_read)
		return;
	last = gil_decode(&gil->place, seal->last);
	gil->stood = !gil_moved(&gil->now, &last);
}

void instant_know(struct instant_thread *thread)
{
	thread->is_known = true;
	thread->known_cpu_ns = thread->is_watched ? witness_cpu_ns(&thread->witness) : 0;
}

void instant_thread_done(struct instant_thread *thread)
{
	if (thread->has_witness)
		witness_close(&thread->witness);
	thread->has_witness = false;
	thread->late_runs = 0; /* another witness may count something else */
}
