/* SPDX-License-Identifier: MIT */
#include "sampler/sampler_native.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/sched/run_count.h"
#include "procmem/sched/thread_wait.h"
#include "sampler/cpython/frames/loop_entries.h"
#include "sampler/native/kernel_frames.h"
#include "sampler/native/native_stacks.h"
#include "sampler/recent_maps.h"
#include "sampler/sampler_interrupts.h"
#include "sampler/sampler_state.h"
#include "sampler/task_roots.h"

/*
 * A runnable thread gets no sample at a tick: its next copy accounts for the time. But after this
 * long it gets a sample without C frames, as its event may not work.
 */
#define UNSEEN_MAX_NS 1000000000u

/*
 * Number of looks that show the least CPU time between a copy of a stack and a look, and how many
 * must be known before it is used.
 */
enum { EVIDENCE_LOOKS = 16, ENOUGH_LOOKS = 8 };

/* A thread that used up to this many times the least CPU time has executed nothing. */
enum { STILL_FACTOR = 3 };

/* What a look reads about a thread whose stack was copied before. */
struct evidence {
	const struct perf_copy *copy; /* borrowed; NULL: no evidence is wanted */
	bool is_read;		      /* the current look has read the fields below */
	uint8_t *stack;		      /* the same range as the copy; owned */
	uint64_t count_ns;	      /* the event's count */
	struct loop_entry *entries;   /* of the thread's list; owned */
	/* CPU time between copy and look, for the last looks. */
	uint64_t used_ns[EVIDENCE_LOOKS];
	uint32_t nr_used;
};

struct sampler_native {
	/* The sink that adds the C frames unwound last to a sample, and the sink after it: */
	struct sample_sink merge;
	struct sample_sink *merge_next;
	const struct frame_list *list;	  /* of the thread, whose slot in samples is shared */
	const struct loop_entry *entries; /* of that list */
	/* Number of outer visible frames to keep; a gap replaces the others. */
	uint32_t nr_kept;
	struct sample_sink *next; /* the run's sink */
	struct sampler_native_options options;
	struct perf_events events;
	bool has_events; /* otherwise running threads have no C frames */
	struct recent_maps maps;
	struct native_stacks stacks;
	struct jit_frames *jit;
	struct kernel_frames kernel; /* closed unless kernel frames are requested */
	struct evidence evidence;
	const struct function *gap;
	struct sampler_native_stats stats;
};

/* Modules. */

/* Read the mappings again if that is due. Returns 0, an error of maps_read(), or -ENOMEM. */
static int renew_modules(struct sampler_native *native, uint64_t now_ns)
{
	const struct perf_events_stats *events = &native->events.stats;
	struct maps before;
	uint64_t before_ns;
	int err;

	if (!recent_maps_are_due(&native->maps, now_ns, events))
		return 0;
	before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	err = recent_maps_read(&native->maps, native->options.process, now_ns, events, &before);
	if (err)
		return err;
	err = native_stacks_set_maps(&native->stacks, &native->maps.maps);
	maps_done(&before);
	native->maps.cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
	return err;
}

/* The sink that roots samples of a thread at tasks, if that is wanted, and passes them to next. */
static struct sample_sink *root_sink(struct sampler_native *native,
				     const struct snapshot_thread *thread, struct sample_sink *next)
{
	struct task_roots *roots = native->options.sampler->roots;

	return roots ? task_roots_sink(roots, thread, next) : next;
}

/* Samples without C frames. */

/*
 * Emit a sample without C frames. Nothing is taken over from the thread's previous sample, which
 * may have had them.
 */
static int emit_python(struct sampler_native *native, const struct snapshot_thread *thread,
		       struct sample sample)
{
	struct sampler *sampler = native->options.sampler;
	struct sampled_thread *sampled = &sampler->threads[thread->slot];

	sampled->last.nr_same = 0;
	sampled->last.collector = NOT_COLLECTING;
	return sampler_thread_emit(sampler, thread, sample,
				   root_sink(native, thread, native->next));
}

/* Look at a thread, and emit its sample without C frames. Errors of sampler_thread_look(). */
static int sample_python(struct sampler_native *native, struct snapshot_thread *thread,
			 uint64_t now_ns)
{
	int err = sampler_thread_look(native->options.sampler, thread, false);

	return err ? err : emit_python(native, thread, (struct sample){.time_ns = now_ns});
}

