/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <unistd.h>

#include "sampler/bounded_memory.h"
#include "sampler/python/exception.h"
#include "sampler/python/frames.h"
#include "sampler/python/value_types.h"
#include "sampler/sampler_state.h"

/* How often a dump tries to catch a running thread in a state that can be proven. */
enum { DUMP_MAX_TRIES = 50 };

/* How often a dump tries to read a thread list that changes while it is read. */
enum { REFRESH_MAX_TRIES = 200 };

/* An exception takes so many reads at most; its message then says that there was more. */
enum { EXCEPTION_MAX_READS = 8192 };

/* The current frame of a thread and the sentinel at the bottom of its stack (0 before 3.15). */
static int read_current_frame(struct sampler *sampler, const struct snapshot_thread *thread,
			      remote_addr *ret_current_addr, remote_addr *ret_base_addr)
{
	const struct py_offsets *offsets = &sampler->build->offsets;
	struct remote_memory *memory = sampler->snapshot.memory;
	uint64_t addr = thread->ref.addr + offsets->thread.current_frame;
	int err = 0;

	if (offsets->cframe.current_frame != OFFSET_ABSENT) {
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
	sampler->nr_retakes_left = RETAKES_OF_TICK;
	err = sampler_thread_walk(sampler, thread, &loss);
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

/* What the thread state says of the stack. */
static struct stack_ends read_ends(struct sampler *sampler, const struct snapshot_thread *thread)
{
	const struct py_offsets *offsets = &sampler->build->offsets;
	struct stack_ends ends = {0};

	ends.current_err = read_current_frame(sampler, thread, &ends.current_frame_addr,
					      &ends.base_frame_addr);
	if (!sampler->build->traits.frames_on_heap) {
		ends.newest_chunk_addr = field_u64(thread->state, offsets->thread.datastack_chunk);
		ends.datastack_top_addr = field_u64(thread->state, offsets->thread.datastack_top);
	}
	return ends;
}

/* Whether something of a frame that people see is not in the memory. */
static bool has_gaps(const struct frame_list *list)
{
	for (uint32_t i = 0; i < list->nr_frames; i++)
		if (list->frames[i].code->has_gaps && frame_visible(list, i))
			return true;
	return false;
}

/* walk_for_dump() of a memory that stands still. */
static int walk_still(struct sampler *sampler, struct snapshot_thread *thread,
		      struct sample *ret_sample)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const struct stack_ends ends = read_ends(sampler, thread);
	bool bridged;
	int err =
		frames_walk_still(&sampler->codes, &thread->clock, &ends, &sampled->list, &bridged);

	sampled->nr_shown = 0;
	if (!is_passing_walk(err) && err != -E2BIG)
		return err;
	*ret_sample = (struct sample){
		.flags = (err ? SAMPLE_UNPROVEN : 0) | (bridged ? SAMPLE_BRIDGED : 0) |
			 (has_gaps(&sampled->list) ? SAMPLE_GAPS : 0),
		.error = err,
	};
	return 0;
}

/*
 * Read the exception that a thread handles, if it does. 0 also if that cannot be read; -ENOMEM, …
 */
static int read_exception(struct sampler *sampler, const struct snapshot_thread *thread,
			  struct exception_text *ret_text)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	const remote_addr addr = thread_state_exception(snapshot, thread, &sampler->none);
	struct bounded_memory bounded;
	int err;

	if (!addr || !value_types_are_known(&sampler->build->offsets))
		return 0;
	bounded_memory_init(&bounded, snapshot->memory, EXCEPTION_MAX_READS, NULL, UINT64_MAX);
	err = exception_text_read(&bounded.memory, sampler->build, addr, ret_text);
	return err == -ENOMEM || err == -ESRCH || err == -EPERM ? err : 0;
}

/* Whether the thread ends the interpreter, as far as that is told. */
static bool is_finalizing(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	const uint32_t offset = snapshot->build->offsets.runtime.finalizing;
	remote_addr addr;

	return offset != OFFSET_ABSENT &&
	       remote_memory_read_u64(snapshot->memory, snapshot->runtime_addr + offset, &addr) ==
		       0 &&
	       addr == thread->ref.addr;
}

