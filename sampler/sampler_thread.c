/* SPDX-License-Identifier: MIT */
/* Walks the stack of one thread, and makes a sample of it: its flags, weight and frames. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/clock.h"
#include "procmem/descriptor_limit.h"
#include "procmem/sched/thread_stat.h"
#include "sampler/cpython/frames/frames.h"
#include "sampler/sampler_interrupts.h"
#include "sampler/sampler_state.h"
#include "sampler/task_roots.h"

/*
 * Without CPU times: a thread that waited this long ago counts as waiting. This bounds the cost of
 * waiting threads at rates above 2 kHz.
 */
#define STATE_MAX_AGE_NS 500000u

/* Open the CPU clock of a new thread, whose slot may have had another thread's. */
static void begin_clock(struct sampler *sampler, struct sampled_thread *sampled)
{
	struct cpu_account *cpu = &sampled->cpu;

	cpu_clock_close(&cpu->clock);
	cpu->has_last = false;
	sampled->activity = (struct thread_activity){0};
	if (!sampler->extras.cpu && !sampler->extras.states)
		return;
	if (!sampler->process || !sampled->info->tid ||
	    cpu_clock_open(sampler->process, sampled->info->tid, &cpu->clock) != 0) {
		sampler->stats.clockless += sampler->extras.cpu;
		return;
	}
	/* With C frames the memory that may be locked is needed for copies of stacks. */
	if (!sampler->native)
		cpu_clock_map(&cpu->clock);
	/* With interrupts states need no clock, but it may prove that a thread has not moved. */
	if (!sampler->extras.cpu && sampler->interrupts) {
		if (cpu->clock.kind != CPU_CLOCK_TASK || descriptor_limit_is_half(cpu->clock.fd))
			cpu_clock_close(&cpu->clock);
		return;
	}
	sampler->stats.rough_clocks +=
		sampler->extras.cpu && cpu->clock.kind == CPU_CLOCK_SCHEDSTAT;
	sampler->stats.clock_reads++;
	cpu->has_last = cpu_clock_read(&cpu->clock, &cpu->last_ns) == 0;
}

/* Allocate the description of the threads of a slot. Returns 0 or -ENOMEM. */
static int create_info(struct sampler *sampler, struct sampled_thread *sampled)
{
	struct sample_thread *info = calloc(1, sizeof(*info));

	if (!info || sample_ids_take_slot(sampler->identities.ids, &info->slot)) {
		free(info);
		return -ENOMEM;
	}
	sampled->info = info;
	return 0;
}

void sampler_thread_identify(struct sampler *sampler, struct snapshot_thread *thread)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];

	*sampled->info = (struct sample_thread){
		.id = sampled->info->id,
		.slot = sampled->info->slot,
		.process = sampler->identities.process,
	};
	sampler_identify(sampler, thread, sampled);
	thread->tid = sampled->info->tid;
	thread->ref.found_tid = (uint64_t)sampled->identity.own_tid;
	begin_clock(sampler, sampled);
	thread_runs_close(&sampled->runs);
	if (sampler->native)
		sampler_native_add(sampler->native, sampled->info);
	sampler->identities.has_new_threads = true;
	thread->stack = sampler->process && thread->tid == sampler->process->pid
				? sampler->stacks.first
				: thread_stack_of_id(thread->ref.thread_id);
	/* Evidence against the thread that the state was taken to be of counts no longer. */
	thread->proof.foreign_until_look = 0;
}

int sampler_thread_begin(struct sampler *sampler, struct snapshot_thread *thread)
{
	struct sample_ids *ids = sampler->identities.ids;
	struct sampled_thread *sampled;
	int err;

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
	sampled = &sampler->threads[thread->slot];
	err = sampled->info ? 0 : create_info(sampler, sampled);
	if (err)
		return err;
	sampled->info->id = ids->nr_threads++;
	thread->is_new = false;
	sampled->last.nr_same = 0;
	sampled->room.nr_converted = 0;
	sampled->identity.nr_named = 0;
	sampled->last.collector = NOT_COLLECTING;
	cached_sample_done(&sampled->cached);
	sampled->identity.first_ns = sampler->tick.last_ns;
	sampler_thread_identify(sampler, thread);
	sampled->time = (struct accounted_time){
		.last_ns = sampler->tick.last_ns,
		.covered_ns = sampler->interrupts && !sampler->tick.last_ns ? clock_now_ns()
									    : sampler->tick.last_ns,
	};
	frame_cache_add_thread(&sampler->cache, thread);
	return 0;
}

