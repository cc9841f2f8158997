/* SPDX-License-Identifier: MIT */
/* Creates a sampler (sampler.h), and takes its ticks (sampler_state.h). */
#include <errno.h>
#include <stdlib.h>

#include "procmem/clock.h"
#include "procmem/descriptor_limit.h"
#include "procmem/sched/sched_policy.h"
#include "procmem/sched/thread_stat.h"
#include "sampler/sampler_interrupts.h"
#include "sampler/sampler_state.h"
#include "sampler/task_roots.h"

/*
 * A look that begins this late may have waited until the target went to sleep: before Linux 6.12
 * a thread that wakes may have to wait until the running thread's slice ends, 1 to 4 ms. Then the
 * look meets the target where it sleeps, not where it was at the tick. Timers and switches alone
 * take 50 to 150 µs.
 */
#define LATE_NS 200000u

/*
 * Before the first tick of a run: number of looks to find out where the target runs, with a pause
 * before each.
 */
enum { FIRST_LOOKS = 4, FIRST_PAUSE_NS = 200000 };

/* When threads that are unknown are identified again: after this time, twice this time, … */
#define FIRST_RETRY_NS 1000000ull
enum { MAX_RETRIES = 12 };

/* How often the program is checked to be the same, besides at each new thread list. */
#define CHECK_EVERY_NS 250000000u

int sampler_create(const struct process *process, struct remote_memory *memory,
		   const struct py_build *build, remote_addr runtime_addr,
		   struct sampler **ret_sampler)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));
	bool is_other;

	if (!sampler)
		return -ENOMEM;
	sampler->process = process;
	sampler->identities.is_in_other_namespace =
		process && !process_other_namespace(process, "pid", &is_other) && is_other;
	sampler->build = build;
	sampler->tick.cut_ns = UINT64_MAX;
	snapshot_init(&sampler->snapshot, memory, build, runtime_addr);
	code_cache_init(&sampler->codes, sampler->snapshot.memory, build);
	sample_ids_init(&sampler->identities.own_ids);
	sampler_share_ids(sampler, &sampler->identities.own_ids);
	frame_cache_init(&sampler->cache, &sampler->codes, runtime_addr, &sampler->stats);
	*ret_sampler = sampler;
	return 0;
}

void sampler_destroy(struct sampler *sampler)
{
	if (!sampler)
		return;
	snapshot_done(&sampler->snapshot);
	if (sampler->racing)
		racing_done(sampler->racing);
	free(sampler->racing);
	code_cache_done(&sampler->codes);
	for (uint32_t i = 0; i < sampler->nr_threads; i++) {
		frame_list_done(&sampler->threads[i].list);
		free(sampler->threads[i].last.frames);
		if (sampler->threads[i].info)
			sample_ids_put_slot(sampler->identities.ids,
					    sampler->threads[i].info->slot);
		free(sampler->threads[i].info);
		cpu_clock_close(&sampler->threads[i].cpu.clock);
		cached_sample_done(&sampler->threads[i].cached);
		thread_runs_close(&sampler->threads[i].runs);
	}
	free(sampler->threads);
	task_roots_destroy(sampler->roots);
	free(sampler->identities.os_threads);
	addr_map_done(&sampler->identities.idents);
	sample_ids_done(&sampler->identities.own_ids);
	free(sampler);
}

void sampler_share_ids(struct sampler *sampler, struct sample_ids *ids)
{
	sampler->identities.ids = ids;
	code_cache_share_functions(&sampler->codes, &ids->functions);
}

void sampler_set_process(struct sampler *sampler, uint32_t process)
{
	sampler->identities.process = process;
	for (uint32_t i = 0; i < sampler->nr_threads; i++)
		if (sampler->threads[i].info)
			sampler->threads[i].info->process = process;
}

void sampler_set_begin_ns(struct sampler *sampler, uint64_t begin_ns)
{
	sampler->tick.last_ns = begin_ns;
}

