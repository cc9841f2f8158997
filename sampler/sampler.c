/* SPDX-License-Identifier: MIT */
#include "sampler/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "procmem/descriptor_limit.h"
#include "sampler/dormancy.h"
#include "sampler/sampler_state.h"
#include "sampler/ticker.h"

/*
 * A copy that takes so many times longer than usual, and so much at least, was
 * interrupted: its parts may come from different moments. Whether that happens
 * has nothing to do with what the target does. A stack that is as it was, that of
 * a thread that waits, cannot be torn and is kept.
 */
enum { SLOW_FACTOR = 4, SLOW_LEAST_NS = 20000, USUAL_WEIGHT = 16 };

/*
 * A target whose interpreter cannot be found for so long, and in so many ticks in a
 * row, has ended it: at a low rate two ticks may be further apart than that.
 */
#define REPLACED_AFTER_NS 500000000u
enum { REPLACED_AFTER_FAILURES = 4 };

/* A tick that began in time is brought to its end, unless it goes on so long after the run's. */
#define CUT_OFF_AFTER_NS 1000000000u

/* Above so many ticks a second some may be held back. */
enum { HELD_LEAST_HZ = 20000 };

/* How often it is made sure that it is still the same program, beside each new thread list. */
#define CHECK_EVERY_NS 250000000u

int sampler_create(const struct process *process, struct remote_memory *memory,
		   const struct py_build *build, remote_addr runtime_addr,
		   struct sampler **ret_sampler)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));
	int err;

	if (!sampler)
		return -ENOMEM;
	sampler->process = process;
	sampler->build = build;
	sampler->cut_ns = UINT64_MAX;
	code_cache_init(&sampler->codes, memory, build);
	frame_cache_init(&sampler->cache, memory, build, runtime_addr, &sampler->codes);
	err = snapshot_init(&sampler->snapshot, memory, build, runtime_addr);
	if (err) {
		sampler_destroy(sampler);
		return err;
	}
	*ret_sampler = sampler;
	return 0;
}

void sampler_destroy(struct sampler *sampler)
{
	if (!sampler)
		return;
	held_copies_done(&sampler->held, &sampler->snapshot);
	snapshot_done(&sampler->snapshot);
	code_cache_done(&sampler->codes);
	for (uint32_t i = 0; i < sampler->nr_threads; i++) {
		frame_list_done(&sampler->threads[i].list);
		steady_frames_done(&sampler->threads[i].steady);
		free(sampler->threads[i].frames);
		free(sampler->threads[i].info);
		cpu_clock_close(&sampler->threads[i].cpu.clock);
	}
	free(sampler->threads);
	free(sampler->tasks);
	addr_map_done(&sampler->idents);
	variable_reader_destroy(sampler->variables);
	free(sampler);
}

void sampler_set_looks(struct sampler *sampler, const struct sampler_looks *looks)
{
	sampler->looks = *looks;
	sampler->codes.is_still = looks->still;
	sampler->snapshot.is_still = looks->still;
	if (looks->cpu)
		descriptor_limit_raise(); /* a clock takes one */
}

const struct sampler_stats *sampler_stats(const struct sampler *sampler)
{
	return &sampler->stats;
}

enum frame_cache_reason sampler_cache_reason(const struct sampler *sampler)
{
	return sampler->cache.reason;
}

