/* SPDX-License-Identifier: MIT */
#include "sampler/sampler_natives.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/sched/task.h"
#include "sampler/cpython/frames/loop_entries.h"
#include "sampler/native/kernel_frames.h"
#include "sampler/native/native_stacks.h"
#include "sampler/recent_maps.h"
#include "sampler/sampler_interrupts.h"
#include "sampler/sampler_state.h"

/*
 * A thread that was not copied for this part of a period has not run all the time: it may wait.
 * Copies of a running thread come a little later than each period. With two periods, threads that
 * compete for the GIL were reported to hold it for 1.6 s in each second, with this value for 1.2
 * s.
 */
enum { PERCENT_WITHOUT_DUMP = 125 };

/*
 * A runnable thread gets no sample at a tick: its next copy accounts for the time. But after this
 * long it gets a sample without C frames, as its event may not work.
 */
#define UNSEEN_MAX_NS 1000000000u

/*
 * Ticks find thread names, new interpreters, and ended threads: there is one at least this often.
 */
#define TICK_AT_LEAST_NS 100000000u

/*
 * Number of looks that show the least CPU time between a copy of a stack and a look, and how many
 * must be known before it is used.
 */
enum { EVIDENCE_LOOKS = 16, ENOUGH_LOOKS = 8 };

/* What a look reads about a thread whose stack was copied before. */
struct evidence {
	const struct perf_dump *dump; /* borrowed; NULL: no evidence is wanted */
	bool is_read;		      /* the current look has read the fields below */
	uint8_t *stack;		      /* the same range as the copy; owned */
	uint64_t count_ns;	      /* the event's count */
	struct loop_entry *entries;   /* of the thread's list; owned */
	/* CPU time between copy and look, for the last looks. */
	uint64_t used_ns[EVIDENCE_LOOKS];
	uint32_t nr_used;
};

struct sampler_natives {
	/* The sink that adds the C frames unwound last to a sample, and the sink after it: */
	struct sample_sink merge;
	struct sample_sink *merge_next;
	const struct loop_entry *entries; /* of the thread's list */
	/* Number of outer visible frames to keep; a hole replaces the others. */
	uint32_t nr_kept;
	struct sample_sink *next; /* the run's sink */
	struct sampler_natives_options options;
	struct perf_events events;
	bool has_events; /* otherwise running threads have no C frames */
	struct recent_maps maps;
	struct native_stacks stacks;
	struct jit_frames *jit;
	struct kernel_frames kernel; /* closed unless kernel frames are asked for */
	struct evidence evidence;
	const struct function *hole;
	struct sampler_natives_stats stats;
};

/* Modules. */

/* Read the mappings again if that is due. Returns 0, an error of maps_read(), or -ENOMEM. */
static int renew_modules(struct sampler_natives *natives, uint64_t now_ns)
{
	const struct perf_events_stats *events = &natives->events.stats;
	struct maps before;
	uint64_t before_ns;
	int err;

	if (!recent_maps_are_due(&natives->maps, now_ns, events))
		return 0;
	before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	err = recent_maps_read(&natives->maps, natives->options.process, now_ns, events, &before);
	if (err)
		return err;
	err = native_stacks_set_maps(&natives->stacks, &natives->maps.maps);
	maps_done(&before);
	natives->maps.took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
	return err;
}

/* Samples without C frames. */

/* What it shares with the merged sample before it is unknown. */
static int emit_python(struct sampler_natives *natives, const struct snapshot_thread *thread,
		       struct sample sample)
{
	struct sampler *sampler = natives->options.sampler;
	struct sampled_thread *sampled = &sampler->threads[thread->slot];

	sampled->last.nr_same = 0;
	sampled->last.collector = NOT_COLLECTING;
	return sampler_thread_emit(sampler, thread, sample, natives->next);
}

/* Look at a thread, and emit its sample without C frames. Errors of sampler_thread_look(). */
static int sample_python(struct sampler_natives *natives, struct snapshot_thread *thread,
			 uint64_t now_ns)
{
	int err = sampler_thread_look(natives->options.sampler, thread, false);

	return err ? err : emit_python(natives, thread, (struct sample){.time_ns = now_ns});
}