void sampler_set_extras(struct sampler *sampler, const struct sampler_extras *extras)
{
	sampler->extras = *extras;
	sampler->codes.is_core = extras->is_core;
	sampler->snapshot.is_core = extras->is_core;
	if (extras->cpu || extras->states)
		descriptor_limit_raise(); /* for the clocks, one each */
}

void sampler_set_live(struct sampler *sampler, const struct maps *maps, struct image_source *images)
{
	const struct py_build *build = sampler->build;
	/* In 3.6 the GIL has no struct. */
	const bool has_bare_gil = !build->free_threaded &&
				  build->offsets.interpreter.gil_locked == OFFSET_ABSENT &&
				  build->offsets.runtime.gil_locked == OFFSET_ABSENT;
	const struct witness_means means = {
		.process = sampler->process,
		.rseq = rseq_place_find(sampler->snapshot.memory, maps, images),
		.prefers_clock = build->free_threaded || has_bare_gil,
		.ids_may_be_reused = has_bare_gil,
	};

	snapshot_set_live(&sampler->snapshot, &means);
	sampler->stacks.first = thread_stack_of_first(maps);
	descriptor_limit_raise(); /* for the witnesses, up to three each */
	if (has_bare_gil)
		sampler->snapshot.current_thread_addr =
			gil_find_current(maps, images, sampler->snapshot.runtime_addr);
}

const struct sampler_stats *sampler_stats(const struct sampler *sampler)
{
	return &sampler->stats;
}

struct witness_proofs sampler_probe_proofs(const struct sampler *sampler, pid_t tid)
{
	return witness_probe(&sampler->snapshot.instant.means, tid);
}

bool sampler_has_foreign_runners(const struct sampler *sampler)
{
	const struct instant *instant = &sampler->snapshot.instant;

	/* More than once. */
	return instant->nr_foreign > 1 && instant->nr_foreign >= instant->nr_stood_still / 10;
}

uint64_t sampler_nr_unreachable(const struct sampler *sampler)
{
	return sampler->snapshot.instant.nr_unreachable;
}

enum frame_cache_reason sampler_cache_reason(const struct sampler *sampler)
{
	return sampler->cache.reason;
}

/* Returns the earlier one of two times, of which 0 means that there is none. */
static uint64_t earlier_ns(uint64_t one_ns, uint64_t other_ns)
{
	return !one_ns || (other_ns && other_ns < one_ns) ? other_ns : one_ns;
}

void sampler_stats_add(struct sampler_stats *sum, const struct sampler_stats *stats)
{
	sum->ticks += stats->ticks;
	sum->late_ticks += stats->late_ticks;
	sum->failed_ticks += stats->failed_ticks;
	sum->samples += stats->samples;
	sum->approximate += stats->approximate;
	for (int loss = 0; loss < NR_SAMPLE_LOSSES; loss++)
		sum->lost[loss] += stats->lost[loss];
	sum->cached += stats->cached;
	sum->writes += stats->writes;
	sum->reads += stats->reads;
	sum->clock_reads += stats->clock_reads;
	sum->clockless += stats->clockless;
	sum->rough_clocks += stats->rough_clocks;
	sum->other_syscalls += stats->other_syscalls;
	sum->start_ns = earlier_ns(sum->start_ns, stats->start_ns);
	sum->first_sample_ns = earlier_ns(sum->first_sample_ns, stats->first_sample_ns);
	if (sum->end_ns < stats->end_ns)
		sum->end_ns = stats->end_ns;
	sum->active_ns += stats->active_ns;
	histogram_merge(&sum->lateness, &stats->lateness);
	sum->p50_lateness_ns = histogram_quantile(&sum->lateness, 500);
	sum->p99_lateness_ns = histogram_quantile(&sum->lateness, 990);
}

/*
 * Whether a tick must be cut off after nr_done threads: *stop is set, or the end of the run is
 * long past. The clock is not read for each thread: that costs as much as a small stack.
 */