/* Fit the room for visible frames to that of the list. Returns false if out of memory. */
static bool fit_frames(struct sampled_thread *sampled)
{
	/* One more, for the collector's frame. */
	const uint32_t max_frames = sampled->list.max_frames + 1;
	struct frame *frames = reallocarray(sampled->last.frames, max_frames, sizeof(*frames));

	if (!frames)
		return false;
	sampled->last.frames = frames;
	sampled->room.max_frames = max_frames;
	return true;
}

/* What a thread does besides its stack. */

/* Whether the object at addr is of type NoneType. */
static bool object_is_none(const struct sampler *sampler, remote_addr addr)
{
	static const char none_type[] = "NoneType";
	const struct py_offsets *offsets = &sampler->build->offsets;
	uint64_t type_addr, name_addr;
	char name[sizeof(none_type)];

	return remote_memory_read_u64(sampler->snapshot.memory, addr + offsets->object.ob_type,
				      &type_addr) == 0 &&
	       remote_memory_read_u64(sampler->snapshot.memory, type_addr + offsets->object.tp_name,
				      &name_addr) == 0 &&
	       remote_memory_read(sampler->snapshot.memory, name_addr, name, sizeof(name)) == 0 &&
	       memcmp(name, none_type, sizeof(name)) == 0;
}

/* Whether the value of an item is an exception. */
static bool is_exception(struct sampler *sampler, remote_addr addr)
{
	struct known_none *none = &sampler->none;

	if (!addr || addr == none->addr)
		return false;
	if (!sampler->build->traits.handled_none || none->addr || addr == none->other_addr)
		return true;
	if (!object_is_none(sampler, addr)) {
		none->other_addr = addr;
		return true;
	}
	none->addr = addr;
	return false;
}

/*
 * Find the innermost item that holds an exception in a thread's list, up to but not including the
 * one at end_addr (0: to the last). *ret_addr is the exception; up to 3.10 it may be missing
 * although its type is set. Returns false if there is none, or it cannot be read.
 */
static bool find_handled(struct sampler *sampler, const struct snapshot_thread *thread,
			 remote_addr end_addr, remote_addr *ret_addr)
{
	const struct py_offsets *offsets = &sampler->build->offsets;
	const uint32_t value = offsets->exc_item.value;
	/* Up to 3.10 the type comes before the value, and the type is what may be NULL or None. */
	const uint32_t type_bytes = sampler->build->traits.frames_on_heap ? sizeof(remote_addr) : 0;
	const bool is_list = offsets->thread.exc_info != OFFSET_ABSENT;
	const size_t size =
		(is_list ? offsets->exc_item.previous : value + type_bytes) + sizeof(remote_addr);
	remote_addr addr = is_list ? field_u64(thread->state, offsets->thread.exc_info)
				   : thread->ref.addr + offsets->thread.exc_state;
	uint8_t item[EXC_ITEM_MAX_BYTES];

	for (int i = 0; i < EXC_ITEMS_MAX && addr && addr != end_addr; i++) {
		if (remote_memory_read(sampler->snapshot.memory, addr, item, size) != 0)
			return false;
		if (is_exception(sampler, field_u64(item, value))) {
			*ret_addr = field_u64(item, value + type_bytes);
			return true;
		}
		addr = is_list ? field_u64(item, offsets->exc_item.previous) : 0;
	}
	return false;
}

