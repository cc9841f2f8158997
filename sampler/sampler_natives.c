/* SPDX-License-Identifier: MIT */
#include "sampler/sampler_natives.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "procmem/cleanup.h"
#include "procmem/task.h"
#include "sampler/dumped_entry.h"
#include "sampler/dumped_loops.h"
#include "sampler/dumped_thread.h"
#include "sampler/python/loop_entries.h"
#include "sampler/sampler_natives_state.h"
#include "sampler/stack_bridge.h"

/*
 * A thread of which no dump came for so much of a period has not run all the time: it may wait.
 * Dumps of one that runs come a little later than each period. With two periods, of threads that
 * compete for the GIL 1.6 s were told to hold it in each second, and with this 1.2 s.
 */
enum { PERCENT_WITHOUT_DUMP = 125 };

/*
 * One that could run has no sample of a tick: its next dump has the time. But after so long it
 * has one without C frames, as its event may not work.
 */
#define UNSEEN_MAX_NS 1000000000u

/* Ticks find the names of threads, new interpreters, and what has ended: so often at least. */
#define TICK_AT_LEAST_NS 100000000u

/* Modules. */

static uint64_t own_cpu_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Read what is mapped, if that is due. */
static int renew_modules(struct sampler_natives *natives, uint64_t now_ns)
{
	const struct perf_events_stats *events = &natives->events.stats;
	struct maps before;
	uint64_t before_ns;
	int err;

	if (!recent_maps_are_due(&natives->maps, now_ns, events))
		return 0;
	before_ns = own_cpu_ns();
	err = recent_maps_read(&natives->maps, natives->options.process, now_ns, events, &before);
	if (err)
		return err;
	waiting_stacks_done(&natives->waiting);
	err = native_stacks_set_maps(&natives->stacks, &natives->maps.maps);
	maps_done(&before);
	if (!err)
		err = waiting_stacks_init(&natives->waiting, natives->options.memory,
					  &natives->stacks);
	recent_maps_took(&natives->maps, own_cpu_ns() - before_ns);
	return err;
}

void sampler_natives_judge_maps(struct sampler_natives *natives)
{
	const struct native_stacks *stacks = &natives->stacks;
	const remote_addr last_addr = stacks->frames[stacks->nr_frames - 1].lookup_addr;

	if (!stacks->is_whole && !unwind_modules_has(stacks->modules, last_addr))
		natives->maps.are_old = true;
}

/* Samples of ticks. */

/* What a merged sample had in common with the one before it is not known. */
static int take_tick_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct sample_sink *next = ((struct sampler_natives *)sink)->next;
	struct sample whole = *sample;

	whole.nr_unchanged = 0;
	return next->ops->sample(next, &whole);
}

static int take_tick(struct sample_sink *sink, uint64_t now_ns)
{
	struct sample_sink *next = ((struct sampler_natives *)sink)->next;

	return next->ops->tick ? next->ops->tick(next, now_ns) : 0;
}

static void take_name(struct sample_sink *sink, const struct sample_thread *thread)
{
	struct sample_sink *next = ((struct sampler_natives *)sink)->next;

	if (next->ops->renamed)
		next->ops->renamed(next, thread);
}

struct sample_sink *sampler_natives_begin(struct sampler_natives *natives, struct sample_sink *next)
{
	natives->next = next;
	return &natives->sink;
}

void sampler_natives_add(struct sampler_natives *natives, const struct sample_thread *thread)
{
	if (natives->has_events && thread->tid)
		(void)perf_events_add(&natives->events, thread->tid); /* it counts those refused */
}

/* Samples of dumps. */

static int index_codes(struct sampler_natives *natives, const struct frame_list *list)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < list->nr_frames; i++)
		err = code_index_add(&natives->index, list->frames[i].code);
	return err;
}

static int merge(struct sample_sink *sink, const struct sample *sample)
{
	const struct merge_sink *merge = (const struct merge_sink *)sink;

	return native_stacks_hand_on(&merge->natives->stacks, sample, merge->next);
}