void sampler_natives_add(struct sampler_natives *natives, const struct sample_thread *thread)
{
	if (natives->has_events && thread->tid)
		(void)perf_events_add(&natives->events, thread->tid); /* counts refused ones */
}

/* Samples with C frames. */

/*
 * Replace the frames that are not kept by a hole, which is placed with the loop of the first of
 * them.
 */
static int merge(struct sample_sink *sink, const struct sample *sample)
{
	struct sampler_natives *natives = (struct sampler_natives *)sink;
	const struct sampler *sampler = natives->options.sampler;
	cleanup_free struct frame_detail *details = NULL;
	cleanup_free struct frame *frames = NULL;
	struct sample detailed = *sample;
	uint32_t nr_left = natives->nr_kept;
	uint32_t nr = 0;
	int err = sample_details(&sampler->codes, &sampler->threads[sample->thread->slot].list,
				 natives->entries, NULL, sample, &details);

	if (err)
		return err;
	detailed.details = details;
	/* The collector's frame is not one of Python's. */
	for (; nr < sample->nr_frames; nr++)
		if (sample->frames[nr].function->kind != FUNCTION_COLLECTOR && !nr_left--)
			break;
	if (nr < sample->nr_frames) {
		frames = array_copy(sample->frames, nr + 1, sizeof(*frames));
		if (!frames)
			return -ENOMEM;
		frames[nr] = (struct frame){.function = natives->hole};
		detailed.frames = frames;
		detailed.nr_frames = nr + 1;
		natives->stats.nr_python_holed++;
	}
	return native_stacks_emit(&natives->stacks, &detailed, natives->merge_next);
}

/*
 * Continue the unwound stack, whose memory is window, across holes, with the entries of Python
 * frames of the same moment. Also notes whether the mappings have to be read again.
 */
static void complete(struct sampler_natives *natives, const struct loop_entry *entries,
		     uint32_t nr_entries, struct stack_window *window)
{
	struct native_stacks *stacks = &natives->stacks;
	const remote_addr last_addr = stacks->frames[stacks->nr_frames - 1].lookup_addr;

	/* An incomplete stack may have led into a new module. */
	if (!stacks->is_whole && !unwind_modules_has(stacks->modules, last_addr))
		natives->maps.are_old = true;
	native_stacks_cross(stacks, entries, nr_entries, window);
}

/*
 * Emit what is in the thread's list, with its entries, as the sample, with the C frames unwound
 * last and the kernel's in natives->kernel, to next. Keeps the outer nr_kept frames of the list;
 * a hole replaces the others. Errors of sampler_tick().
 */
static int emit_merged(struct sampler_natives *natives, const struct snapshot_thread *thread,
		       const struct loop_entry *entries, uint32_t nr_kept, struct sample_sink *next,
		       struct sample sample)
{
	struct sampler *sampler = natives->options.sampler;
	const struct frame_list *list = &sampler->threads[thread->slot].list;

	natives->stats.nr_stacks++;
	natives->stats.nr_broken += !natives->stacks.is_whole;
	natives->merge_next = next;
	natives->entries = entries; /* the thread may have moved on since */
	natives->nr_kept = nr_kept == list->nr_frames ? UINT32_MAX
			   : nr_kept		      ? list->frames[nr_kept - 1].nr_begun
						      : 0;
	return sampler_thread_emit(sampler, thread, sample, &natives->merge);
}

/* Like emit_merged(), with the C frames of a copy of the thread's stack. */
static int emit_copy(struct sampler_natives *natives, const struct snapshot_thread *thread,
		     const struct loop_entry *entries, uint32_t nr_kept,
		     const struct perf_dump *dump, struct sample sample)
{
	const struct registers registers = registers_of_perf(dump->registers);
	struct stack_window window = {
		.start = registers.values[REGISTER_SP],
		.bytes = dump->stack,
		.nr_bytes = dump->nr_stack_bytes,
	};
	int err;

	jit_frames_set_time(natives->jit, dump->time_ns);
	native_stacks_unwind(&natives->stacks, &registers, &window, SAMPLER_NATIVES_MAX_FRAMES);
	complete(natives, entries, nr_kept, &window);
	err = kernel_frames_set_running(&natives->kernel, dump->kernel_addrs,
					dump->nr_kernel_addrs);
	return err ? err : emit_merged(natives, thread, entries, nr_kept, natives->next, sample);
}