/*
 * Whether a thread handles an exception, or one is being raised, by its copied state. A thread
 * handles an exception while it is in the handling block, including the functions called from
 * there.
 *
 * The state has the outermost item of the list of handled exceptions. Those that only a generator
 * handles are found by following the list, if sampler_extras.exceptions is set: at most
 * EXC_ITEMS_MAX reads, slightly later than the copy.
 *
 * Up to 3.12 an item is None after something was handled. Until the address of None is known,
 * each new object met there is checked, once, with three reads.
 *
 * Source: Include/cpython/pystate.h (_PyErr_StackItem), Python/errors.c
 * (_PyErr_GetTopmostException()).
 */
static bool handles_exception(struct sampler *sampler, const struct snapshot_thread *thread)
{
	const struct py_offsets *offsets = &sampler->build->offsets;
	const uint32_t outermost = offsets->thread.exc_state;
	remote_addr addr;

	if (offsets->thread.raised == OFFSET_ABSENT || outermost == OFFSET_ABSENT)
		return false;
	if (field_u64(thread->state, offsets->thread.raised) ||
	    is_exception(sampler, field_u64(thread->state, outermost + offsets->exc_item.value)))
		return true;
	/* The remaining items are those of the running generators. */
	return sampler->extras.exceptions && offsets->thread.exc_info != OFFSET_ABSENT &&
	       find_handled(sampler, thread, thread->ref.addr + outermost, &addr);
}

remote_addr sampler_thread_exception(struct sampler *sampler, const struct snapshot_thread *thread)
{
	const struct py_offsets *offsets = &sampler->build->offsets;
	const uint32_t type_bytes =
		sampler->build->traits.raised_has_type ? sizeof(remote_addr) : 0;
	remote_addr addr = 0;

	if (offsets->thread.raised == OFFSET_ABSENT || offsets->thread.exc_state == OFFSET_ABSENT)
		return 0;
	(void)find_handled(sampler, thread, 0, &addr);
	if (!addr && remote_memory_read_u64(sampler->snapshot.memory,
					    thread->ref.addr + offsets->thread.raised + type_bytes,
					    &addr) != 0)
		return 0;
	return addr;
}

/*
 * Number of visible frames of a thread's stack below the collector's; NOT_COLLECTING if the
 * thread is not known to collect.
 *
 * 3.15 reports the frame that began the collection; the frames above it are finalizers. Since 3.7
 * a flag reports a collection: it is assumed to be the GIL holder's, and innermost. 3.6, and 3.13
 * and 3.14 without the GIL, have nothing usable.
 *
 * Source: Python/gc.c of 3.15, Modules/gcmodule.c and Python/gc.c before.
 */
static uint32_t find_collector(const struct sampler *sampler, const struct snapshot_thread *thread,
			       const struct frame_list *list)
{
	const struct snapshot_interpreter *interpreter =
		&sampler->snapshot.interpreters[thread->ref.interpreter];
	uint32_t nr = list->nr_frames;

	if (!interpreter->is_collecting)
		return NOT_COLLECTING;
	if (sampler->build->offsets.gc.frame != OFFSET_ABSENT) {
		nr = frame_list_find(list, interpreter->gc_frame_addr);
		if (!nr)
			return NOT_COLLECTING;
	} else if (!thread->holds_gil) {
		return NOT_COLLECTING;
	}
	return nr ? list->frames[nr - 1].nr_begun : 0;
}

void sampler_thread_set_flags(struct sampler *sampler, const struct snapshot_thread *thread)
{
	const uint32_t requested = sampler->build->offsets.thread.gil_requested;
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	uint32_t flags = 0;

	if (thread->holds_gil)
		flags |= SAMPLE_HOLDS_GIL;
	else if (requested != OFFSET_ABSENT && field_i32(thread->state, requested) == 1)
		flags |= SAMPLE_WAITS_FOR_GIL;
	if (handles_exception(sampler, thread))
		flags |= SAMPLE_EXCEPTION;
	sampled->walked.flags = flags;
	sampled->walked.collector = find_collector(sampler, thread, &sampled->list);
}

/* Walks. */