/* Hand on what is in natives->list, with the C frames, as the thread's sample. */
static int hand_on(struct sampler_natives *natives, const struct snapshot_thread *thread,
		   uint64_t now_ns)
{
	struct sampler *sampler = natives->options.sampler;
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const struct frame_list list = sampled->list;
	const uint32_t collector = sampled->walked.collector;
	struct detail_sink detailed;
	int err;

	sampled->list = natives->list;
	sampled->nr_shown = 0;
	/* The walk may have had more frames below the collector than there are. */
	sampled->walked.collector =
		thread_state_collector(&sampler->snapshot, thread, &sampled->list);
	natives->merge.next = natives->next;
	detail_sink_init(&detailed, &sampler->codes, LOOP_ENTRIES_COPIED, &sampled->list, NULL,
			 &natives->merge.sink);
	err = sampler_thread_emit(sampler, thread, (struct sample){.time_ns = now_ns},
				  &detailed.sink);
	natives->list = sampled->list;
	sampled->list = list;
	sampled->nr_shown = 0;
	sampled->walked.collector = collector;
	return err;
}

struct dumped_stack sampler_natives_dumped_stack(struct sampler_natives *natives,
						 const struct snapshot_thread *thread,
						 struct stack_window *window,
						 const struct frame_list *late)
{
	return (struct dumped_stack){
		.natives = &natives->stacks,
		.window = window,
		.now = &natives->waiting.window,
		.places = &natives->places,
		.index = &natives->index,
		.names = &natives->names,
		.codes = &natives->options.sampler->codes,
		.thread_addr = thread->ref.addr,
		.clock = &thread->clock,
		.late = late,
		.steady = &natives->options.sampler->threads[thread->slot].steady,
		.hole = &natives->hole,
	};
}

/* The sample of a dump that was unwound. */
static int take_stack(struct sampler_natives *natives, struct snapshot_thread *thread,
		      const struct dumped_stack *stack, uint64_t now_ns)
{
	uint32_t nr_holes;
	int err = index_codes(natives, stack->late);

	if (err)
		return err;
	stack_window_forget(stack->now);
	dumped_loops_learn(stack);
	err = dumped_stack_frames(stack, &natives->list, &nr_holes);
	natives->stats.nr_unlearnt += err == -EAGAIN;
	if (err)
		return err;
	natives->stats.nr_stacks++;
	natives->stats.nr_broken += !natives->stacks.is_whole;
	natives->stats.nr_python_holed += nr_holes != 0;
	return hand_on(natives, thread, now_ns);
}

void sampler_natives_enter_kernel(struct sampler_natives *natives)
{
	native_stacks_enter_kernel(&natives->stacks, natives->kernel.functions,
				   natives->kernel.nr_functions);
}

static int take_dump(struct sampler_natives *natives, const struct perf_dump *dump, uint64_t now_ns)
{
	const struct registers registers = registers_of_perf(dump->registers);
	struct stack_window window = {
		.start = registers.values[REGISTER_SP],
		.bytes = dump->stack,
		.nr_bytes = dump->nr_stack_bytes,
	};
	struct snapshot_thread *thread;
	const struct frame_list *late;
	struct dumped_stack stack;
	int err = dumped_thread_look(natives->options.sampler, dump->tid, window.start, &thread,
				     &late);

	if (err == -ENOENT)
		natives->stats.nr_foreign++;
	if (err)
		return err;
	jit_frames_set_time(natives->jit, dump->time_ns);
	native_stacks_unwind(&natives->stacks, &registers, &window, SAMPLER_NATIVES_MAX_FRAMES);
	sampler_natives_judge_maps(natives);
	err = kernel_frames_take(&natives->kernel, dump->kernel_addrs, dump->nr_kernel_addrs);
	if (err)
		return err;
	sampler_natives_enter_kernel(natives);
	stack = sampler_natives_dumped_stack(natives, thread, &window, late);
	stack_bridge_learn(&stack);
	stack_bridge_cross(&stack);
	return take_stack(natives, thread, &stack, now_ns);
}

int sampler_natives_take(struct sampler_natives *natives, uint64_t now_ns)
{
	struct perf_dump dump;
	int err = renew_modules(natives, now_ns);

	/* Ticks that take longer than from one to the next leave no time to wait. */
	if (natives->has_events)
		perf_events_catch_up(&natives->events);
	while (!err && !perf_events_next(&natives->events, &dump)) {
		/* What was mapped before the dump is known by now. */
		err = renew_modules(natives, now_ns);
		if (!err)
			err = take_dump(natives, &dump, now_ns);
		if (err == -EAGAIN || sampler_is_passing(err))
			err = 0;
	}
	return err;
}