void sampler_native_add(struct sampler_native *native, const struct sample_thread *thread)
{
	if (native->has_events && thread->tid)
		(void)perf_events_add(&native->events, thread->tid); /* counts refused ones */
}

/* Samples with C frames. */

/*
 * Replace the frames that are not kept by a gap, which is placed with the loop of the first of
 * them.
 */
static int merge(struct sample_sink *sink, const struct sample *sample)
{
	struct sampler_native *native = (struct sampler_native *)sink;
	const struct sampler *sampler = native->options.sampler;
	cleanup_free struct frame_detail *details = NULL;
	cleanup_free struct frame *frames = NULL;
	struct sample detailed = *sample;
	uint32_t nr_left = native->nr_kept;
	uint32_t nr = 0;
	int err = sample_details(&sampler->codes, native->list, native->entries, NULL, sample,
				 &details);

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
		frames[nr] = (struct frame){.function = native->gap};
		detailed.frames = frames;
		detailed.nr_frames = nr + 1;
		native->stats.nr_python_gaps++;
	}
	return native_stacks_emit(&native->stacks, &detailed, native->merge_next);
}

/*
 * Continue the unwound stack, whose memory is window, across gaps, with the entries of Python
 * frames of the same moment. Also notes whether the mappings have to be read again.
 */
static void complete(struct sampler_native *native, const struct loop_entry *entries,
		     uint32_t nr_entries, struct stack_window *window)
{
	struct native_stacks *stacks = &native->stacks;
	const remote_addr last_addr = stacks->frames[stacks->nr_frames - 1].lookup_addr;

	/* An incomplete stack may have led into a new module. */
	if (!stacks->is_whole && !unwind_modules_has(stacks->modules, last_addr))
		native->maps.are_stale = true;
	native_stacks_cross_gaps(stacks, entries, nr_entries, window);
}

/*
 * Emit what is in the thread's list, with its entries, as the sample, with the C frames unwound
 * last and the kernel's in native->kernel, to next. Keeps the outer nr_kept frames of the list;
 * a gap replaces the others. Errors of sampler_tick().
 */
static int emit_merged(struct sampler_native *native, const struct snapshot_thread *thread,
		       const struct loop_entry *entries, uint32_t nr_kept, struct sample_sink *next,
		       struct sample sample)
{
	struct sampler *sampler = native->options.sampler;
	const struct frame_list *list = &sampler->threads[thread->slot].list;

	native->stats.nr_stacks++;
	native->stats.nr_c_gaps += !native->stacks.is_whole;
	native->merge_next = root_sink(native, thread, next);
	native->list = list;
	native->entries = entries; /* the thread may have moved on since */
	native->nr_kept = nr_kept == list->nr_frames ? UINT32_MAX
			  : nr_kept		     ? list->frames[nr_kept - 1].nr_begun
						     : 0;
	return sampler_thread_emit(sampler, thread, sample, &native->merge);
}

/* Like emit_merged(), with the C frames of a copy of the thread's stack. */
static int emit_copy(struct sampler_native *native, const struct snapshot_thread *thread,
		     const struct loop_entry *entries, uint32_t nr_kept,
		     const struct perf_copy *copy, struct sample sample)
{
	const struct registers registers = registers_of_perf(copy->registers);
	struct stack_window window = {
		.start = registers.values[REGISTER_SP],
		.bytes = copy->stack,
		.nr_bytes = copy->nr_stack_bytes,
	};
	int err;

	jit_frames_set_time(native->jit, copy->time_ns);
	native_stacks_unwind(&native->stacks, &registers, &window, SAMPLER_NATIVE_MAX_FRAMES);
	complete(native, entries, nr_kept, &window);
	err = kernel_frames_set_running(&native->kernel, copy->kernel_addrs, copy->nr_kernel_addrs);
	return err ? err : emit_merged(native, thread, entries, nr_kept, native->next, sample);
}