/* A walk has changed the list: only the unchanged part is still shown correctly. */
static void record_walk(struct sampled_thread *sampled, bool is_whole)
{
	if (sampled->room.nr_converted > sampled->list.nr_unchanged)
		sampled->room.nr_converted = sampled->list.nr_unchanged;
	sampled->walked.is_whole = is_whole;
	sampled->walked.flags = 0;
	sampled->walked.collector = NOT_COLLECTING;
}

/* Whether a thread has moved since its state and its innermost frame were read in this look. */
static bool has_moved_on(struct sampler *sampler, const struct snapshot_thread *thread,
			 const struct frame_list *list)
{
	const struct py_offsets *offsets = &sampler->build->offsets;
	const bool has_index = offsets->frame.lasti != OFFSET_ABSENT;
	const uint32_t current_offset = thread_current_offset(offsets);
	const struct frame_step *step = list->steps;
	uint64_t current, instruction = 0;
	struct remote_range ranges[] = {
		{.addr = thread->ref.addr + current_offset,
		 .buffer = &current,
		 .size = sizeof(current)},
		{.buffer = &instruction, .size = has_index ? sizeof(int32_t) : sizeof(uint64_t)},
	};

	if (!list->nr_steps)
		return false;
	ranges[1].addr = step->addr + (has_index ? offsets->frame.lasti : offsets->frame.instr_ptr);
	/* Several pieces are always read again, followed by the witness. */
	if (remote_memory_read_ranges(sampler->snapshot.memory, ranges, 2))
		return false;
	return current != field_u64(thread->state, current_offset) ||
	       instruction != (has_index ? (uint32_t)step->words.lasti : step->words.instr_ptr);
}

/* Note the evidence for whether another thread runs the state. */
static void record_runner(struct sampler *sampler, struct snapshot_thread *thread,
			  const struct frame_list *list)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	enum stack_owner owner = STACK_UNKNOWN;

	if (snapshot->instant.is_dead || snapshot_may_swap(snapshot))
		return;
	thread->proof.runner_is_unknown = false;
	if (list->loop_addr) {
		owner = thread_stack_owner(&thread->stack, snapshot->instant.look.inner,
					   list->loop_addr);
		if (thread->stack.pending_addr && sampler->process) {
			sampler->stacks.has_pending = true;
			thread->proof.runner_is_unknown = !thread->stack.has_unknown_stack;
		}
	}
	thread->proof.is_own = owner == STACK_OWN;
	thread->proof.is_foreign = owner == STACK_FOREIGN;
	/* After an interrupt nothing can have moved, and nothing is to be read again. */
	thread->proof.has_moved = owner == STACK_UNKNOWN && !thread->clock.frames_are_older &&
				  has_moved_on(sampler, thread, list);
}

/*
 * Note the result of a walk that ended with err. Returns 0, or the error if it did not come from
 * the stack.
 */
static int note(struct sampler *sampler, struct snapshot_thread *thread, int err)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];

	record_walk(sampled, !err);
	record_runner(sampler, thread, &sampled->list);
	if (err)
		return err == -EBADMSG ? 0 : err;
	sampler_thread_set_flags(sampler, thread);
	return 0;
}

int sampler_thread_walk(struct sampler *sampler, struct snapshot_thread *thread)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const struct stack_ends ends = stack_ends_read(sampler->snapshot.memory, sampler->build,
						       thread->ref.addr, thread->state);
	struct kept_frames kept;
	int err;

	/* A counter that is not where the table says proves nothing. */
	if (sampler->codes.next_version_unusable)
		thread->clock.has_next_version = false;
	kept = frame_cache_kept(&sampler->cache, thread, &sampled->list);
	err = frames_walk(&sampler->codes, &thread->clock, &ends, &kept, &sampled->list,
			  &sampled->walked.loss);
	frame_cache_update(&sampler->cache, thread, &sampled->list, !err, &kept);
	if (!err && sampler->roots)
		err = task_roots_look(sampler->roots, thread);
	return note(sampler, thread, err);
}