void sampler_stats_add(struct sampler_stats *sum, const struct sampler_stats *stats)
{
	sum->ticks += stats->ticks;
	sum->late_ticks += stats->late_ticks;
	sum->failed_ticks += stats->failed_ticks;
	sum->samples += stats->samples;
	sum->trimmed += stats->trimmed;
	for (int loss = 0; loss < NR_SAMPLE_LOSSES; loss++)
		sum->lost[loss] += stats->lost[loss];
	sum->cached += stats->cached;
	sum->copied_again += stats->copied_again;
	sum->writes += stats->writes;
	sum->reads += stats->reads;
	sum->clock_reads += stats->clock_reads;
	sum->clockless += stats->clockless;
	sum->rough_clocks += stats->rough_clocks;
	sum->other_syscalls += stats->other_syscalls;
	if (!sum->start_ns)
		sum->start_ns = stats->start_ns;
	if (!sum->first_sample_ns)
		sum->first_sample_ns = stats->first_sample_ns;
	sum->end_ns = stats->end_ns;
	histogram_merge(&sum->lateness, &stats->lateness);
	sum->p50_lateness_ns = histogram_quantile(&sum->lateness, 500);
	sum->p99_lateness_ns = histogram_quantile(&sum->lateness, 990);
}

/*
 * See to it that a thread that moves, or is not whole, is copied at the next ticks, too. One
 * that is new (was_new) has not moved by that. One that has no frames any more may have
 * ended, which the thread before it in the list tells: that is copied then.
 */
static void mind_movement(struct sampler *sampler, size_t index, bool was_new, int walk_err)
{
	struct snapshot_thread **threads = sampler->snapshot.threads;
	struct snapshot_thread *thread = threads[index];
	const struct sampled_thread *sampled = &sampler->threads[thread->slot];

	if (index > 0 && (walk_err || !sampled->list.nr_frames))
		dormancy_wake(&sampler->snapshot, threads[index - 1]);
	if (!walk_err && !sampled->trimmed && (was_new || !sampler_stack_moved(sampled)))
		return;
	if (!walk_err && !sampled->trimmed && thread->checked)
		dormancy_distrust(&sampler->snapshot);
	dormancy_wake(&sampler->snapshot, thread);
}

static int sample_thread(struct sampler *sampler, size_t index, uint64_t now_ns,
			 struct sample_sink *sink)
{
	struct snapshot_thread *thread = sampler->snapshot.threads[index];
	const bool was_new = thread->is_new;
	enum sample_loss loss;
	int walk_err, err;

	if (!thread->copied)
		return 0; /* it has ended */
	if (thread->is_new) {
		err = sampler_thread_begin(sampler, thread);
		if (err)
			return err;
		thread->is_new = false;
	}
	if (sampler->natives) {
		err = sampler_natives_tick(sampler->natives, thread, now_ns);
		if (err != -EAGAIN)
			return err;
	} else if (thread->unchanged) {
		return sampler_thread_repeat(sampler, thread, now_ns, sink);
	}
	walk_err = sampler_thread_walk(sampler, thread, &loss);
	if (!walk_err && sampler->copy_was_slow &&
	    sampler_stack_moved(&sampler->threads[thread->slot])) {
		walk_err = -EBADMSG;
		loss = LOSS_SLOW;
	}
	mind_movement(sampler, index, was_new, walk_err);
	if (!walk_err)
		err = sampler_thread_emit(sampler, thread, (struct sample){.time_ns = now_ns},
					  sink);
	else if (walk_err != -EBADMSG)
		return walk_err;
	else
		err = 0;
	if (walk_err)
		sampler->stats.lost[loss]++;
	if (err)
		return err;
	frame_cache_learn(&sampler->cache, thread, &sampler->threads[thread->slot].list, !walk_err,
			  now_ns);
	return stack_copy_learn(&thread->stack, sampler->snapshot.memory, &sampler->build->offsets,
				walk_err && loss == LOSS_GREW);
}

/*
 * Without CPython's counters (3.11) every code object of the last stacks has to be
 * looked at again: all of an interpreter's in one read.
 */