static bool is_over(const struct sampler *sampler, size_t nr_done)
{
	enum { CLOCK_EVERY = 16 };

	if (!nr_done)
		return false;
	return snapshot_stopped(&sampler->snapshot) ||
	       (nr_done % CLOCK_EVERY == 0 && clock_now_ns() >= sampler->tick.cut_ns);
}

/* Whether it is time to identify threads again that a new process did not name rightly yet. */
static bool retries_identities(struct sampler *sampler)
{
	struct identities *identities = &sampler->identities;
	bool is_unknown = false;

	if (!sampler->process || identities->nr_retries == MAX_RETRIES ||
	    sampler->tick.now_ns < identities->retry_ns)
		return false;
	for (size_t i = 0; i < sampler->snapshot.nr_threads; i++)
		is_unknown = is_unknown || !sampler->snapshot.threads[i]->tid;
	identities->retry_ns = sampler->tick.now_ns + (FIRST_RETRY_NS << identities->nr_retries++);
	return is_unknown;
}

/*
 * Before a look, as it may take long: make room in the tables of code, read the thread list if it
 * has changed, and identify new threads.
 */
static int prepare(struct sampler *sampler)
{
	struct snapshot *snapshot = &sampler->snapshot;
	const bool retries = retries_identities(sampler);
	const bool is_stale = snapshot->is_stale || retries;
	int err = 0;

	/* Lists that refer to dropped code must not be reused. */
	if (code_cache_clear_if_full(&sampler->codes))
		for (size_t i = 0; i < snapshot->nr_threads; i++)
			snapshot->threads[i]->proof.is_known = false;
	/* If the tables are large, drop what no thread's last stack needs. */
	if (code_cache_should_drop(&sampler->codes)) {
		for (uint32_t i = 0; i < sampler->nr_threads; i++)
			frame_list_use_codes(&sampler->threads[i].list);
		if (sampler->roots)
			task_roots_use_codes(sampler->roots);
		code_cache_drop_unused(&sampler->codes);
	}
	sampler->identities.nr_os_names_left = MAX_NAMES_PER_TICK;
	sampler_resolve_stacks(sampler, false);
	if (is_stale)
		err = snapshot_refresh(snapshot);
	if (!err && sampler->roots)
		err = task_roots_prepare(sampler->roots, sampler->tick.now_ns);
	if (is_stale && !err && sampler->native)
		sampler_native_sweep(sampler->native);
	for (size_t i = 0; is_stale && !err && i < snapshot->nr_threads; i++) {
		if (snapshot_stopped(snapshot))
			break;
		if (snapshot->threads[i]->is_new)
			err = sampler_thread_begin(sampler, snapshot->threads[i]);
		else if (retries && !snapshot->threads[i]->tid)
			sampler_thread_identify(sampler, snapshot->threads[i]);
	}
	if (err || !sampler->interrupts)
		return err;
	/* A list that was cut off has threads that are not set up yet. */
	if (!snapshot_stopped(snapshot))
		return sampler_interrupts_follow(sampler->interrupts);
	sampler_interrupts_forget(sampler->interrupts);
	return 0;
}

/* Whether this tick has to sample a thread: its interrupts have not. */
static bool needs_sample(const struct sampler *sampler, const struct snapshot_thread *thread)
{
	return !sampler->interrupts ||
	       sampler_interrupts_needs_look(sampler->interrupts, thread, sampler->tick.now_ns);
}

/* Emit what a proven look found of a thread, or count the reason of its loss. */
static int emit_thread(struct sampler *sampler, struct snapshot_thread *thread, uint64_t now_ns,
		       struct sample_sink *sink)
{
	const struct sampled_thread *sampled = &sampler->threads[thread->slot];