int sampler_natives_emit_interrupted(struct sampler_natives *natives,
				     const struct snapshot_thread *thread,
				     const struct loop_chain *chain, uint64_t count_ns,
				     struct sample sample)
{
	struct sampler *sampler = natives->options.sampler;
	const struct sampled_thread *sampled = &sampler->threads[thread->slot];
	cleanup_free struct loop_entry *entries = NULL;
	const struct perf_dump *dump =
		perf_events_find(&natives->events, sampled->info->tid, count_ns, sample.time_ns);
	int err;

	if (!dump) {
		natives->stats.nr_undumped++;
		return emit_python(natives, thread, sample);
	}
	/*
	 * Mappings made before the copy are known by now. If the target is gone the old ones
	 * remain.
	 */
	err = renew_modules(natives, clock_now_ns());
	if (err && err != -ESRCH)
		return err;
	err = loop_entries_from_chain(&sampler->codes, chain, &sampled->list, true, &entries);
	return err ? err
		   : emit_copy(natives, thread, entries, sampled->list.nr_frames, dump, sample);
}

/*
 * Copies without proof that they are of a look's moment. The copy wakes the sampler on the
 * thread's own CPU, so the thread usually executes nothing in between. The evidence is that it
 * has used no more CPU time than the interrupt and the switch take, and that the copied part of
 * its stack is unchanged.
 */

/* Start of the stack's copy. */
static remote_addr stack_addr(const struct perf_dump *dump)
{
	return registers_of_perf(dump->registers).values[REGISTER_SP];
}

int sampler_natives_look(struct sampler_natives *natives, const struct snapshot_thread *thread)
{
	const struct sampler *sampler = natives->options.sampler;
	struct evidence *evidence = &natives->evidence;
	const struct perf_dump *dump = evidence->dump;
	int err;

	if (!dump)
		return 0;
	free(evidence->entries);
	evidence->entries = NULL;
	err = loop_entries_read(&sampler->codes, thread->ref.addr,
				&sampler->threads[thread->slot].list, true, &evidence->entries);
	if (err)
		return err;
	evidence->is_read = !remote_memory_read(sampler->snapshot.memory, stack_addr(dump),
						evidence->stack, dump->nr_stack_bytes) &&
			    !perf_events_count(&natives->events, dump->tid, &evidence->count_ns);
	return 0;
}

/*
 * The number of outermost frames in the list that belong to the copy: all if the thread has
 * executed nothing, and otherwise those of loops that were there all along and have called
 * another one.
 */
static uint32_t nr_kept_frames(struct evidence *evidence, const struct perf_dump *dump,
			       const struct frame_list *list)
{
	const uint64_t used_ns = evidence->count_ns - dump->count_ns;
	const uint32_t nr_before = evidence->nr_used++;
	const remote_addr sp_addr = stack_addr(dump);
	size_t nr_changed = dump->nr_stack_bytes; /* up to the last changed byte */
	uint64_t least_ns = UINT64_MAX;
	uint32_t nr_kept = 0;

	/* It has executed nothing if it has used hardly more than the least CPU time. */
	for (uint32_t i = 0; i < nr_before && i < EVIDENCE_LOOKS; i++)
		if (evidence->used_ns[i] < least_ns)
			least_ns = evidence->used_ns[i];
	evidence->used_ns[nr_before % EVIDENCE_LOOKS] = used_ns;
	while (nr_changed && evidence->stack[nr_changed - 1] == dump->stack[nr_changed - 1])
		nr_changed--;
	if (nr_before >= ENOUGH_LOOKS && used_ns <= least_ns * 3 && !nr_changed)
		return list->nr_frames;
	for (uint32_t i = 0; i < list->nr_frames; i++) {
		const struct loop_entry *entry = &evidence->entries[i];

		if (!entry->is_entry)
			continue;
		nr_kept = i;
		/* An entry beyond the copy is further out; one below it did not exist yet. */
		if (entry->c_addr < sp_addr || entry->c_addr - sp_addr < nr_changed)
			break;
	}
	return nr_kept;
}