static int recheck_codes(struct sampler *sampler)
{
	struct snapshot *snapshot = &sampler->snapshot;
	const struct code_clock *clock = NULL;
	int err = 0;

	for (size_t i = 0; !err && i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];
		const struct frame_list *list;

		if (sampler->codes.next_version_unusable)
			thread->clock.has_next_version = false;
		if (thread->is_new || thread->unchanged || thread->clock.has_generation ||
		    thread->clock.has_next_version)
			continue;
		if (clock && clock->interp_addr != thread->clock.interp_addr)
			err = code_cache_recheck(&sampler->codes, clock);
		clock = &thread->clock;
		list = &sampler->threads[thread->slot].list;
		for (uint32_t f = 0; !err && f < list->nr_frames; f++)
			err = code_cache_queue(&sampler->codes, list->frames[f].code, clock);
	}
	return err || !clock ? err : code_cache_recheck(&sampler->codes, clock);
}

bool sampler_copy_is_slow(const struct sampler *sampler, uint64_t copy_ns, size_t nr_pieces)
{
	uint64_t usual_ns = sampler->usual_piece_ns * nr_pieces;

	return usual_ns && copy_ns > usual_ns * SLOW_FACTOR + SLOW_LEAST_NS;
}

/* Judge how long the copy of this tick took, by how many pieces it had. */
static void judge_copy(struct sampler *sampler, uint64_t copy_ns)
{
	uint64_t piece_ns = copy_ns / sampler->snapshot.nr_pieces;

	sampler->copy_was_slow =
		sampler_copy_is_slow(sampler, copy_ns, sampler->snapshot.nr_pieces);
	/* A target that has become slower to copy is followed, one interruption is not. */
	if (sampler->copy_was_slow)
		piece_ns = sampler->usual_piece_ns * 2 + 1;
	if (!sampler->usual_piece_ns)
		sampler->usual_piece_ns = piece_ns;
	sampler->usual_piece_ns += piece_ns / USUAL_WEIGHT - sampler->usual_piece_ns / USUAL_WEIGHT;
}

/*
 * Whether a tick has to be cut off after so many threads: *stop is set, or the end of the
 * run is long past. The clock is not asked for each: it costs as much as a small stack.
 */
static bool is_over(const struct sampler *sampler, size_t nr_done)
{
	enum { CLOCK_EVERY = 16 };

	if (!nr_done)
		return false;
	return snapshot_stopped(&sampler->snapshot) ||
	       (nr_done % CLOCK_EVERY == 0 && clock_now_ns() >= sampler->cut_ns);
}

/* Have the code cache drop what no thread's last stack needs, when there is much of it. */
static void drop_codes(struct sampler *sampler)
{
	if (!code_cache_is_due(&sampler->codes))
		return;
	for (uint32_t i = 0; i < sampler->nr_threads; i++)
		frame_list_use_codes(&sampler->threads[i].list);
	code_cache_drop_unused(&sampler->codes);
}

/* Make room for the tables of code. Lists that name what was forgotten are another walk's. */
static void relieve_codes(struct sampler *sampler)
{
	const struct snapshot *snapshot = &sampler->snapshot;

	if (!code_cache_relieve(&sampler->codes))
		return;
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		dormancy_wake(snapshot, snapshot->threads[i]);
}

/* The copy of a full tick, and what it proves of those before it that were held back. */
static int take_and_prove(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns)
{
	struct snapshot *snapshot = &sampler->snapshot;
	bool refreshed = snapshot->stale;
	int err;

	relieve_codes(sampler);
	drop_codes(sampler);
	sampler->nr_os_names_left = NAMES_OF_TICK;
	sampler->nr_retakes_left = RETAKES_OF_TICK;
	if (snapshot->stale) {
		sampler_lose_held(sampler);
		err = snapshot_refresh(snapshot);
		if (err)
			return err;
	}
	err = snapshot_take(snapshot);
	if (err)
		return err;
	sampler->stats.ticks++;
	sampler->copy_was_slow = false;
	if (!refreshed)
		judge_copy(sampler, clock_now_ns() - now_ns);
	err = recheck_codes(sampler);
	return err ? err : sampler_hand_on_held(sampler, sink);
}