	if (thread->is_unchanged)
		return sampler_thread_repeat(sampler, thread, now_ns, false, sink);
	thread->proof.is_known = false;
	if (!thread->was_copied)
		return 0; /* it has ended */
	if (!sampled->walked.is_whole || sampler_stack_moved(sampled))
		sampler->tick.nr_still = 0;
	if (!sampled->walked.is_whole) {
		sampler->stats.lost[sampled->walked.loss]++;
		return 0;
	}
	if (thread->is_checked && sampler_stack_moved(sampled)) {
		if (thread->proof.look_used_ns)
			sampler->snapshot.instant.clocks_distrusted = true;
		else
			sampler->snapshot.instant.gil_distrusted = true;
	}
	snapshot_mark_known(thread);
	return sampler_thread_emit(sampler, thread, (struct sample){.time_ns = now_ns}, sink);
}

/* Skip a thread, which may no longer be where it was. */
static void skip_thread(struct snapshot_thread *thread)
{
	thread->proof.is_known = thread->proof.is_known && thread->is_unchanged;
}

/* Emit what a look found of all threads. */
static int emit_threads(struct sampler *sampler, enum instant_verdict verdict, uint64_t now_ns,
			struct sample_sink *sink)
{
	struct snapshot *snapshot = &sampler->snapshot;
	bool was_late = false;
	int err = 0;

	for (size_t i = 0; !err && i < snapshot->nr_threads && !is_over(sampler, i); i++) {
		struct snapshot_thread *thread = snapshot->threads[i];

		if (!needs_sample(sampler, thread)) {
			sampler->tick.nr_still = 0;
			skip_thread(thread);
			continue;
		}
		/* The look met it where it slept, and not where it was at the tick. */
		if (thread->has_slept) {
			was_late = true;
			sampler->tick.nr_still = 0;
			sampler->stats.lost[LOSS_LATE]++;
		} else if (sampler->interrupts && !thread->is_unchanged &&
			   sampler_interrupts_covers(sampler->interrupts, thread, now_ns)) {
			skip_thread(thread);
		} else if (thread->is_proven || snapshot_was_waiting(snapshot, thread)) {
			err = emit_thread(sampler, thread, now_ns, sink);
		} else if (sampler->is_racing) {
			sampler->tick.nr_still = 0;
			err = sampler_thread_sample_racing(sampler, thread, now_ns, sink);
		} else {
			skip_thread(thread);
			sampler->tick.nr_still = 0;
			/* A running thread gets a sample from its next interrupt. */
			if (!sampler->interrupts)
				sampler->stats
					.lost[verdict == INSTANT_LOCKED ? LOSS_LOCK : LOSS_MOVED]++;
		}
	}
	if (was_late || verdict != INSTANT_PROVEN)
		frame_cache_invalidate(&sampler->cache);
	if (!was_late)
		snapshot_commit(snapshot);
	return err;
}

/* Whether a look need not prove anything of a thread. */
static bool needs_no_proof(const struct sampler *sampler, const struct snapshot_thread *thread)
{
	if (!needs_sample(sampler, thread))
		return true;
	/* With C frames a thread's turn comes later. */
	return sampler->interrupts && !sampler->native &&
	       snapshot_has_run(&sampler->snapshot, thread) &&
	       sampler_interrupts_covers(sampler->interrupts, thread, sampler->tick.now_ns);
}

/*
 * Let a look read the clocks of threads that waited at their last samples. Reading that of a
 * running one would interrupt it. With C frames, no thread's stack is repeated.
 */
static void lend_clocks(struct sampler *sampler)
{
	const struct snapshot *snapshot = &sampler->snapshot;

	for (size_t i = 0; i < snapshot->nr_threads && !sampler->native; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];
		struct sampled_thread *sampled = &sampler->threads[thread->slot];

		if (sampled->activity.waits && sampled->cpu.clock.kind == CPU_CLOCK_TASK)
			thread->cpu_clock = &sampled->cpu.clock;
	}
}

