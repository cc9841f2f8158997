/* SPDX-License-Identifier: MIT */
#include "sampler/sampler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "sampler/python/code.h"
#include "sampler/python/frames.h"
#include "sampler/snapshot.h"
#include "sampler/ticker.h"

/* So many links may be learnt in one tick for one thread; the rest at the next ones. */
enum { MAX_NEW_LINKS = 64 };

/* So often a thread is copied again in one tick because of code objects never seen before. */
enum { MAX_RETAKES = 4 };

/*
 * A copy that takes so many times longer than usual, and so much at least, was
 * interrupted: its parts may come from different moments. Whether that happens
 * has nothing to do with what the target does. A stack that is as it was, that of
 * a thread that waits, cannot be torn and is kept.
 */
enum { SLOW_FACTOR = 3, SLOW_LEAST_NS = 10000, USUAL_WEIGHT = 16 };

/* How often a dump tries to catch a running thread in a state that can be proven. */
enum { DUMP_MAX_TRIES = 50 };

/* A target whose interpreter cannot be found for so long has ended it. */
#define REPLACED_AFTER_NS 500000000u
#define REFRESH_PAUSE_US  1000

/* How often a dump tries to read a thread list that changes while it is read. */
enum { REFRESH_MAX_TRIES = 200 };

/* How often it is made sure that it is still the same program, beside each new thread list. */
#define CHECK_EVERY_NS 250000000u

/* What is kept of one thread from tick to tick. */
struct sampled_thread {
	struct sample_thread *info; /* owned by the sampler; NULL if the slot is free */
	struct frame_list list;
	struct frame *frames; /* the stack as people see it, outermost first */
	uint32_t max_frames;
	uint32_t nr_same;   /* so many of frames are as in the last sample handed on */
	uint32_t nr_shown;  /* so many of list's frames have been put into frames as they are */
	uint32_t nr_listed; /* list's length when it was shown last */
	bool shown_dying;   /* some of those were left out as dying */
	uint64_t last_ns;   /* time of that sample; 0: none yet */
};

struct sampler {
	const struct process *process; /* borrowed, may be NULL */
	const struct py_build *build;  /* borrowed */
	struct snapshot snapshot;
	struct code_cache codes;
	struct sampled_thread *threads; /* by slot */
	uint32_t nr_threads;
	struct sample_thread **infos; /* every thread ever seen, by id; owned */
	uint32_t nr_infos;
	uint64_t last_tick_ns;	/* 0: none yet */
	uint64_t last_check_ns; /* of a run: when the memory was found to be the program's */
	uint64_t usual_copy_ns; /* running mean of how long a snapshot takes; 0: none yet */
	bool copy_was_slow;	/* this tick's took far longer */
	struct sampler_stats stats;
};

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
	code_cache_init(&sampler->codes, memory, build);
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
	snapshot_done(&sampler->snapshot);
	code_cache_done(&sampler->codes);
	for (uint32_t i = 0; i < sampler->nr_threads; i++) {
		frame_list_done(&sampler->threads[i].list);
		free(sampler->threads[i].frames);
	}
	free(sampler->threads);
	for (uint32_t i = 0; i < sampler->nr_infos; i++)
		free(sampler->infos[i]);
	free(sampler->infos);
	free(sampler);
}

const struct sampler_stats *sampler_stats(const struct sampler *sampler)
{
	return &sampler->stats;
}

/* The thread id in our namespace of one that the thread itself knows as native_tid. */
static pid_t host_tid(const struct sampler *sampler, uint64_t native_tid)
{
	cleanup_free struct process_thread *threads = NULL;
	size_t nr_threads = 0;
	bool other;

	if (!native_tid || native_tid > INT32_MAX || !sampler->process)
		return (pid_t)(native_tid > INT32_MAX ? 0 : native_tid);
	if (process_other_namespace(sampler->process, "pid", &other) != 0 || !other)
		return (pid_t)native_tid;
	if (process_threads(sampler->process, &threads, &nr_threads) != 0)
		return 0;
	for (size_t i = 0; i < nr_threads; i++)
		if (threads[i].ns_tid == (pid_t)native_tid)
			return threads[i].tid;
	return 0;
}

static void describe_thread(struct sampler *sampler, const struct snapshot_thread *thread,
			    struct sample_thread *info)
{
	char path[64];
	size_t length;