/* Hand on a thread whose stack is in its list, with all that details tell. */
static int emit_detailed(struct sampler *sampler, const struct snapshot_thread *thread,
			 struct sample sample, struct sample_sink *sink)
{
	const struct frame_list *list = &sampler->threads[thread->slot].list;
	struct exception_text text = {0};
	struct sample_exception exception;
	struct detail_sink detailed;
	int err = read_exception(sampler, thread, &text);

	if (err)
		return err;
	exception = (struct sample_exception){text.type_name, text.message};
	if (text.type_name)
		sample.exception = &exception;
	if (thread_state_collector(&sampler->snapshot, thread, list) != NOT_COLLECTING)
		sample.flags |= SAMPLE_GC;
	if (is_finalizing(&sampler->snapshot, thread))
		sample.flags |= SAMPLE_FINALIZES;
	if (sampler->variables)
		variable_reader_forget(sampler->variables);
	detail_sink_init(&detailed, &sampler->codes, thread->ref.addr, list, sampler->variables,
			 sink);
	err = sampler_thread_emit(sampler, thread, sample, &detailed.sink);
	exception_text_done(&text);
	return err;
}

/* Look at one thread and hand it on as it is now, unless it has ended. */
static int look_at(struct sampler *sampler, struct snapshot_thread *thread,
		   struct sample_sink *sink)
{
	struct sample sample;
	int err;

	(void)code_cache_relieve(&sampler->codes);
	if (sink->ops->look)
		sink->ops->look(sink, sampler->threads[thread->slot].info);
	err = sampler->looks.still ? walk_still(sampler, thread, &sample)
				   : walk_for_dump(sampler, thread, &sample);
	if (err)
		return err == -ENOENT ? 0 : err;
	return sampler->looks.details ? emit_detailed(sampler, thread, sample, sink)
				      : sampler_thread_emit(sampler, thread, sample, sink);
}

/* Errors of sampler_dump(). */
static int dump_thread(struct sampler *sampler, struct snapshot_thread *thread,
		       struct sample_sink *sink)
{
	int err = thread->copied ? -EAGAIN : 0;

	while (err == -EAGAIN)
		err = look_at(sampler, thread, sink);
	return err;
}

/* Read the thread list of a process that may be starting and ending threads all the time. */
static int refresh_patiently(struct snapshot *snapshot)
{
	int err = snapshot_refresh(snapshot);

	if (snapshot->is_still)
		return err;
	for (int i = 1; i < REFRESH_MAX_TRIES && sampler_is_passing(err); i++) {
		(void)usleep(REFRESH_PAUSE_US);
		err = snapshot_refresh(snapshot);
	}
	return err;
}

/* Say who the threads are, all of them, before the stacks are asked for. */
static int begin_threads(struct sampler *sampler)
{
	struct snapshot *snapshot = &sampler->snapshot;
	int err = 0;

	sampler->nr_os_names_left = UINT32_MAX;
	for (size_t i = snapshot->nr_threads; !err && i > 0; i--) {
		struct snapshot_thread *thread = snapshot->threads[i - 1];

		if (!thread->copied)
			continue;
		err = sampler_thread_begin(sampler, thread);
		thread->is_new = false;
	}
	return err ? err : sampler_names_read(sampler);
}

/* Have a reader of variables, if they are wanted. 0 or -ENOMEM. */
static int begin_variables(struct sampler *sampler)
{
	variable_reader_destroy(sampler->variables);
	sampler->variables = NULL;
	if (!sampler->looks.value_max_chars)
		return 0;
	return variable_reader_create(sampler->snapshot.memory, sampler->build,
				      sampler->looks.value_max_chars, &sampler->variables);
}

int sampler_dump(struct sampler *sampler, struct sample_sink *sink)
{
	struct snapshot *snapshot = &sampler->snapshot;
	int err = refresh_patiently(snapshot);

	if (!err)
		err = snapshot_take(snapshot);
	if (!err)
		err = begin_threads(sampler);
	if (!err)
		err = begin_variables(sampler);
	for (size_t i = snapshot->nr_threads; !err && i > 0; i--)
		err = dump_thread(sampler, snapshot->threads[i - 1], sink);
	return err;
}

const struct function *sampler_function(struct sampler *sampler, enum function_kind kind,
					const char *qualname, const char *path)
{
	return function_table_get(&sampler->codes.functions, kind, qualname, path, 0);
}

const struct code_cache *sampler_codes(const struct sampler *sampler)
{
	return &sampler->codes;
}

int sampler_list_error(const struct sampler *sampler)
{
	return sampler->snapshot.list_err;
}