/*
 * Emit the samples of a copied thread: one for each of its states, as it may have one in each
 * interpreter.
 */
static int sample_dump(struct sampler_natives *natives, const struct perf_dump *dump,
		       uint64_t now_ns)
{
	struct sampler *sampler = natives->options.sampler;
	const struct snapshot *snapshot = &sampler->snapshot;
	struct evidence *evidence = &natives->evidence;
	bool is_known = false;
	int err = 0;

	for (size_t i = 0; !err && i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];
		const struct sampled_thread *sampled = &sampler->threads[thread->slot];
		uint32_t nr_kept = 0;

		if (thread->is_new || sampled->info->tid != dump->tid)
			continue;
		is_known = true;
		evidence->dump = dump;
		evidence->is_read = false;
		err = sampler_thread_look(sampler, thread, false);
		evidence->dump = NULL;
		if (err == -ENOENT || err == -EBADMSG) {
			sampler->stats.lost[LOSS_MOVED] += err == -EBADMSG;
			err = 0;
			continue;
		}
		if (!err && evidence->is_read)
			nr_kept = nr_kept_frames(evidence, dump, &sampled->list);
		if (!err)
			err = emit_copy(natives, thread, evidence->entries, nr_kept, dump,
					(struct sample){.time_ns = now_ns});
	}
	natives->stats.nr_foreign += !is_known;
	return err;
}

int sampler_natives_drain(struct sampler_natives *natives, uint64_t now_ns)
{
	struct perf_dump dump;
	int err = renew_modules(natives, now_ns);

	/* Ticks that last longer than their interval leave no time to wait. */
	if (natives->has_events)
		perf_events_catch_up(&natives->events);
	while (!err && !perf_events_next(&natives->events, &dump)) {
		/* Mappings made before the copy are known by now. */
		err = renew_modules(natives, now_ns);
		if (!err)
			err = sample_dump(natives, &dump, now_ns);
		if (err == -EAGAIN || sampler_is_transient(err))
			err = 0;
	}
	return err;
}

/* A thread without a copy for this long may wait. */
static uint64_t without_dump_ns(const struct sampler_natives *natives)
{
	return natives->options.period_ns * PERCENT_WITHOUT_DUMP / 100;
}

uint64_t sampler_natives_covered_until(const struct sampler_natives *natives)
{
	const struct sampler *sampler = natives->options.sampler;
	const struct snapshot *snapshot = &sampler->snapshot;
	uint64_t until_ns = sampler->tick.last_ns + TICK_AT_LEAST_NS;

	if (!natives->has_events || snapshot->stale)
		return 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct snapshot_thread *thread = snapshot->threads[i];
		const uint64_t last_ns = sampler->threads[thread->slot].time.last_ns;
		const uint64_t covered_ns = last_ns + without_dump_ns(natives);

		if (thread->is_new || !last_ns)
			return 0;
		if (covered_ns < until_ns)
			until_ns = covered_ns;
	}
	return until_ns;
}

static void sleep_of_natives(void *context, uint64_t time_ns)
{
	struct sampler_natives *natives = context;

	if (natives->options.sampler->preempt)
		preempt_go(natives->options.sampler->preempt);
	perf_events_wait(&natives->events, time_ns);
}

bool sampler_natives_begin(struct sampler_natives *natives, struct sample_sink *next,
			   struct ticker_clock *ret_clock)
{
	natives->next = next;
	*ret_clock = (struct ticker_clock){
		.now_ns = ticker_clock_usual().now_ns,
		.sleep_until = sleep_of_natives,
		.context = natives,
	};
	return natives->has_events;
}

/* Samples of threads that use no CPU time. */