	info->tid = host_tid(sampler, thread->ref.native_tid);
	info->interpreter_id = sampler->snapshot.interpreters[thread->ref.interpreter].ref.id;
	if (!sampler->process || !info->tid)
		return;
	info->is_main = info->tid == sampler->process->pid && info->interpreter_id == 0;
	(void)snprintf(path, sizeof(path), "task/%d/comm", info->tid);
	(void)process_read_file(sampler->process, path, info->name, sizeof(info->name));
	length = strcspn(info->name, "\n");
	info->name[length < sizeof(info->name) ? length : sizeof(info->name) - 1] = '\0';
	/* Two links of namespaces; opening, reading to the end and closing the name. */
	sampler->stats.other_syscalls += 6;
}

/* Give a new thread its slot and its description. 0 or -ENOMEM. */
static int thread_begin(struct sampler *sampler, const struct snapshot_thread *thread)
{
	struct sampled_thread *sampled;
	struct sample_thread *info;

	if (thread->slot >= sampler->nr_threads) {
		uint32_t nr = sampler->snapshot.nr_slots;
		struct sampled_thread *threads =
			reallocarray(sampler->threads, nr, sizeof(*threads));

		if (!threads)
			return -ENOMEM;
		memset(threads + sampler->nr_threads, 0,
		       (nr - sampler->nr_threads) * sizeof(*threads));
		sampler->threads = threads;
		sampler->nr_threads = nr;
	}
	if ((sampler->nr_infos & (sampler->nr_infos - 1)) == 0) {
		uint32_t nr = sampler->nr_infos ? sampler->nr_infos * 2 : 1;
		struct sample_thread **infos =
			reallocarray(sampler->infos, nr, sizeof(struct sample_thread *));

		if (!infos)
			return -ENOMEM;
		sampler->infos = infos;
	}
	info = calloc(1, sizeof(*info));
	if (!info)
		return -ENOMEM;
	info->id = sampler->nr_infos;
	sampler->infos[sampler->nr_infos++] = info;
	describe_thread(sampler, thread, info);
	sampled = &sampler->threads[thread->slot];
	sampled->info = info;
	sampled->nr_same = 0;
	sampled->nr_shown = 0;
	sampled->last_ns = sampler->last_tick_ns;
	return 0;
}

/* Walk a thread's copied stack once. */
static int walk_once(struct sampler *sampler, struct snapshot_thread *thread,
		     struct frame_walk *ret_walk)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	int err;

	*ret_walk = (struct frame_walk){
		.build = sampler->build,
		.codes = &sampler->codes,
		.clock = &thread->clock,
		.copy = &thread->stack,
		.list = &sampled->list,
	};
	/* A counter that is not where our table says proves nothing. */
	if (sampler->codes.next_version_unusable)
		thread->clock.has_next_version = false;
	err = frames_walk_up(ret_walk);
	if (sampled->nr_shown > sampled->list.nr_unchanged)
		sampled->nr_shown = sampled->list.nr_unchanged;
	return err;
}

/* Walk a thread's stack, learning the links that turn out to be missing: *ret_nr_learnt. */
static int walk_links(struct sampler *sampler, struct snapshot_thread *thread,
		      struct frame_walk *walk, int *ret_nr_learnt)
{
	int err = walk_once(sampler, thread, walk);
	int i;

	for (i = 0; i < MAX_NEW_LINKS && err == -EAGAIN; i++) {
		err = stack_copy_add_link(&thread->stack, sampler->snapshot.memory,
					  &sampler->build->offsets, walk->wanted_link_addr);
		if (err) {
			walk->loss = LOSS_LINK;
			return err == -E2BIG ? -EBADMSG : err;
		}
		err = walk_once(sampler, thread, walk);
	}
	*ret_nr_learnt = i;
	if (err != -EAGAIN)
		return err;
	walk->loss = LOSS_LINK;
	return -EBADMSG;
}

/*
 * Walk a thread's stack. A new generator proves nothing by a copy that came after the
 * chunks', nor does a new code object where no counter tells its age: the thread is
 * copied again, with what is known by then. That is no choice among states: whatever
 * the next copy shows is taken.
 */
static int walk_thread(struct sampler *sampler, struct snapshot_thread *thread,
		       enum sample_loss *ret_loss)
{
	struct frame_walk walk;
	int nr_learnt;
	int err = walk_links(sampler, thread, &walk, &nr_learnt);
	bool again = !err && walk.trimmed && nr_learnt > 0;