/* Samples of threads that use no CPU time. */

static uint64_t without_dump_ns(const struct sampler_natives *natives)
{
	return natives->options.period_ns * PERCENT_WITHOUT_DUMP / 100;
}

/* The sample of a thread of which nothing tells where its C stack is. */
static int take_python(struct sampler_natives *natives, struct snapshot_thread *thread,
		       uint64_t now_ns)
{
	struct sampler *sampler = natives->options.sampler;
	int err = sampler_thread_look(sampler, thread, false);

	return err ? err
		   : sampler_thread_emit(sampler, thread, (struct sample){.time_ns = now_ns},
					 &natives->sink);
}

int sampler_natives_tick(struct sampler_natives *natives, struct snapshot_thread *thread,
			 uint64_t now_ns)
{
	const struct process *process = natives->options.process;
	struct sampled_thread *sampled = &natives->options.sampler->threads[thread->slot];
	const pid_t tid = sampled->info->tid;
	uint64_t unseen_ns, nr_runs;
	struct task_place place;
	int err = -ENOENT;

	if (!sampled->last_ns)
		sampled->last_ns = now_ns; /* the first tick: its time begins */
	unseen_ns = now_ns - sampled->last_ns;
	if (natives->has_events && unseen_ns < without_dump_ns(natives))
		return 0;
	if (tid) {
		nr_runs = task_read_runs(process, tid);
		if (sampler_natives_take_again(natives, thread, nr_runs, now_ns, &err))
			return err;
		err = task_read_place(process, tid, nr_runs, &place);
	}
	/* What it ran last may be there still, but it has ended since the threads were listed. */
	if (err == -ESRCH && !process_has_thread(process, tid))
		return 0;
	if (!err)
		err = sampler_natives_take_waiting(natives, thread, &place, now_ns);
	else if (err != -EAGAIN)
		err = take_python(natives, thread, now_ns);
	if (err == -EAGAIN && !natives->has_events)
		return err;
	if (err == -EAGAIN && unseen_ns >= UNSEEN_MAX_NS)
		err = take_python(natives, thread, now_ns);
	if (err == -EBADMSG)
		natives->options.sampler->stats.lost[LOSS_MOVED]++;
	return err == -EAGAIN || sampler_is_passing(err) ? 0 : err;
}

uint64_t sampler_natives_told_until(const struct sampler_natives *natives)
{
	const struct sampler *sampler = natives->options.sampler;
	const struct snapshot *snapshot = &sampler->snapshot;
	uint64_t until_ns = sampler->last_tick_ns + TICK_AT_LEAST_NS;

	if (!natives->has_events || snapshot->stale)
		return 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct snapshot_thread *thread = snapshot->threads[i];
		const uint64_t last_ns = sampler->threads[thread->slot].last_ns;
		const uint64_t told_ns = last_ns + without_dump_ns(natives);

		if (thread->is_new || !last_ns)
			return 0;
		if (told_ns < until_ns)
			until_ns = told_ns;
	}
	return until_ns;
}

static uint64_t clock_of_natives(void *context)
{
	(void)context;
	return clock_now_ns();
}

static void sleep_of_natives(void *context, uint64_t time_ns)
{
	struct sampler_natives *natives = context;

	if (natives->options.sampler->preempt)
		preempt_go(natives->options.sampler->preempt);
	perf_events_wait(&natives->events, time_ns);
}

bool sampler_natives_clock(struct sampler_natives *natives, struct ticker_clock *ret_clock)
{
	*ret_clock = (struct ticker_clock){
		.now_ns = clock_of_natives,
		.sleep_until = sleep_of_natives,
		.context = natives,
	};
	return natives->has_events;
}

/* Making. */

/* Without any maps: they are read then. */
static int init_stacks(struct sampler_natives *natives)
{
	const struct sampler_natives_options *options = &natives->options;

	return native_stacks_init(&natives->stacks,
				  &(struct native_stacks_options){
					  .memory = options->memory,
					  .maps = &natives->maps.maps,
					  .images = options->images,
					  .sampler = options->sampler,
					  .jit = natives->jit,
					  .max_frames = SAMPLER_NATIVES_MAX_FRAMES,
					  .keeps_registers = true,
					  .keeps_trampolines = options->keeps_trampolines,
				  });
}