int sampler_native_emit_interrupted(struct sampler_native *native,
				    const struct snapshot_thread *thread,
				    const struct loop_chain *chain, uint64_t count_ns,
				    struct sample sample)
{
	struct sampler *sampler = native->options.sampler;
	const struct sampled_thread *sampled = &sampler->threads[thread->slot];
	cleanup_free struct loop_entry *entries = NULL;
	const struct perf_copy *copy =
		perf_events_find(&native->events, sampled->info->tid, count_ns, sample.time_ns);
	int err;

	if (!copy) {
		native->stats.nr_without_copy++;
		return emit_python(native, thread, sample);
	}
	/*
	 * Mappings made before the copy are known by now. If the target is gone the old ones
	 * remain.
	 */
	err = renew_modules(native, clock_now_ns());
	if (err && err != -ESRCH)
		return err;
	err = loop_entries_from_chain(&sampler->codes, chain, &sampled->list, true, &entries);
	return err ? err
		   : emit_copy(native, thread, entries, sampled->list.nr_frames, copy, sample);
}

/*
 * Copies without proof that they are of a look's moment. The copy wakes the sampler on the
 * thread's own CPU, so the thread usually executes nothing in between. The evidence is that it
 * has used no more CPU time than the interrupt and the switch take, and that the copied part of
 * its stack is unchanged.
 */

/* Start of the stack's copy. */
static remote_addr stack_addr(const struct perf_copy *copy)
{
	return registers_of_perf(copy->registers).values[REGISTER_SP];
}

int sampler_native_look(struct sampler_native *native, const struct snapshot_thread *thread)
{
	const struct sampler *sampler = native->options.sampler;
	struct evidence *evidence = &native->evidence;
	const struct perf_copy *copy = evidence->copy;
	int err;

	if (!copy)
		return 0;
	free(evidence->entries);
	evidence->entries = NULL;
	err = loop_entries_read(&sampler->codes, thread->ref.addr,
				&sampler->threads[thread->slot].list, true, &evidence->entries);
	if (err)
		return err;
	evidence->is_read = !remote_memory_read(sampler->snapshot.memory, stack_addr(copy),
						evidence->stack, copy->nr_stack_bytes) &&
			    !perf_events_count(&native->events, copy->tid, &evidence->count_ns);
	return 0;
}

/*
 * The number of outermost frames in the list that belong to the copy: all if the thread has
 * executed nothing, and otherwise those of loops that were there all along and have called
 * another one.
 */
static uint32_t nr_kept_frames(struct evidence *evidence, const struct perf_copy *copy,
			       const struct frame_list *list)
{
	const uint64_t used_ns = evidence->count_ns - copy->count_ns;
	const uint32_t nr_before = evidence->nr_used++;
	const remote_addr sp_addr = stack_addr(copy);
	size_t nr_changed = copy->nr_stack_bytes; /* up to the last changed byte */
	uint64_t least_ns = UINT64_MAX;
	uint32_t nr_kept = 0;

	/* It has executed nothing if it has used hardly more than the least CPU time. */
	for (uint32_t i = 0; i < nr_before && i < EVIDENCE_LOOKS; i++)
		if (evidence->used_ns[i] < least_ns)
			least_ns = evidence->used_ns[i];
	evidence->used_ns[nr_before % EVIDENCE_LOOKS] = used_ns;
	while (nr_changed && evidence->stack[nr_changed - 1] == copy->stack[nr_changed - 1])
		nr_changed--;
	if (nr_before >= ENOUGH_LOOKS && used_ns <= least_ns * STILL_FACTOR && !nr_changed)
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
static int sample_copy(struct sampler_native *native, const struct perf_copy *copy, uint64_t now_ns)
{
	struct sampler *sampler = native->options.sampler;
	const struct snapshot *snapshot = &sampler->snapshot;
	struct evidence *evidence = &native->evidence;
	bool is_known = false;
	int err = 0;

	for (size_t i = 0; !err && i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];
		const struct sampled_thread *sampled = &sampler->threads[thread->slot];
		uint32_t nr_kept = 0;

		if (thread->is_new || sampled->info->tid != copy->tid)
			continue;
		is_known = true;
		evidence->copy = copy;
		evidence->is_read = false;
		err = sampler_thread_look(sampler, thread, false);
		evidence->copy = NULL;
		if (err == -ENOENT || err == -EBADMSG) {
			sampler->stats.lost[LOSS_MOVED] += err == -EBADMSG;
			err = 0;
			continue;
		}
		sampler->threads[thread->slot].activity.has_run = true;
		if (!err && evidence->is_read)
			nr_kept = nr_kept_frames(evidence, copy, &sampled->list);
		if (!err)
			err = emit_copy(native, thread, evidence->entries, nr_kept, copy,
					(struct sample){.time_ns = now_ns});
	}
	native->stats.nr_foreign_copies += !is_known;
	return err;
}