	for (int i = 0; !err && (again || (walk.has_new_code && i < MAX_RETAKES)); i++) {
		err = snapshot_retake(&sampler->snapshot, thread);
		if (err)
			return err;
		if (!thread->copied) {
			*ret_loss = LOSS_LINK;
			return -EBADMSG;
		}
		again = false;
		err = walk_links(sampler, thread, &walk, &nr_learnt);
	}
	if (!err && walk.has_new_code) {
		walk.loss = LOSS_CODE;
		err = -EBADMSG;
	}
	if (err == -EBADMSG)
		*ret_loss = walk.loss;
	if (!err && walk.trimmed)
		sampler->stats.trimmed++;
	return err;
}

/* Put the frames that people see into sampled->frames. *ret_nr_frames or -ENOMEM. */
static int show_frames(struct sampled_thread *sampled, uint32_t *ret_nr_frames)
{
	const struct frame_list *list = &sampled->list;
	uint32_t first = sampled->nr_shown < list->nr_frames ? sampled->nr_shown : list->nr_frames;
	uint32_t nr;

	if (list->has_dying || sampled->shown_dying)
		first = 0;
	nr = first ? list->frames[first - 1].nr_begun : 0;
	if (list->nr_frames > sampled->max_frames) {
		struct frame *frames =
			reallocarray(sampled->frames, list->max_frames, sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		sampled->frames = frames;
		sampled->max_frames = list->max_frames;
	}
	for (uint32_t i = first; i < list->nr_frames; i++) {
		const struct walked_frame *walked = &list->frames[i];
		struct frame *frame = &sampled->frames[nr];
		int32_t line;

		if (!frame_visible(list, i))
			continue;
		line = code_line(walked->code, walked->instr_ptr);
		if (nr >= sampled->nr_same || frame->function != walked->code->function ||
		    frame->line != line) {
			*frame = (struct frame){.function = walked->code->function, .line = line};
			if (sampled->nr_same > nr)
				sampled->nr_same = nr;
		}
		nr++;
	}
	sampled->nr_shown = list->nr_frames;
	sampled->nr_listed = list->nr_frames;
	sampled->shown_dying = list->has_dying;
	*ret_nr_frames = nr;
	return 0;
}

/* Hand on what is in the thread's list; of sample, time_ns, flags and error are set. */
static int emit_sample(struct sampler *sampler, const struct snapshot_thread *thread,
		       struct sample sample, struct sample_sink *sink)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	int err = show_frames(sampled, &sample.nr_frames);

	if (err)
		return err;
	sample.wall_ns = sampled->last_ns ? sample.time_ns - sampled->last_ns : 0;
	sample.thread = sampled->info;
	sample.frames = sampled->frames;
	sample.nr_unchanged =
		sampled->nr_same < sample.nr_frames ? sampled->nr_same : sample.nr_frames;
	if (thread->holds_gil)
		sample.flags |= SAMPLE_HOLDS_GIL;
	sampled->last_ns = sample.time_ns;
	err = sink->ops->sample(sink, &sample);
	sampled->nr_same = sample.nr_frames;
	sampler->stats.samples++;
	return err;
}

/* Whether the stack is another one than was handed on last. */
static bool stack_moved(const struct sampled_thread *sampled)
{
	return sampled->list.changed || sampled->list.nr_frames != sampled->nr_listed;
}

static int sample_thread(struct sampler *sampler, struct snapshot_thread *thread, uint64_t now_ns,
			 struct sample_sink *sink)
{
	enum sample_loss loss;
	int walk_err, err;