static int init_hole(struct sampler_natives *natives)
{
	natives->hole = (struct code){
		.function = sampler_function(natives->options.sampler, FUNCTION_NATIVE,
					     NATIVE_STACKS_HOLE, ""),
		.foreign = true,
		.in_use = true,
	};
	return natives->hole.function ? 0 : -ENOMEM;
}

/* Who may be told where programs are need not be told where the kernel is. */
static void judge_kernel(const struct sampler_natives *natives, struct message *ret_why)
{
	if (natives->kernel.names && natives->events.user_only)
		message_set(ret_why, "perf_event_open tells of programs only: for the kernel's "
				     "frames kernel.perf_event_paranoid has to be 1 or less, or it "
				     "takes CAP_PERFMON");
}

/* Follow threads that run, or say why that cannot be. 0; -ENOMEM, -ESRCH. */
static int open_events(struct sampler_natives *natives, struct message *ret_why)
{
	const struct sampler_natives_options *options = &natives->options;
	const struct perf_events_options events = {
		.period_ns = options->period_ns,
		.max_stack_bytes = SAMPLER_NATIVES_STACK_BYTES,
		.tells_kernel = natives->kernel.names != NULL,
	};
	int err;

	if (!dumped_entry_is_told(options->sampler->build)) {
		message_set(ret_why, "CPython before 3.11 does not tell where in the C stack its "
				     "frames are while it runs");
		return 0;
	}
	err = perf_events_open(options->process, &events, &natives->events, ret_why);
	natives->has_events = !err;
	return ret_why->text[0] ? 0 : err;
}

int sampler_natives_create(const struct sampler_natives_options *options,
			   struct sampler_natives **ret_natives, struct message *ret_why,
			   struct message *ret_why_no_kernel)
{
	static const struct sample_sink_ops ops = {
		.sample = take_tick_sample,
		.renamed = take_name,
		.tick = take_tick,
	};
	static const struct sample_sink_ops merge_ops = {.sample = merge};
	struct sampler_natives *natives;
	int err;

	natives = calloc(1, sizeof(*natives));
	if (!natives)
		return -ENOMEM;
	natives->sink.ops = &ops;
	natives->merge = (struct merge_sink){.sink.ops = &merge_ops, .natives = natives};
	natives->options = *options;
	natives->events = PERF_EVENTS_CLOSED;
	err = options->tells_kernel ? kernel_frames_open(&natives->kernel, options->process,
							 options->sampler, ret_why_no_kernel)
				    : 0;
	if (!err)
		err = open_events(natives, ret_why);
	if (!err)
		err = jit_frames_create(options->process, options->memory, &natives->jit);
	if (!err)
		err = init_stacks(natives);
	if (!err)
		err = renew_modules(natives, clock_now_ns());
	if (!err)
		err = init_hole(natives);
	if (err) {
		sampler_natives_destroy(natives);
		return err;
	}
	judge_kernel(natives, ret_why_no_kernel);
	options->sampler->natives = natives;
	*ret_natives = natives;
	return 0;
}

void sampler_natives_destroy(struct sampler_natives *natives)
{
	if (!natives)
		return;
	natives->options.sampler->natives = NULL;
	perf_events_close(&natives->events);
	waiting_stacks_done(&natives->waiting);
	waiting_samples_done(&natives->kept);
	native_stacks_done(&natives->stacks);
	jit_frames_destroy(natives->jit);
	kernel_frames_close(&natives->kernel);
	maps_done(&natives->maps.maps);
	code_index_done(&natives->index);
	frame_list_done(&natives->list);
	free(natives);
}

const struct sampler_natives_stats *sampler_natives_stats(const struct sampler_natives *natives)
{
	return &natives->stats;
}

const struct perf_events_stats *sampler_natives_events(const struct sampler_natives *natives)
{
	return &natives->events.stats;
}

bool sampler_natives_user_only(const struct sampler_natives *natives)
{
	return natives->events.user_only;
}