/* Whether a state is unchanged while its thread waits: no other thread may run it. */
static bool stays(const struct sampler *sampler, const struct snapshot_thread *thread)
{
	return thread->proof.is_own || !snapshot_may_run(&sampler->snapshot, thread);
}

/* A sink that keeps a sample and passes it on. */
struct keeper {
	struct sample_sink sink;
	struct waiting_sample *kept;
	uint64_t nr_runs;
	struct sample_sink *next;
};

static int keep(struct sample_sink *sink, const struct sample *sample)
{
	const struct keeper *keeper = (const struct keeper *)sink;
	const int err = waiting_sample_keep(keeper->kept, keeper->nr_runs, sample);

	return err ? err : keeper->next->ops->sample(keeper->next, sample);
}

/*
 * Emit the sample of a thread that waits at place in the kernel, which reveals two of its
 * registers. If it no longer waits there after the reads, returns -EAGAIN, and the next tick
 * accounts for the time. Errors of sampler_tick().
 */
static int sample_waiting(struct sampler_natives *natives, struct snapshot_thread *thread,
			  const struct task_place *place, uint64_t now_ns)
{
	static const struct sample_sink_ops ops = {.sample = keep};
	struct sampler *sampler = natives->options.sampler;
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	cleanup_free struct loop_entry *entries = NULL;
	struct keeper keeper = {{&ops}, &sampled->kept, place->nr_runs, natives->next};
	bool is_kept;
	int err = sampler_thread_look(sampler, thread, true);

	if (!err)
		err = loop_entries_read(&sampler->codes, thread->ref.addr, &sampled->list, true,
					&entries);
	if (err)
		return err;
	jit_frames_set_time(natives->jit, clock_now_ns());
	native_stacks_unwind_waiting(&natives->stacks, place, entries, sampled->list.nr_frames);
	complete(natives, entries, sampled->list.nr_frames, &natives->stacks.window);
	err = kernel_frames_set_waiting(&natives->kernel, sampled->info->tid);
	if (err)
		return err;
	if (task_check_place(natives->options.process, sampled->info->tid, place))
		return -EAGAIN;
	/* A stack with a hole, or an uncertain one, may be better at the next tick. */
	is_kept = natives->stacks.is_whole && stays(sampler, thread);
	return emit_merged(natives, thread, entries, sampled->list.nr_frames,
			   is_kept ? &keeper.sink : natives->next,
			   (struct sample){.time_ns = now_ns});
}

int sampler_natives_tick(struct sampler_natives *natives, struct snapshot_thread *thread,
			 uint64_t now_ns)
{
	const struct process *process = natives->options.process;
	struct sampler *sampler = natives->options.sampler;
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const pid_t tid = sampled->info->tid;
	uint64_t unseen_ns, nr_runs;
	struct task_place place;
	struct sample again;
	int err = -ENOENT;

	if (!sampled->time.last_ns)
		sampled->time.last_ns = now_ns; /* the first tick: its time begins */
	unseen_ns = now_ns - sampled->time.last_ns;
	if (natives->has_events && !natives->events.options.has_program &&
	    unseen_ns < without_dump_ns(natives))
		return 0;
	if (tid) {
		nr_runs = waiting_sample_read_runs(&sampled->kept, process, tid);
		/* It has not run since, and the GIL's holder does not contradict that. */
		if (waiting_sample_at(&sampled->kept, nr_runs, now_ns, &again) &&
		    stays(sampler, thread) &&
		    snapshot_holds_gil(&sampler->snapshot, thread) ==
			    ((again.flags & SAMPLE_HOLDS_GIL) != 0)) {
			natives->stats.nr_stacks++;
			return sampler_thread_send(sampler, thread, again, natives->next);
		}
		err = task_read_place(process, tid, nr_runs, &place);
	}
	/* Its interpreter state may still exist, but the thread has ended since it was listed. */
	if (err == -ESRCH && !process_has_thread(process, tid))
		return 0;
	if (!err)
		err = sample_waiting(natives, thread, &place, now_ns);
	else if (err != -EAGAIN)
		err = sample_python(natives, thread, now_ns);
	if (err == -EAGAIN && natives->has_events && natives->events.options.has_program) {
		sampler_thread_starved(sampled, now_ns);
		return 0;
	}
	/* It runs, and no stacks are copied, or not this thread's. */
	if (err == -EAGAIN && (!natives->has_events || unseen_ns >= UNSEEN_MAX_NS))
		err = sample_python(natives, thread, now_ns);
	if (err == -EBADMSG)
		sampler->stats.lost[LOSS_MOVED]++;
	return err == -EAGAIN || sampler_is_transient(err) ? 0 : err;
}