	if (!thread->copied)
		return 0; /* it has ended */
	if (thread->is_new) {
		err = thread_begin(sampler, thread);
		if (err)
			return err;
		thread->is_new = false;
	}
	walk_err = walk_thread(sampler, thread, &loss);
	if (!walk_err && sampler->copy_was_slow && stack_moved(&sampler->threads[thread->slot])) {
		walk_err = -EBADMSG;
		loss = LOSS_SLOW;
	}
	if (!walk_err)
		err = emit_sample(sampler, thread, (struct sample){.time_ns = now_ns}, sink);
	else if (walk_err != -EBADMSG)
		return walk_err;
	else
		err = 0;
	if (walk_err)
		sampler->stats.lost[loss]++;
	if (err)
		return err;
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
		if (thread->is_new || thread->clock.has_generation ||
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

/* Judge how long the copy of this tick took. */
static void judge_copy(struct sampler *sampler, uint64_t copy_ns)
{
	uint64_t limit_ns = sampler->usual_copy_ns * SLOW_FACTOR + SLOW_LEAST_NS;

	sampler->copy_was_slow = sampler->usual_copy_ns && copy_ns > limit_ns;
	/* A target that has become slower to copy is followed, one interruption is not. */
	if (sampler->copy_was_slow)
		copy_ns = sampler->usual_copy_ns * 2 + 1;
	if (!sampler->usual_copy_ns)
		sampler->usual_copy_ns = copy_ns;
	sampler->usual_copy_ns += copy_ns / USUAL_WEIGHT - sampler->usual_copy_ns / USUAL_WEIGHT;
}

int sampler_tick(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns)
{
	struct snapshot *snapshot = &sampler->snapshot;
	bool refreshed = snapshot->stale;
	int err;

	if (snapshot->stale) {
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
	if (err)
		return err;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		err = sample_thread(sampler, snapshot->threads[i], now_ns, sink);
		if (err)
			return err;
	}
	sampler->last_tick_ns = now_ns;
	return 0;
}

/* The current frame of a thread and the sentinel at the bottom of its stack (0 before 3.15). */
static int read_current_frame(struct sampler *sampler, const struct snapshot_thread *thread,
			      remote_addr *ret_current_addr, remote_addr *ret_base_addr)
{
	const struct py_offsets *offsets = &sampler->build->offsets;
	struct remote_memory *memory = sampler->snapshot.memory;
	uint64_t addr = thread->ref.addr + offsets->thread.current_frame;
	int err = 0;

	if (offsets->thread.cframe != OFFSET_ABSENT) {
		err = remote_memory_read_u64(memory, thread->ref.addr + offsets->thread.cframe,
					     &addr);
		addr += offsets->cframe.current_frame;
	}
	*ret_base_addr = 0;
	if (!err && offsets->thread.base_frame != OFFSET_ABSENT)
		err = remote_memory_read_u64(memory, thread->ref.addr + offsets->thread.base_frame,
					     ret_base_addr);
	return err ? err : remote_memory_read_u64(memory, addr, ret_current_addr);
}

static int walk_exact(struct sampler *sampler, const struct snapshot_thread *thread,
		      struct frame_list *list)
{
	const struct code_clock *clock = &thread->clock;
	remote_addr current_addr, base_addr;
	int err;

	list->nr_frames = 0;
	err = read_current_frame(sampler, thread, &current_addr, &base_addr);
	return err ? err : frames_walk_exact(&sampler->codes, clock, current_addr, base_addr, list);
}

static bool lists_equal(const struct frame_list *a, const struct frame_list *b)
{
	if (a->nr_frames != b->nr_frames)
		return false;
	for (uint32_t i = 0; i < a->nr_frames; i++)
		if (a->frames[i].addr != b->frames[i].addr ||
		    a->frames[i].executable != b->frames[i].executable ||
		    a->frames[i].instr_ptr != b->frames[i].instr_ptr)
			return false;
	return true;
}

/* Whether the thread, and not the whole target, was in the way. */
static bool is_passing_walk(int err)
{
	return !err || err == -EAGAIN || err == -EBADMSG || err == -EFAULT;
}

/*
 * What the sampling walk makes of one more copy of the thread: 0, -EBADMSG, -ENOENT
 * (it has ended), or worse.
 */
static int dump_by_copy(struct sampler *sampler, struct snapshot_thread *thread)
{
	enum sample_loss loss;
	int err = snapshot_retake(&sampler->snapshot, thread);
	int learn_err;

	if (err)
		return err;
	if (!thread->copied)
		return -ENOENT;
	err = walk_thread(sampler, thread, &loss);
	learn_err = stack_copy_learn(&thread->stack, sampler->snapshot.memory,
				     &sampler->build->offsets, err && loss == LOSS_GREW);
	return err ? err : learn_err;
}

/*
 * Have the thread's stack in its list, and in ret_sample whether it is proven or
 * could be followed at all. 0; -ENOENT: the thread has ended; or what ends the dump.
 */
static int walk_for_dump(struct sampler *sampler, struct snapshot_thread *thread,
			 struct sample *ret_sample)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	struct frame_list again = {0};
	bool proven = false;
	int err = 0;

	for (int i = 0; i < DUMP_MAX_TRIES && !proven; i++) {
		int again_err = walk_exact(sampler, thread, &again);

		err = walk_exact(sampler, thread, &sampled->list);
		proven = !err && !again_err && lists_equal(&sampled->list, &again);
		if (proven || !is_passing_walk(err))
			break;
		err = dump_by_copy(sampler, thread);
		proven = !err;
		if (!is_passing_walk(err))
			break;
	}
	/* What is shown for want of a proof is the chain as it could be followed last. */
	if (!proven && is_passing_walk(err))
		err = walk_exact(sampler, thread, &sampled->list);
	sampled->nr_shown = 0;
	frame_list_done(&again);
	if (!is_passing_walk(err) && err != -E2BIG)
		return err;
	*ret_sample = (struct sample){.flags = proven ? 0 : SAMPLE_UNPROVEN, .error = err};
	return 0;
}

/* Hand on one thread as it is now, unless it has ended. Errors of sampler_dump(). */
static int dump_thread(struct sampler *sampler, struct snapshot_thread *thread,
		       struct sample_sink *sink)
{
	struct sample sample;
	int err;