int sampler_thread_walk_steps(struct sampler *sampler, struct snapshot_thread *thread,
			      const struct stack_ends *ends)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];

	return note(sampler, thread,
		    frames_walk_steps(&sampler->codes, &thread->clock, ends, &sampled->list,
				      &sampled->walked.loss));
}

int sampler_thread_sample_racing(struct sampler *sampler, struct snapshot_thread *thread,
				 uint64_t now_ns, struct sample_sink *sink)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const struct sample sample = {.time_ns = now_ns, .flags = SAMPLE_APPROXIMATE};
	int err;

	thread->proof.is_known = false;
	thread->clock = sampler->snapshot.interpreters[thread->ref.interpreter].clock;
	err = racing_walk(sampler->racing, &sampler->codes, &thread->clock, &thread->ref,
			  &sampled->list, &sampled->walked.loss);
	record_walk(sampled, !err);
	if (err == -EBADMSG)
		sampler->stats.lost[sampled->walked.loss]++;
	if (err)
		return err == -EBADMSG || err == -ENOENT ? 0 : err;
	memcpy(thread->state, sampler->racing->state, sizeof(thread->state));
	sampler_thread_set_flags(sampler, thread);
	return sampler_thread_emit(sampler, thread, sample, sink);
}

/* sampler_thread_look(), once. */
static int look_once(struct sampler *sampler, struct snapshot_thread *thread,
		     bool is_proven_elsewhere)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	enum instant_verdict verdict;
	int err = snapshot_begin(&sampler->snapshot, thread);
	int end_err;

	if (err)
		return err;
	sampled->walked.is_whole = false;
	if (thread->was_copied)
		err = sampler_thread_walk(sampler, thread);
	if (!err && sampler->native && sampled->walked.is_whole)
		err = sampler_native_look(sampler->native, thread);
	end_err = snapshot_end(&sampler->snapshot, &verdict);
	if (err || end_err)
		return err ? err : end_err;
	if (!thread->was_copied)
		return -ENOENT;
	/* That the thread stood still proves nothing about a state that another one runs. */
	if (is_proven_elsewhere &&
	    (thread->proof.has_moved || snapshot_record_foreign(&sampler->snapshot, thread)))
		return -EBADMSG;
	if (!is_proven_elsewhere && !thread->is_proven &&
	    !snapshot_was_waiting(&sampler->snapshot, thread)) {
		frame_cache_invalidate(&sampler->cache);
		return -EBADMSG;
	}
	return sampled->walked.is_whole ? 0 : -EBADMSG;
}

int sampler_thread_look(struct sampler *sampler, struct snapshot_thread *thread,
			bool is_proven_elsewhere)
{
	int err = look_once(sampler, thread, is_proven_elsewhere);

	if (err != -EBADMSG || !thread->proof.runner_is_unknown)
		return err;
	/* A dump needs every thread. */
	sampler_resolve_stacks(sampler, !sampler->native);
	return look_once(sampler, thread, is_proven_elsewhere);
}

/* Convert the visible frames into sampled->last.frames. Sets *ret_nr_frames, or returns -ENOMEM. */
static int convert_frames(const struct code_cache *codes, struct sampled_thread *sampled,
			  uint32_t *ret_nr_frames)
{
	const struct frame_list *list = &sampled->list;
	uint32_t first = sampled->room.nr_converted < list->nr_frames ? sampled->room.nr_converted
								      : list->nr_frames;
	uint32_t nr;

	nr = first ? list->frames[first - 1].nr_begun : 0;
	if (list->nr_frames >= sampled->room.max_frames && !fit_frames(sampled))
		return -ENOMEM;
	for (uint32_t i = first; i < list->nr_frames; i++) {
		const struct walked_frame *walked = &list->frames[i];
		struct frame *frame = &sampled->last.frames[nr];
		int32_t line;

		if (!frame_visible(list, i))
			continue;
		line = code_line(codes, walked->code, walked->instr_ptr);
		if (nr >= sampled->last.nr_same || frame->function != walked->code->function ||
		    frame->line != line) {
			*frame = (struct frame){.function = walked->code->function, .line = line};
			if (sampled->last.nr_same > nr)
				sampled->last.nr_same = nr;
		}
		nr++;
	}
	sampled->room.nr_converted = list->nr_frames;
	sampled->room.nr_listed = list->nr_frames;
	*ret_nr_frames = nr;
	return 0;
}