int sampler_native_drain(struct sampler_native *native, uint64_t now_ns)
{
	struct perf_copy copy;
	int err = renew_modules(native, now_ns);

	/* Ticks that last longer than their interval leave no time to wait. */
	if (native->has_events)
		perf_events_catch_up(&native->events);
	while (!err && !perf_events_next(&native->events, &copy)) {
		/* Mappings made before the copy are known by now. */
		err = renew_modules(native, now_ns);
		if (!err)
			err = sample_copy(native, &copy, now_ns);
		if (err == -EAGAIN || sampler_is_transient(err))
			err = 0;
	}
	return err;
}

/* A thread without a copy for this long may wait. */
static uint64_t without_copy_ns(const struct sampler_native *native)
{
	return native->options.period_ns * MAX_UNSEEN_PERCENT / 100;
}

uint64_t sampler_native_covered_until(const struct sampler_native *native)
{
	const struct sampler *sampler = native->options.sampler;
	const struct snapshot *snapshot = &sampler->snapshot;
	uint64_t until_ns = sampler->tick.last_ns + LOOK_PAUSE_MAX_NS;

	if (!native->has_events || snapshot->is_stale)
		return 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct snapshot_thread *thread = snapshot->threads[i];
		const uint64_t last_ns = sampler->threads[thread->slot].time.last_ns;
		const uint64_t covered_ns = last_ns + without_copy_ns(native);

		if (thread->is_new || !last_ns)
			return 0;
		if (covered_ns < until_ns)
			until_ns = covered_ns;
	}
	return until_ns;
}

void sampler_native_begin(struct sampler_native *native, struct sample_sink *next)
{
	native->next = next;
}

bool sampler_native_sleep_until(struct sampler_native *native, uint64_t time_ns)
{
	if (native->has_events)
		perf_events_wait(&native->events, time_ns);
	return native->has_events;
}

int sampler_native_enable(struct sampler_native *native, bool is_on)
{
	return native->has_events ? perf_events_enable(&native->events, is_on) : 0;
}

/* Samples of threads that use no CPU time. */

/* Whether a state is unchanged while its thread waits: no other thread may run it. */
static bool is_stable(const struct sampler *sampler, const struct snapshot_thread *thread)
{
	return thread->proof.is_own || !snapshot_may_run(&sampler->snapshot, thread);
}

/* The word of a state that changes when Python code is called or returns. */
static uint64_t current_of(const struct sampler *sampler, const struct snapshot_thread *thread)
{
	return field_u64(thread->state, thread_current_offset(&sampler->build->offsets));
}

/*
 * Whether a state is as it was when a sample of it was cached, if its thread has not run since.
 * Then its frames are still on the thread's stack, if they were, and another thread that runs it
 * has made frames further in.
 */
static bool is_as_cached(const struct sampler *sampler, const struct snapshot_thread *thread)
{
	const struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const struct snapshot *snapshot = &sampler->snapshot;

	return ((sampled->cached_is_own && !snapshot_may_swap(snapshot)) ||
		!snapshot_may_run(snapshot, thread)) &&
	       sampled->cached_current == current_of(sampler, thread);
}

/* A sink that caches a sample and forwards it. */
struct caching_sink {
	struct sample_sink sink;
	struct sampled_thread *sampled;
	uint64_t nr_runs;
	bool is_own;
	uint64_t current;
	struct sample_sink *next;
};

static int cache_sample(struct sample_sink *sink, const struct sample *sample)
{
	const struct caching_sink *caching = (const struct caching_sink *)sink;
	struct sampled_thread *sampled = caching->sampled;
	const int err = cached_sample_store(&sampled->cached, caching->nr_runs, sample);

	sampled->cached_is_own = caching->is_own;
	sampled->cached_current = caching->current;
	return err ? err : caching->next->ops->sample(caching->next, sample);
}

