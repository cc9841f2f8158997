/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "sampler/bounded_memory.h"
#include "sampler/python/exception.h"
#include "sampler/python/frames.h"
#include "sampler/python/loop_entries.h"
#include "sampler/python/value_types.h"
#include "sampler/sampler_state.h"
#include "sampler/thread_state.h"
#include "sampler/ticker.h"

/*
 * How often a dump looks at a thread that cannot be proven to have stood still, and how long it
 * lets the thread run in between.
 */
enum { DUMP_MAX_TRIES = 50, DUMP_PAUSE_NS = 200000 };

/* How often a dump tries to read a thread list that changes while it is read. */
enum { REFRESH_MAX_TRIES = 200 };

/* An exception takes so many reads at most; its message then says that there was more. */
enum { EXCEPTION_MAX_READS = 8192 };

/* What a dump tells of each frame of a stack beside its function and line. */

static const struct frame_detail unknown = {.column = -1, .end_line = -1, .end_column = -1};

struct frame_detail frame_detail_of(const struct code_cache *codes,
				    const struct walked_frame *walked)
{
	const struct linetable_position position =
		code_position(codes, walked->code, walked->instr_ptr);

	return (struct frame_detail){
		.column = position.column,
		.end_line = position.end_line,
		.end_column = position.end_column,
	};
}

/*
 * One for each frame of the sample: those of the list that people see, and the collector's. 0, or
 * an error of variable_reader_read().
 */
static int fill(const struct detail_sink *self, const struct sample *sample,
		const struct loop_entry *entries, struct frame_detail *details)
{
	const struct frame_list *list = self->list;
	uint32_t listed = 0;
	int err = 0;

	for (uint32_t i = 0; i < sample->nr_frames; i++) {
		/*
		 * The call of the loop that the frame is the first to be seen of, if there is one.
		 */
		struct loop_entry entry = {.is_entry = false};
		const struct walked_frame *walked;

		details[i] = unknown;
		if (err || sample->frames[i].function->kind == FUNCTION_COLLECTOR)
			continue;
		for (; listed < list->nr_frames; listed++) {
			if (entries[listed].is_entry)
				entry = entries[listed];
			if (frame_visible(list, listed))
				break;
		}
		if (listed == list->nr_frames)
			continue;
		walked = &list->frames[listed++];
		details[i] = frame_detail_of(self->codes, walked);
		details[i].is_entry = entry.is_entry;
		details[i].entry_addr = entry.c_addr;
		if (self->variables)
			err = variable_reader_read(self->variables, walked, &details[i]);
	}
	return err;
}

static int add_details(struct sample_sink *sink, const struct sample *sample)
{
	const struct detail_sink *self = (const struct detail_sink *)sink;
	cleanup_free struct loop_entry *read = NULL;
	cleanup_free struct frame_detail *details = NULL;
	const struct loop_entry *entries = self->entries;
	struct sample detailed = *sample;
	int err = 0;

	if (!entries) {
		err = loop_entries_read(self->codes, self->thread_addr, self->list, !sample->error,
					&read);
		entries = read;
	}
	if (err)
		return err;
	details = reallocarray(NULL, sample->nr_frames + 1ull, sizeof(*details));
	if (!details)
		return -ENOMEM;
	err = fill(self, sample, entries, details);
	detailed.details = details;
	if (!err)
		err = self->next->ops->sample(self->next, &detailed);
	for (uint32_t i = 0; i < sample->nr_frames; i++)
		frame_detail_free_variables(&details[i]);
	return err;
}

const struct sample_sink_ops detail_sink_ops = {.sample = add_details};

/* Stacks. */

/*
 * Have the thread's stack in its list, and in ret_sample whether it is proven or
 * could be followed at all. 0; -ENOENT: the thread has ended; or what ends the dump.
 */