static void count_cache(struct sampler *sampler)
{
	struct sampler_stats *stats = &sampler->stats;

	stats->cached = sampler->cache.nr_kept;
	stats->copied_again = sampler->cache.nr_again;
	stats->writes = sampler->cache.nr_writes;
}

int sampler_tick(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns)
{
	struct snapshot *snapshot = &sampler->snapshot;
	int err = take_and_prove(sampler, sink, now_ns);

	sampler_lose_held(sampler);
	if (err)
		return err;
	for (size_t i = 0; i < snapshot->nr_threads && !is_over(sampler, i); i++) {
		err = sample_thread(sampler, i, now_ns, sink);
		if (err)
			return err;
	}
	sampler->last_tick_ns = now_ns;
	count_cache(sampler);
	sampler_choose_held(sampler, now_ns);
	return sampler_names_tick(sampler, sink, now_ns);
}

/* Make sure now and then that it is the program that it began with: else -ESRCH. */
static int check_program(struct sampler *sampler, uint64_t now_ns)
{
	int err;

	if (now_ns - sampler->last_check_ns < CHECK_EVERY_NS)
		return 0;
	err = remote_memory_check(sampler->snapshot.memory);
	if (!err)
		sampler->last_check_ns = now_ns;
	return err;
}

/* A tick, of the program that it began with: else -ESRCH. Errors of sampler_tick(). */
static int checked_tick(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns)
{
	bool held;
	int err = sampler_hold(sampler, now_ns, &held);

	if (err || held)
		return err;
	err = check_program(sampler, now_ns);
	return err ? err : sampler_tick(sampler, sink, now_ns);
}

/* The end of a run: what is held back is proven by one more copy, of which no sample is taken. */
static int prove_last(struct sampler *sampler, struct sample_sink *sink)
{
	const uint64_t nr_ticks = sampler->stats.ticks;
	int err = 0;

	if (sampler->held.nr && !remote_memory_check(sampler->snapshot.memory))
		err = take_and_prove(sampler, sink, clock_now_ns());
	sampler->stats.ticks = nr_ticks;
	return sampler_is_passing(err) || err == -ESRCH || err == -EPERM ? 0 : err;
}

/* Why the target is gone: another program can be read in its place, or nothing. */
static enum sampler_end target_end(const struct sampler *sampler)
{
	uint64_t word;

	return remote_memory_read_u64(sampler->snapshot.memory, sampler->snapshot.runtime_addr,
				      &word) == -ESRCH
		       ? END_TARGET
		       : END_REPLACED;
}

/* The ticks that failed one after the other, up to now. */
struct failures {
	unsigned int nr;
	uint64_t first_ns; /* when the first of them was */
};

/* Count one more. Whether the interpreter is gone by that. */
static bool failures_add(struct failures *failures, uint64_t now_ns)
{
	if (!failures->nr++)
		failures->first_ns = now_ns;
	return failures->nr >= REPLACED_AFTER_FAILURES &&
	       now_ns - failures->first_ns > REPLACED_AFTER_NS;
}

/* The dumps that have come, which tell of all threads in the place of ticks if each has some. */
static int take_dumps(struct sampler *sampler, struct ticker *ticker, uint64_t now_ns)
{
	int err = sampler_natives_take(sampler->natives, now_ns);

	if (err)
		return err;
	sampler->stats.ticks +=
		ticker_put_off(ticker, sampler_natives_told_until(sampler->natives));
	return 0;
}

/* The loop of sampler_run(), without the accounts. */
static int run_loop(struct sampler *sampler, const struct sampler_options *options,
		    struct sample_sink *sink, struct ticker *ticker, uint64_t end_ns,
		    enum sampler_end *ret_end)
{
	struct failures failures = {0};