/* Look at all threads, and walk the stacks of those that may have moved. */
static int look(struct sampler *sampler, enum instant_verdict *ret_verdict)
{
	struct snapshot *snapshot = &sampler->snapshot;
	const size_t nr_walks = sampler->native ? 0 : snapshot->nr_threads;
	int err, end_err;

	lend_clocks(sampler);
	err = snapshot_begin(snapshot, NULL);
	if (err)
		return err;
	for (size_t i = 0; !err && i < nr_walks && !is_over(sampler, i); i++) {
		struct snapshot_thread *thread = snapshot->threads[i];
		struct walked_thread *walked = &sampler->threads[thread->slot].walked;

		walked->is_whole = false;
		walked->loss = LOSS_MOVED;
		if (thread->was_copied && !thread->is_unchanged && needs_sample(sampler, thread))
			err = sampler_thread_walk(sampler, thread);
	}
	end_err = snapshot_end(snapshot, ret_verdict);
	return err ? err : end_err;
}

/* With C frames each thread has a look of its own, when its turn comes. */
static int tick_native(struct sampler *sampler, uint64_t now_ns)
{
	struct snapshot *snapshot = &sampler->snapshot;
	int err = 0;

	for (size_t i = 0; !err && i < snapshot->nr_threads && !is_over(sampler, i); i++) {
		struct snapshot_thread *thread = snapshot->threads[i];

		if (!needs_sample(sampler, thread)) {
			skip_thread(thread);
			continue;
		}
		if (thread->was_copied)
			err = sampler_native_tick(sampler->native, thread, now_ns);
	}
	return err;
}

/* Look at the threads and emit their samples. */
static int look_and_emit(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns)
{
	struct instant *instant = &sampler->snapshot.instant;
	enum instant_verdict verdict;
	int err;

	/* Reading the clock of a running thread would interrupt it. */
	for (size_t i = 0; i < sampler->snapshot.nr_threads; i++)
		sampler->snapshot.threads[i]->proof.needs_no_proof =
			needs_no_proof(sampler, sampler->snapshot.threads[i]);
	/*
	 * A late look may have waited until the target slept, but only if it needed the target's
	 * CPU.
	 */
	instant->is_late = sampler->tick.late_ns > LATE_NS && !sampler->native &&
			   !sampler->interrupts && !sampler->is_racing;
	err = look(sampler, &verdict);
	instant->is_late = false;
	if (err)
		return err;
	sampler->stats.ticks++;
	sampler->tick.nr_still++;
	if (sampler->native)
		sampler->tick.nr_still = 0;
	return sampler->native ? tick_native(sampler, now_ns)
			       : emit_threads(sampler, verdict, now_ns, sink);
}

/* A tick of a process of which no thread has run since its last look. */
static int repeat_threads(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	int err = 0;

	for (size_t i = 0; !err && i < snapshot->nr_threads; i++)
		if (needs_sample(sampler, snapshot->threads[i]))
			err = sampler_thread_repeat(sampler, snapshot->threads[i], now_ns, true,
						    sink);
	sampler->stats.ticks++;
	sampler->tick.nr_still++;
	sampler->tick.last_ns = now_ns;
	return err;
}

/* sampler_tick(), without its end. */
static int sample_tick(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns)
{
	int err = 0;

	/* Before the list is read again, so that ended threads still get their last samples. */
	if (sampler->interrupts) {
		err = sampler_interrupts_drain(sampler->interrupts);
		now_ns = clock_now_ns();
	}
	sampler->tick.now_ns = now_ns;
	sampler->tick.used_ns = 0;
	if (!err && sampler_stands_still(sampler)) {
		err = repeat_threads(sampler, sink, now_ns);
		return err || !sampler->roots ? err : task_roots_tick(sampler->roots, sink, now_ns);
	}
	if (!err)
		err = prepare(sampler);
	if (err || snapshot_stopped(&sampler->snapshot))
		return err;
	/* With interrupts a look is only needed if some threads had no sample from one. */
	if (!sampler->interrupts ||
	    sampler_interrupts_any_needs_look(sampler->interrupts, now_ns) ||
	    now_ns - sampler->tick.last_look_ns >= LOOK_PAUSE_MAX_NS) {
		sampler->tick.last_look_ns = now_ns;
		err = look_and_emit(sampler, sink, now_ns);
		if (err)
			return err;
	} else {
		sampler->stats.ticks++;
		sampler->tick.nr_still = 0;
	}
	sampler->tick.last_ns = now_ns;
	if (sampler->roots)
		err = task_roots_tick(sampler->roots, sink, now_ns);
	return err ? err : sampler_names_tick(sampler, sink, now_ns);
}