/*
 * Emit the sample of a thread that has been switched in nr_runs times and waits, and cache it
 * unless it has a gap or is uncertain: then it may be better at the next tick.
 */
static int emit_waiting(struct sampler_native *native, struct snapshot_thread *thread,
			const struct loop_entry *entries, uint64_t nr_runs, uint64_t now_ns)
{
	static const struct sample_sink_ops ops = {.sample = cache_sample};
	const struct sampler *sampler = native->options.sampler;
	struct sampled_thread *sampled = &native->options.sampler->threads[thread->slot];
	struct caching_sink caching = {
		.sink = {&ops},
		.sampled = sampled,
		.nr_runs = nr_runs,
		.is_own = thread->proof.is_own,
		.current = current_of(sampler, thread),
		.next = native->next,
	};
	const bool is_cached = native->stacks.is_whole && is_stable(sampler, thread);

	return emit_merged(native, thread, entries, sampled->list.nr_frames,
			   is_cached ? &caching.sink : native->next,
			   (struct sample){.time_ns = now_ns});
}

/*
 * Emit the sample of a thread that waits at place in the kernel, which reveals two of its
 * registers. If it no longer waits there after the reads, returns -EAGAIN, and the next tick
 * accounts for the time. Errors of sampler_tick().
 */
static int sample_waiting(struct sampler_native *native, struct snapshot_thread *thread,
			  const struct wait_place *place, uint64_t now_ns)
{
	struct sampler *sampler = native->options.sampler;
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	cleanup_free struct loop_entry *entries = NULL;
	int err = sampler_thread_look(sampler, thread, true);

	if (!err)
		err = loop_entries_read(&sampler->codes, thread->ref.addr, &sampled->list, true,
					&entries);
	if (err)
		return err;
	jit_frames_set_time(native->jit, clock_now_ns());
	native_stacks_unwind_waiting(&native->stacks, place, entries, sampled->list.nr_frames);
	complete(native, entries, sampled->list.nr_frames, &native->stacks.window);
	err = kernel_frames_set_waiting(&native->kernel, sampled->info->tid);
	if (err)
		return err;
	if (wait_place_check(native->options.process, sampled->info->tid, place))
		return -EAGAIN;
	return emit_waiting(native, thread, entries, place->nr_runs, now_ns);
}

int sampler_native_tick(struct sampler_native *native, struct snapshot_thread *thread,
			uint64_t now_ns)
{
	const struct process *process = native->options.process;
	struct sampler *sampler = native->options.sampler;
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const pid_t tid = sampled->info->tid;
	uint64_t unseen_ns, nr_runs;
	struct wait_place place;
	struct sample again;
	int err = -ENOENT;

	if (!sampled->time.last_ns)
		sampled->time.last_ns = now_ns; /* the first tick: its time begins */
	unseen_ns = now_ns - sampled->time.last_ns;
	if (native->has_events && !native->events.options.has_program &&
	    unseen_ns < without_copy_ns(native))
		return 0;
	if (tid) {
		nr_runs = cached_sample_read_runs(&sampled->cached, process, tid);
		/* It has not run since, and the GIL's holder does not contradict that. */
		if (cached_sample_get(&sampled->cached, nr_runs, now_ns, &again) &&
		    is_as_cached(sampler, thread) &&
		    snapshot_holds_gil(&sampler->snapshot, thread) ==
			    ((again.flags & SAMPLE_HOLDS_GIL) != 0)) {
			native->stats.nr_stacks++;
			return sampler_thread_send(sampler, thread, again, native->next);
		}
		err = wait_place_read(process, tid, nr_runs, &place);
	}
	/* Its interpreter state may still exist, but the thread has ended since it was listed. */
	if (err == -ESRCH && !process_has_thread(process, tid))
		return 0;
	if (!err)
		err = sample_waiting(native, thread, &place, now_ns);
	else if (err != -EAGAIN)
		err = sample_python(native, thread, now_ns);
	if (err == -EAGAIN && native->has_events && native->events.options.has_program) {
		sampler_thread_defer_time(sampled, now_ns);
		return 0;
	}
	/* It runs, and no stacks are copied, or not this thread's. */
	if (err == -EAGAIN && (!native->has_events || unseen_ns >= UNSEEN_MAX_NS))
		err = sample_python(native, thread, now_ns);
	if (err == -EBADMSG)
		sampler->stats.lost[LOSS_MOVED]++;
	return err == -EAGAIN || sampler_is_transient(err) ? 0 : err;
}