	if (!thread->copied)
		return 0;
	err = thread_begin(sampler, thread);
	if (err)
		return err;
	thread->is_new = false;
	err = walk_for_dump(sampler, thread, &sample);
	if (err)
		return err == -ENOENT ? 0 : err;
	return emit_sample(sampler, thread, sample, sink);
}

/* Whether an error of a tick may be gone at the next one: the lists were in motion. */
static bool is_passing(int err)
{
	return err == -ENOENT || err == -EBADMSG || err == -EFAULT || err == -E2BIG;
}

/* Read the thread list of a process that may be starting and ending threads all the time. */
static int refresh_patiently(struct snapshot *snapshot)
{
	int err = snapshot_refresh(snapshot);

	for (int i = 1; i < REFRESH_MAX_TRIES && is_passing(err); i++) {
		(void)usleep(REFRESH_PAUSE_US);
		err = snapshot_refresh(snapshot);
	}
	return err;
}

int sampler_dump(struct sampler *sampler, struct sample_sink *sink)
{
	struct snapshot *snapshot = &sampler->snapshot;
	int err = refresh_patiently(snapshot);

	if (!err)
		err = snapshot_take(snapshot);
	for (size_t i = snapshot->nr_threads; !err && i > 0; i--)
		err = dump_thread(sampler, snapshot->threads[i - 1], sink);
	return err;
}

/* A tick, of the program that it began with: else -ESRCH. Errors of sampler_tick(). */
static int checked_tick(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns)
{
	if (now_ns - sampler->last_check_ns >= CHECK_EVERY_NS) {
		int err = remote_memory_check(sampler->snapshot.memory);

		if (err)
			return err;
		sampler->last_check_ns = now_ns;
	}
	return sampler_tick(sampler, sink, now_ns);
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

/* The loop of sampler_run(), without the accounts. */
static int run_loop(struct sampler *sampler, const struct sampler_options *options,
		    struct sample_sink *sink, struct ticker *ticker, enum sampler_end *ret_end)
{
	uint64_t start_ns = clock_now_ns();
	uint64_t good_ns = start_ns;
	uint64_t end_ns = options->duration_ns ? start_ns + options->duration_ns : UINT64_MAX;

	for (;;) {
		bool due;
		uint64_t now_ns = ticker_wait(ticker, end_ns, &due);
		int err;

		*ret_end = END_STOPPED;
		if (options->stop && *options->stop)
			return 0;
		*ret_end = END_DURATION;
		if (now_ns >= end_ns)
			return 0;
		if (!due)
			continue;
		err = checked_tick(sampler, sink, now_ns);
		if (err == -ESRCH) {
			*ret_end = target_end(sampler);
			return 0;
		}
		if (!err) {
			good_ns = now_ns;
			continue;
		}
		if (!is_passing(err))
			return err;
		*ret_end = END_REPLACED;
		if (now_ns - good_ns > REPLACED_AFTER_NS)
			return 0;
		if (!ticker->interval_ns)
			(void)usleep(REFRESH_PAUSE_US);
	}
}

int sampler_run(struct sampler *sampler, const struct sampler_options *options,
		struct sample_sink *sink, enum sampler_end *ret_end)
{
	struct sampler_stats *stats = &sampler->stats;
	struct ticker ticker;
	int err;

	ticker_start(&ticker, options->rate_hz);
	stats->start_ns = clock_now_ns();
	err = run_loop(sampler, options, sink, &ticker, ret_end);
	stats->end_ns = clock_now_ns();
	stats->late_ticks += ticker.late_ticks;
	stats->other_syscalls += ticker.nr_sleeps;
	if (stats->max_lateness_ns < ticker.max_lateness_ns)
		stats->max_lateness_ns = ticker.max_lateness_ns;
	return err;
}