/* Read the CPU time of a thread since the last reading. Returns false if it is unknown. */
static bool read_cpu(struct sampler *sampler, struct cpu_account *cpu, uint64_t *ret_used_ns)
{
	const bool has_last = cpu->has_last;
	uint64_t now_ns;

	if (cpu->clock.kind == CPU_CLOCK_NONE)
		return false;
	sampler->stats.clock_reads++;
	if (cpu_clock_read(&cpu->clock, &now_ns) != 0)
		return false;
	/* An interrupt may have counted time ahead: sampler_thread_weigh(). */
	*ret_used_ns = has_last && now_ns > cpu->last_ns ? now_ns - cpu->last_ns : 0;
	if (!has_last || now_ns > cpu->last_ns)
		cpu->last_ns = now_ns;
	cpu->has_last = true;
	return has_last;
}

/* Set cpu_ns and its flags in a sample that is about to be emitted, if its thread has a clock. */
static void measure_cpu(struct sampler *sampler, struct cpu_account *cpu, struct sample *sample)
{
	if (sampler->extras.cpu && !(sample->flags & SAMPLE_CPU_MEASURED) &&
	    read_cpu(sampler, cpu, &sample->cpu_ns))
		sample->flags |= SAMPLE_CPU_MEASURED | (sample->cpu_ns ? SAMPLE_ON_CPU : 0);
}

/* Whether the kernel says that a thread is neither on a CPU nor ready to run on one. */
static bool is_asleep(struct sampler *sampler, pid_t tid)
{
	enum { SYSCALLS = 3 }; /* open, read, close */
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	char text[THREAD_STAT_MAX_BYTES];
	struct thread_stat stat;

	if (!tid || !sampler->process)
		return false;
	sampler->stats.other_syscalls += SYSCALLS;
	process_thread_path(name, tid, "stat");
	return process_read_file(sampler->process, name, text, sizeof(text)) > 0 &&
	       !thread_stat_parse(text, &stat) && stat.state != 'R';
}

/*
 * Whether a thread without the GIL waits at the time of a sample that a look has found. One that
 * waited and has not run since still waits: it has used no CPU time, or has not been interrupted,
 * which happens after a period of CPU time. If it has run, its state must be read to know what it
 * does now.
 */
static bool look_found_waiting(struct sampler *sampler, struct sampled_thread *sampled,
			       const struct sample *sample)
{
	struct thread_activity *activity = &sampled->activity;
	bool has_run = !sampler->interrupts;
	uint64_t used_ns = sample->cpu_ns;

	if (has_run && activity->waits) {
		/* Without CPU times, reading the clock is a cost of its own. */
		if (sample->flags & SAMPLE_CPU_MEASURED)
			has_run = used_ns;
		else if (sample->time_ns - activity->at_ns < STATE_MAX_AGE_NS)
			return true;
		else
			has_run = !read_cpu(sampler, &sampled->cpu, &used_ns) || used_ns;
	}
	activity->at_ns = sample->time_ns;
	return (activity->waits && !has_run) || is_asleep(sampler, sampled->info->tid);
}

/* Set SAMPLE_IDLE in a sample that is about to be emitted, if its thread waits. */
static void measure_activity(struct sampler *sampler, struct sampled_thread *sampled,
			     struct sample *sample)
{
	struct thread_activity *activity = &sampled->activity;

	sample->flags &= ~(uint32_t)SAMPLE_IDLE;
	if (!sampler->extras.states)
		return;
	activity->waits = !activity->has_run &&
			  !(sample->flags & (SAMPLE_HOLDS_GIL | SAMPLE_WAITS_FOR_GIL)) &&
			  look_found_waiting(sampler, sampled, sample);
	activity->has_run = false;
	sample->flags |= activity->waits ? SAMPLE_IDLE : 0;
}