static int walk_for_dump(struct sampler *sampler, struct snapshot_thread *thread,
			 struct sample *ret_sample)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const struct walked_thread *walked = &sampled->walked;
	/* It lets a thread run on, and is where it runs when it is looked at next. */
	const struct ticker_clock clock =
		sampler->preempt ? preempt_clock(sampler->preempt) : ticker_clock_usual();
	int err = sampler_thread_look(sampler, thread, false);

	for (int i = 1; i < DUMP_MAX_TRIES && err == -EBADMSG; i++) {
		clock.sleep_until(clock.context, clock_now_ns() + DUMP_PAUSE_NS);
		err = sampler_thread_look(sampler, thread, false);
	}
	sampled->nr_shown = 0;
	if (err && err != -EBADMSG)
		return err;
	/* What is shown for want of a proof is the chain as it could be followed last. */
	*ret_sample = (struct sample){
		.flags = err ? SAMPLE_UNPROVEN : 0,
		.error = walked->is_whole		 ? 0
			 : walked->loss == LOSS_TOO_DEEP ? -E2BIG
							 : -EBADMSG,
	};
	return 0;
}

/* walk_for_dump() of a memory that stands still. */
static int walk_still(struct sampler *sampler, struct snapshot_thread *thread,
		      struct sample *ret_sample)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const struct stack_ends ends = stack_ends_read(sampler->snapshot.memory, sampler->build,
						       thread->ref.addr, thread->state);
	const struct frame_list *list = &sampled->list;
	bool bridged, has_gaps = false;
	int err =
		frames_walk_still(&sampler->codes, &thread->clock, &ends, &sampled->list, &bridged);

	sampled->nr_shown = 0;
	if (err && err != -EAGAIN && err != -EBADMSG && err != -EFAULT && err != -E2BIG)
		return err;
	sampler_thread_note(sampler, thread);
	for (uint32_t i = 0; i < list->nr_frames; i++)
		has_gaps = has_gaps || (list->frames[i].code->has_gaps && frame_visible(list, i));
	*ret_sample = (struct sample){
		.flags = (err ? SAMPLE_UNPROVEN : 0) | (bridged ? SAMPLE_BRIDGED : 0) |
			 (has_gaps ? SAMPLE_GAPS : 0),
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

/* Hand on a thread whose stack is in its list, with all that details tell. */
static int emit_detailed(struct sampler *sampler, const struct snapshot_thread *thread,
			 struct sample sample, struct sample_sink *sink)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	const uint32_t finalizing = sampler->build->offsets.runtime.finalizing;
	struct exception_text text = {0};
	struct sample_exception exception;
	struct detail_sink detailed = {
		.sink.ops = &detail_sink_ops,
		.codes = &sampler->codes,
		.thread_addr = thread->ref.addr,
		.list = &sampler->threads[thread->slot].list,
		.variables = sampler->variables,
		.next = sink,
	};
	remote_addr addr;
	int err = read_exception(sampler, thread, &text);

	if (err)
		return err;
	exception = (struct sample_exception){text.type_name, text.message};
	if (text.type_name)
		sample.exception = &exception;
	if (sampler->threads[thread->slot].walked.collector != NOT_COLLECTING)
		sample.flags |= SAMPLE_GC;
	/* Which thread ends the interpreter, as far as that is told. */
	if (finalizing != OFFSET_ABSENT &&
	    !remote_memory_read_u64(snapshot->memory, snapshot->runtime_addr + finalizing, &addr) &&
	    addr == thread->ref.addr)
		sample.flags |= SAMPLE_FINALIZES;
	if (sampler->variables)
		variable_reader_forget(sampler->variables);
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
	}
	return err ? err : sampler_names_read(sampler);
}

/* A look at who there is. */
static int look_at_list(struct snapshot *snapshot)
{
	enum instant_verdict verdict;
	int err = refresh_patiently(snapshot);

	if (!err)
		err = snapshot_begin(snapshot, NULL);
	return err ? err : snapshot_end(snapshot, &verdict);
}

int sampler_dump(struct sampler *sampler, struct sample_sink *sink)
{
	struct snapshot *snapshot = &sampler->snapshot;
	int err = sampler_begin_holding(sampler);

	if (!err)
		err = look_at_list(snapshot);
	if (!err)
		err = begin_threads(sampler);
	variable_reader_destroy(sampler->variables);
	sampler->variables = NULL;
	if (!err && sampler->looks.value_max_chars)
		err = variable_reader_create(snapshot->memory, sampler->build,
					     sampler->looks.value_max_chars, &sampler->variables);
	for (size_t i = snapshot->nr_threads; !err && i > 0; i--) {
		struct snapshot_thread *thread = snapshot->threads[i - 1];

		err = thread->copied ? -EAGAIN : 0;
		while (err == -EAGAIN)
			err = look_at(sampler, thread, sink);
	}
	sampler_end_holding(sampler);
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