/* Making. */

/* Follow running threads, or explain why that is impossible. Returns 0; -ENOMEM, -ESRCH. */
static int open_events(struct sampler_natives *natives, struct message *ret_why)
{
	const struct sampler_natives_options *options = &natives->options;
	const struct sampler_interrupts *interrupts = options->sampler->interrupts;
	const struct perf_events_options events = {
		.period_ns = options->period_ns,
		.max_stack_bytes = SAMPLER_NATIVES_STACK_BYTES,
		.records_kernel_frames = natives->kernel.names != NULL,
		.has_program = interrupts != NULL,
		.program_fd =
			interrupts ? interrupts_program_fd(sampler_interrupts_program(interrupts))
				   : -1,
	};
	int err = perf_events_open(options->process, &events, &natives->events, ret_why);
	natives->has_events = !err;
	return ret_why->text[0] ? 0 : err;
}

int sampler_natives_create(const struct sampler_natives_options *options,
			   struct sampler_natives **ret_natives, struct message *ret_why,
			   struct message *ret_why_no_kernel)
{
	static const struct sample_sink_ops merge_ops = {.sample = merge};
	struct sampler_natives *natives;
	int err;

	natives = calloc(1, sizeof(*natives));
	if (!natives)
		return -ENOMEM;
	natives->merge.ops = &merge_ops;
	natives->options = *options;
	natives->events = PERF_EVENTS_CLOSED;
	err = options->has_kernel_frames ? kernel_frames_open(&natives->kernel, options->process,
							      options->sampler, ret_why_no_kernel)
					 : 0;
	if (!err)
		err = open_events(natives, ret_why);
	if (!err)
		err = jit_frames_create(options->process, options->memory, &natives->jit);
	if (!err)
		err = native_stacks_init(&natives->stacks,
					 &(struct native_stacks_options){
						 .memory = options->memory,
						 .maps = &natives->maps.maps, /* read below */
						 .images = options->images,
						 .sampler = options->sampler,
						 .jit = natives->jit,
						 .kernel = &natives->kernel,
						 .max_frames = SAMPLER_NATIVES_MAX_FRAMES,
						 .keeps_trampolines = options->keeps_trampolines,
					 });
	if (!err)
		err = renew_modules(natives, clock_now_ns());
	natives->hole = sampler_function(options->sampler, FUNCTION_NATIVE, MERGED_STACK_HOLE, "");
	natives->evidence.stack = malloc(SAMPLER_NATIVES_STACK_BYTES);
	if (!err && (!natives->hole || !natives->evidence.stack))
		err = -ENOMEM;
	if (err) {
		sampler_natives_destroy(natives);
		return err;
	}
	natives->stats.are_proven = natives->events.options.has_program;
	natives->stats.user_only = natives->events.user_only;
	/* Permission to trace user space does not imply permission to see kernel addresses. */
	if (natives->kernel.names && natives->events.user_only)
		message_set(ret_why_no_kernel,
			    "perf_event_open reports user space only: kernel frames require "
			    "kernel.perf_event_paranoid of 1 or less, or "
			    "CAP_PERFMON");
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
	native_stacks_done(&natives->stacks);
	jit_frames_destroy(natives->jit);
	kernel_frames_close(&natives->kernel);
	maps_done(&natives->maps.maps);
	free(natives->evidence.stack);
	free(natives->evidence.entries);
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

uint32_t sampler_natives_room(const struct sampler_natives *natives)
{
	return perf_events_room(&natives->events);
}

void sampler_natives_sweep(struct sampler_natives *natives)
{
	if (natives->events.options.has_program)
		perf_events_drop_ended(&natives->events);
}