	for (;;) {
		bool due;
		uint64_t now_ns = ticker_wait(ticker, end_ns, &due);
		uint64_t nr_ticks = sampler->stats.ticks;
		int err, sink_err;

		*ret_end = END_STOPPED;
		if (options->stop && *options->stop)
			return 0;
		*ret_end = END_DURATION;
		if (now_ns >= end_ns)
			return 0;
		/*
		 * At a low rate the next tick may be far: the end of the program is not waited for.
		 */
		err = due ? checked_tick(sampler, sink, now_ns) : check_program(sampler, now_ns);
		if (!err && sampler->natives)
			err = take_dumps(sampler, ticker, now_ns);
		sink_err = sink->ops->tick ? sink->ops->tick(sink, now_ns) : 0;
		if (sink_err)
			return sink_err;
		if (!err) {
			failures.nr = due ? 0 : failures.nr;
			continue;
		}
		sampler->stats.failed_ticks += due && sampler->stats.ticks == nr_ticks;
		if (err == -ESRCH) {
			*ret_end = target_end(sampler);
			return 0;
		}
		if (!sampler_is_passing(err))
			return err;
		*ret_end = END_REPLACED;
		if (failures_add(&failures, now_ns))
			return 0;
		if (!ticker->interval_ns)
			(void)usleep(REFRESH_PAUSE_US);
	}
}

/* Threads may have other names by the end of a run; a target that is gone has none. */
static int read_last_names(struct sampler *sampler, struct sample_sink *sink)
{
	if (remote_memory_check(sampler->snapshot.memory))
		return 0;
	return sampler_names_end(sampler, sink) == -ENOMEM ? -ENOMEM : 0;
}

/* Close the account of the ticks, of which the last one was due before end_ns. */
static void account_ticks(struct sampler_stats *stats, struct ticker *ticker, uint64_t end_ns)
{
	ticker_finish(ticker, end_ns < stats->end_ns ? end_ns : stats->end_ns);
	stats->p50_lateness_ns = histogram_quantile(&stats->lateness, 500);
	stats->p99_lateness_ns = histogram_quantile(&stats->lateness, 990);
}

int sampler_run(struct sampler *sampler, const struct sampler_options *options,
		struct sample_sink *sink, enum sampler_end *ret_end)
{
	struct sampler_stats *stats = &sampler->stats;
	struct ticker_clock clock;
	bool waits_for_dumps;
	struct ticker ticker;
	uint64_t end_ns = UINT64_MAX;
	int err;

	waits_for_dumps = sampler->natives && sampler_natives_clock(sampler->natives, &clock);
	ticker_start(&ticker, &(struct ticker_options){
				      .rate_hz = options->rate_hz,
				      .jitter = options->jitter,
				      .seed = clock_now_ns(),
				      .clock = waits_for_dumps ? &clock : NULL,
				      .stats = stats,
			      });
	stats->start_ns = ticker.begin_ns;
	if (options->duration_ns) {
		end_ns = stats->start_ns + options->duration_ns;
		sampler->cut_ns = end_ns + CUT_OFF_AFTER_NS;
	}
	sampler->snapshot.stop = options->stop;
	sampler->holds = (options->rate_hz <= 0 || options->rate_hz > HELD_LEAST_HZ) &&
			 !sampler->looks.cpu && !sampler->looks.states;
	if (sampler->natives)
		sink = sampler_natives_begin(sampler->natives, sink);
	err = run_loop(sampler, options, sink, &ticker, end_ns, ret_end);
	if (sampler->natives)
		sampler_natives_end(sampler->natives);
	if (!err)
		err = prove_last(sampler, sink);
	sampler_lose_held(sampler);
	sampler->holds = false;
	stats->end_ns = clock_now_ns();
	account_ticks(stats, &ticker, end_ns);
	frame_cache_end(&sampler->cache);
	if (!err && (*ret_end == END_DURATION || *ret_end == END_STOPPED))
		err = read_last_names(sampler, sink);
	sampler->snapshot.stop = NULL;
	sampler->cut_ns = UINT64_MAX;
	stats->end_ns = clock_now_ns();
	count_cache(sampler);
	return err;
}