/*
 * Set the weight of a sample in wall-clock time, unless it is set: the time not covered yet.
 *
 * Looks find the thread periodically, so each sample of one weighs the time since the sample
 * before. An interrupt comes after a period of CPU time, which is the weight of its sample;
 * samples of looks cover the rest of the time, in which the thread did not run.
 *
 * Returns how many samples to emit instead of this one: one, but with interrupts one per period,
 * so that counting samples measures time.
 */
static uint32_t measure_wall(const struct sampler *sampler, struct sampled_thread *sampled,
			     struct sample *sample)
{
	const uint64_t time_ns = sample->time_ns;
	const uint64_t left_ns =
		time_ns > sampled->time.covered_ns ? time_ns - sampled->time.covered_ns : 0;
	uint32_t nr = 1;

	if (!sampler->interrupts) {
		if (!sample->wall_ns)
			sample->wall_ns =
				sampled->time.last_ns ? time_ns - sampled->time.last_ns : 0;
		return nr;
	}
	if (sample->wall_ns) {
		const uint64_t deferred_ns = sampled->time.deferred_ns;
		const uint64_t period_ns =
			interrupts_period_ns(sampler_interrupts_program(sampler->interrupts));

		if (!deferred_ns)
			return nr;
		sampled->time.deferred_ns = 0;
		nr = sampler_interrupts_nr_periods(sampler->interrupts, period_ns + deferred_ns,
						   &sampled->time.uncounted_ns);
		sample->wall_ns = (sample->wall_ns + deferred_ns) / nr;
		return nr;
	}
	nr = sampler_interrupts_nr_periods(sampler->interrupts, left_ns,
					   &sampled->time.uncounted_ns);
	sampled->time.covered_ns += left_ns;
	sample->wall_ns = (left_ns + sampled->time.lost_ns) / nr;
	sampled->time.lost_ns = 0;
	return nr;
}

void sampler_thread_defer_time(struct sampled_thread *sampled, uint64_t now_ns)
{
	if (now_ns <= sampled->time.covered_ns)
		return;
	sampled->time.deferred_ns += now_ns - sampled->time.covered_ns;
	sampled->time.covered_ns = now_ns;
}

void sampler_thread_weigh(const struct sampler *sampler, struct sampled_thread *sampled,
			  uint64_t period_ns, struct sample *sample)
{
	sampled->activity.has_run = true;
	sampled->time.covered_ns += period_ns;
	sample->wall_ns = period_ns + sampled->time.lost_ns;
	sampled->time.lost_ns = 0;
	if (!sampler->extras.cpu)
		return;
	sample->cpu_ns = period_ns;
	sample->flags |= SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU;
	/*
	 * The clock's next value covers the time since: ticks may have counted a part of this
	 * already.
	 */
	sampled->cpu.last_ns += period_ns;
}

int sampler_thread_send(struct sampler *sampler, const struct snapshot_thread *thread,
			struct sample sample, struct sample_sink *sink)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const uint32_t nr = measure_wall(sampler, sampled, &sample);
	int err = 0;

	if (sampler->roots && !sampler->native)
		sink = task_roots_sink(sampler->roots, thread, sink);
	sample.thread = sampled->info;
	measure_cpu(sampler, &sampled->cpu, &sample);
	sampler->tick.used_ns += sample.cpu_ns;
	measure_activity(sampler, sampled, &sample);
	sampled->time.last_ns = sample.time_ns;
	sampled->time.was_interrupted = false;
	for (uint32_t i = 0; !err && i < nr; i++) {
		err = sink->ops->sample(sink, &sample);
		sampler->stats.approximate += (sample.flags & SAMPLE_APPROXIMATE) != 0;
		if (!sampler->stats.samples++)
			sampler->stats.first_sample_ns = clock_now_ns();
		sample.nr_unchanged = sample.nr_frames;
		sample.cpu_ns = 0;
		sample.flags &= ~(uint32_t)SAMPLE_ON_CPU;
	}
	return err;
}