int sampler_tick(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns)
{
	const int err = sample_tick(sampler, sink, now_ns);

	if (sampler->interrupts)
		sampler_interrupts_end_reads(sampler->interrupts);
	return err;
}

/*
 * Emit the samples of pending copies, and postpone the ticks that copies or interrupts make
 * unnecessary.
 */
static int postpone_ticks(struct sampler *sampler, struct ticker *ticker, uint64_t now_ns,
			  bool was_due)
{
	uint64_t until_ns = 0;
	int err = 0;

	if (was_due && sampler->interrupts)
		until_ns = sampler_interrupts_covered_until(sampler->interrupts, now_ns);
	if (sampler->native && !sampler->interrupts) {
		err = sampler_native_drain(sampler->native, now_ns);
		until_ns = sampler_native_covered_until(sampler->native);
	}
	if (!err)
		sampler->stats.ticks += ticker_postpone(ticker, until_ns);
	return err;
}

int sampler_wake(struct sampler *sampler, struct sample_sink *sink, struct ticker *ticker,
		 uint64_t now_ns, bool is_due)
{
	int err = 0;

	/*
	 * Check that the program is still the same. At a low rate the next tick may be far off:
	 * notice the end of the program before it.
	 */
	if (now_ns - sampler->tick.last_check_ns >= CHECK_EVERY_NS) {
		err = remote_memory_check(sampler->snapshot.memory);
		if (!err)
			sampler->tick.last_check_ns = now_ns;
	}
	if (!err && is_due) {
		err = sampler_tick(sampler, sink, now_ns);
	} else if (!err && sampler->interrupts) {
		/* Memory that its records lack must be brought in before the next tick. */
		err = sampler_interrupts_drain(sampler->interrupts);
		sampler_interrupts_end_reads(sampler->interrupts);
	}
	return err ? err : postpone_ticks(sampler, ticker, now_ns, is_due);
}

/* Without a look: let the first tick hold the CPU where the process's main thread is. */
static void follow_main_thread(struct sampler *sampler)
{
	struct instant *instant = &sampler->snapshot.instant;
	char path[PROCESS_THREAD_PATH_MAX_BYTES];
	char text[THREAD_STAT_MAX_BYTES];
	struct thread_stat stat;

	if (!sampler->process)
		return;
	process_thread_path(path, sampler->process->pid, "stat");
	if (process_read_file(sampler->process, path, text, sizeof(text)) > 0 &&
	    !thread_stat_parse(text, &stat))
		(void)preempt_follow(instant->preempt, &instant->followed, stat.cpu);
}

/*
 * Find out where the target runs, so that the first tick holds its CPU. A target that is gone, or
 * has no interpreter yet, is left to the first tick. Returns false if its CPU cannot be taken, with
 * the reason in *ret_end: some thread, possibly asleep, may use none of the CPUs that can be held,
 * or the scheduler prefers every thread to us.
 */