/* Making. */

/* Follow running threads, or explain why that is impossible. Returns 0; -ENOMEM, -ESRCH. */
static int open_events(struct sampler_native *native, struct message *ret_why)
{
	const struct sampler_native_options *options = &native->options;
	const struct sampler_interrupts *interrupts = options->sampler->interrupts;
	const struct perf_events_options events = {
		.period_ns = options->period_ns,
		.max_stack_bytes = SAMPLER_NATIVE_STACK_BYTES,
		.kernel_frames = native->kernel.names != NULL,
		.has_program = interrupts != NULL,
		.program_fd =
			interrupts ? interrupts_program_fd(sampler_interrupts_program(interrupts))
				   : -1,
	};
	int err = perf_events_open(options->process, &events, &native->events, ret_why);
	native->has_events = !err;
	return ret_why->text[0] ? 0 : err;
}

int sampler_native_create(const struct sampler_native_options *options,
			  struct sampler_native **ret_native, struct message *ret_why,
			  struct message *ret_why_no_kernel)
{
	static const struct sample_sink_ops merge_ops = {.sample = merge};
	struct sampler_native *native;
	int err;

	native = calloc(1, sizeof(*native));
	if (!native)
		return -ENOMEM;
	native->merge.ops = &merge_ops;
	native->options = *options;
	native->events = PERF_EVENTS_CLOSED;
	err = options->kernel_frames ? kernel_frames_open(&native->kernel, options->process,
							  options->sampler, ret_why_no_kernel)
				     : 0;
	if (!err)
		err = open_events(native, ret_why);
	if (!err)
		err = jit_frames_create(options->process, options->memory, &native->jit);
	if (!err)
		err = native_stacks_init(&native->stacks,
					 &(struct native_stacks_options){
						 .memory = options->memory,
						 .maps = &native->maps.maps, /* read below */
						 .images = options->images,
						 .sampler = options->sampler,
						 .jit = native->jit,
						 .kernel = &native->kernel,
						 .max_frames = SAMPLER_NATIVE_MAX_FRAMES,
						 .keeps_trampolines = options->keeps_trampolines,
					 });
	if (!err)
		err = renew_modules(native, clock_now_ns());
	native->gap = sampler_function(options->sampler, FUNCTION_NATIVE, MERGED_STACK_GAP, "");
	native->evidence.stack = malloc(SAMPLER_NATIVE_STACK_BYTES);
	if (!err && (!native->gap || !native->evidence.stack))
		err = -ENOMEM;
	if (err) {
		sampler_native_destroy(native);
		return err;
	}
	native->stats.is_proven = native->events.options.has_program;
	native->stats.is_user_only = native->events.user_only;
	/* Permission to trace user space does not imply permission to see kernel addresses. */
	if (native->kernel.names && native->events.user_only)
		message_set(ret_why_no_kernel,
			    "perf_event_open reports user space only: kernel frames require "
			    "kernel.perf_event_paranoid of 1 or less, or "
			    "CAP_PERFMON");
	options->sampler->native = native;
	*ret_native = native;
	return 0;
}

void sampler_native_destroy(struct sampler_native *native)
{
	if (!native)
		return;
	native->options.sampler->native = NULL;
	perf_events_close(&native->events);
	native_stacks_done(&native->stacks);
	jit_frames_destroy(native->jit);
	kernel_frames_close(&native->kernel);
	maps_done(&native->maps.maps);
	free(native->evidence.stack);
	free(native->evidence.entries);
	free(native);
}

const struct sampler_native_stats *sampler_native_stats(const struct sampler_native *native)
{
	return &native->stats;
}

const struct perf_events_stats *sampler_native_events(const struct sampler_native *native)
{
	return &native->events.stats;
}

uint32_t sampler_native_room(const struct sampler_native *native)
{
	return perf_events_room(&native->events);
}

void sampler_native_sweep(struct sampler_native *native)
{
	if (native->events.options.has_program)
		perf_events_drop_ended(&native->events);
}