/*
 * Insert the collector's frame into a sample whose frames are sampled->last.frames, if the thread
 * collects garbage, and adjust nr_unchanged, which is that of the frames without it. Returns 0 or
 * -ENOMEM.
 */
static int add_collector(struct sampler *sampler, struct sampled_thread *sampled,
			 struct sample *sample)
{
	uint32_t before = sampled->last.collector;
	uint32_t now;
	struct frame *frame;

	if (!sampler->extras.gc)
		return 0;
	now = sampled->walked.collector;
	if (now == NOT_COLLECTING && before == NOT_COLLECTING)
		return 0;
	if (now != NOT_COLLECTING && !sampler->collector) {
		sampler->collector = function_table_get(sampler->codes.functions,
							FUNCTION_COLLECTOR, SAMPLE_GC_NAME, "", 0);
		if (!sampler->collector)
			return -ENOMEM;
	}
	sampled->last.collector = now;
	/*
	 * In the previous sample the collector's frame may have been elsewhere, which limits
	 * this.
	 */
	if (before == now && now != NOT_COLLECTING && sample->nr_unchanged >= now)
		sample->nr_unchanged++;
	else if (sample->nr_unchanged > (before < now ? before : now))
		sample->nr_unchanged = before < now ? before : now;
	if (now == NOT_COLLECTING)
		return 0;
	frame = &sampled->last.frames[now];
	memmove(frame + 1, frame, (sample->nr_frames - now) * sizeof(*frame));
	*frame = (struct frame){.function = sampler->collector};
	sample->nr_frames++;
	sample->flags |= SAMPLE_GC;
	return 0;
}

/* Emit the first nr_frames frames that are kept for a thread. */
static int emit_frames(struct sampler *sampler, const struct snapshot_thread *thread,
		       struct sample sample, struct sample_sink *sink)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const uint32_t nr_frames = sample.nr_frames;
	struct frame *frame;
	int err;

	sample.frames = sampled->last.frames;
	sample.nr_unchanged = sampled->last.nr_same < nr_frames ? sampled->last.nr_same : nr_frames;
	sample.flags |= sampled->last.flags;
	err = add_collector(sampler, sampled, &sample);
	if (err)
		return err;
	err = sampler_thread_send(sampler, thread, sample, sink);
	sampled->last.nr_same = nr_frames;
	if (sampled->last.collector != NOT_COLLECTING) {
		frame = &sampled->last.frames[sampled->last.collector];
		memmove(frame, frame + 1, (nr_frames - sampled->last.collector) * sizeof(*frame));
	}
	return err;
}

int sampler_thread_emit(struct sampler *sampler, const struct snapshot_thread *thread,
			struct sample sample, struct sample_sink *sink)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	struct frame_list *list = &sampled->list;
	int err = convert_frames(&sampler->codes, sampled, &sample.nr_frames);

	sampled->last.flags = sampled->walked.flags;
	if (!err)
		err = emit_frames(sampler, thread, sample, sink);
	if (sampled->room.most_frames < list->nr_frames)
		sampled->room.most_frames = list->nr_frames;
	if (++sampled->room.nr_walks < ROOM_WALKS)
		return err;
	/* Give back the room for stacks that were much deeper. */
	frame_list_fit(list, sampled->room.most_frames);
	if (sampled->room.max_frames > list->max_frames + 1)
		(void)fit_frames(sampled);
	sampled->room.most_frames = list->nr_frames;
	sampled->room.nr_walks = 0;
	return err;
}

int sampler_thread_repeat(struct sampler *sampler, const struct snapshot_thread *thread,
			  uint64_t time_ns, bool has_not_run, struct sample_sink *sink)
{
	const struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const bool has_cpu = has_not_run && sampler->extras.cpu && sampled->cpu.has_last;
	const struct sample sample = {
		.time_ns = time_ns,
		.nr_frames = sampled->last.nr_same,
		.flags = has_cpu ? SAMPLE_CPU_MEASURED : 0,
	};

	return emit_frames(sampler, thread, sample, sink);
}