static bool find_target(struct sampler *sampler, int nr_looks, enum sampler_end *ret_end)
{
	struct snapshot *snapshot = &sampler->snapshot;
	struct instant *instant = &snapshot->instant;
	enum instant_verdict verdict = INSTANT_MOVED;
	bool is_known = false, is_outranked = true;

	if (!instant->preempt)
		return true;
	if (!nr_looks) {
		follow_main_thread(sampler);
		if (prepare(sampler))
			return true;
	}
	for (int i = 0; i < nr_looks && verdict != INSTANT_PROVEN; i++) {
		const uint64_t look_ns = clock_now_ns() + FIRST_PAUSE_NS;

		preempt_aim(instant->preempt, &instant->followed, look_ns);
		clock_sleep_until(look_ns);
		if (prepare(sampler) || look(sampler, &verdict))
			return true;
	}
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const pid_t tid = snapshot->threads[i]->tid;

		if (tid && !preempt_can_reach(instant->preempt, tid)) {
			*ret_end = END_NO_SHARED_CPU;
			return false;
		}
		is_known = is_known || tid;
		is_outranked = is_outranked && (!tid || sched_policy_is_outranked(tid));
	}
	*ret_end = END_REAL_TIME;
	return !is_known || !is_outranked;
}

int sampler_begin(struct sampler *sampler, enum sampler_engine engine, struct preempt *preempt,
		  struct sample_sink *sink, bool is_alone, enum sampler_end *ret_end)
{
	if (sampler->extras.tasks && !sampler->roots) {
		int err = task_roots_create(sampler, &sampler->roots);

		if (err)
			return err;
	}
	sampler->is_racing = engine == ENGINE_RACING;
	if (sampler->is_racing && !sampler->racing)
		sampler->racing = calloc(1, sizeof(*sampler->racing));
	if (sampler->is_racing && !sampler->racing)
		return -ENOMEM;
	if (sampler->is_racing || sampler->interrupts) {
		/*
		 * No CPU is held. Then the only witness is a clock, which proves waiting threads
		 * only, and nothing found about a running thread justifies an anchor.
		 */
		sampler->snapshot.instant.means.prefers_clock = true;
		if (sampler->cache.reason == CACHE_USABLE)
			sampler->cache.reason = CACHE_OTHER_ENGINE;
	} else {
		sampler->snapshot.instant.preempt = preempt;
	}
	if (sampler->native)
		sampler_native_begin(sampler->native, sink);
	if (sampler->interrupts) {
		/* Give the program the threads first. A changing list is left to the first tick. */
		int err = prepare(sampler);

		if (!err || err == -ESRCH || sampler_is_transient(err))
			err = sampler_interrupts_begin(sampler->interrupts, sink);
		if (err)
			return err;
	}
	/* Looks for it would delay the ticks of others. */
	if (find_target(sampler, is_alone ? FIRST_LOOKS : 0, ret_end))
		return 0;
	sampler->snapshot.instant.preempt = NULL;
	return -ENOTSUP;
}

int sampler_finish(struct sampler *sampler, struct sample_sink *sink, struct ticker *ticker,
		   uint64_t end_ns, enum sampler_end end)
{
	struct sampler_stats *stats = &sampler->stats;
	int err = 0;

	if (sampler->interrupts) {
		err = sampler_interrupts_drain(sampler->interrupts);
		/* What the last samples refer to may be gone with the target. */
		if (err == -ESRCH || sampler_is_transient(err))
			err = 0;
		sampler_interrupts_end(sampler->interrupts);
	}
	sampler_pause_finish(sampler);
	stats->end_ns = clock_now_ns();
	stats->active_ns = stats->end_ns - stats->start_ns - sampler->pause.sum_ns;
	/* The last tick was due before end_ns. */
	stats->ticks -= ticker_finish(ticker, end_ns < stats->end_ns ? end_ns : stats->end_ns);
	frame_cache_end(&sampler->cache);
	/* Threads may have new names. A target that is gone has none. */
	if (!err && (end == END_DURATION || end == END_STOPPED) &&
	    !remote_memory_check(sampler->snapshot.memory) &&
	    sampler_names_read(sampler, sink, true) == -ENOMEM)
		err = -ENOMEM;
	sampler->snapshot.stop = NULL;
	sampler->snapshot.instant.preempt = NULL;
	sampler->tick.cut_ns = UINT64_MAX;
	stats->end_ns = clock_now_ns();
	return err;
}
