/* SPDX-License-Identifier: MIT */
/* Dumps the stacks of all threads once, with variables and exceptions on request (sampler.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/bounded_memory.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "sampler/cpython/base/cached_memory.h"
#include "sampler/cpython/frames/frames.h"
#include "sampler/cpython/frames/loop_entries.h"
#include "sampler/cpython/frames/variables.h"
#include "sampler/cpython/objects/exception_text.h"
#include "sampler/cpython/objects/object.h"
#include "sampler/cpython/objects/value.h"
#include "sampler/frame_locks.h"
#include "sampler/sampler_state.h"
#include "sampler/ticker.h"

/*
 * How often a dump looks at a thread that cannot be proven to have stood still, and how long the
 * thread may run in between.
 */
enum { DUMP_MAX_TRIES = 50, DUMP_PAUSE_NS = 200000 };

/* How often a dump tries to read a thread list that changes while it is read. */
enum { REFRESH_MAX_TRIES = 200 };

/* Limit on the reads for an exception; a longer message is marked as cut. */
enum { EXCEPTION_MAX_READS = 8192 };

/*
 * Limit on the reads for a value, which is then cut with "…". A value of 100 characters takes a
 * few dozen reads, a dict with 100,000 removed entries half of the limit.
 */
enum { VALUE_MAX_READS = 8192 };

/*
 * Limits on all variables of a dump: 300,000 values of 100 characters, and twice the time that
 * these take. The frames beyond have none.
 */
#define VARIABLES_MAX_NS    5000000000u
#define VARIABLES_MAX_BYTES (64u << 20)

/* Limit on the length of a name, in characters. */
enum { VARIABLE_NAME_MAX_CHARS = 256 };

/* Variables. */

/*
 * Reads the variables of frames with their values, for a dump that asks for them. Everything read
 * belongs to the target, so its size is limited: per value, and as a whole.
 */
struct variable_reader {
	struct remote_memory *memory;  /* borrowed */
	struct cached_memory cached;   /* reads memory; cleared for each thread */
	struct bounded_memory bounded; /* reads cached */
	const struct py_build *build;  /* borrowed */
	uint64_t cut_ns;	       /* CLOCK_MONOTONIC; end of all reading */
	size_t nr_bytes_left;	       /* limit on the rest of the text */
	size_t value_max_chars;
	char room[]; /* for a name or a value */
};

static void variable_reader_destroy(struct variable_reader *reader)
{
	if (reader)
		cached_memory_done(&reader->cached);
	free(reader);
}

/* Create a reader for the extras of a sampler. NULL: out of memory. */
static struct variable_reader *variable_reader_create(const struct sampler *sampler)
{
	const size_t max_chars = sampler->extras.value_max_chars;
	struct variable_reader *reader =
		malloc(sizeof(*reader) + value_text_room(max_chars > VARIABLE_NAME_MAX_CHARS
								 ? max_chars
								 : VARIABLE_NAME_MAX_CHARS));

	if (!reader)
		return NULL;
	reader->memory = sampler->snapshot.memory;
	reader->build = sampler->build;
	reader->cut_ns = clock_now_ns() + VARIABLES_MAX_NS;
	reader->nr_bytes_left = VARIABLES_MAX_BYTES;
	reader->value_max_chars = max_chars;
	cached_memory_init(&reader->cached, reader->memory);
	return reader;
}

/* Renew the limit on reads for the next value. */
static struct remote_memory *renew(struct variable_reader *reader)
{
	bounded_memory_init(&reader->bounded, &reader->cached.memory, VALUE_MAX_READS, NULL,
			    reader->cut_ns);
	return &reader->bounded.memory;
}

/* Whether an error comes from what was read, and not from the reading. */
static bool is_damage(int err)
{
	return sampler_is_transient(err) || err == -ENOTSUP;
}

/* A copy of a complete text; NULL: out of memory. */
static char *keep_text(struct variable_reader *reader, const struct value_text *text)
{
	const size_t size = text->length + 1;

	reader->nr_bytes_left -= size < reader->nr_bytes_left ? size : reader->nr_bytes_left;
	return strdup(text->bytes);
}

/* Fill detail from the slots. */
static int read_slots(struct variable_reader *reader, const struct variable_slots *from,
		      struct frame_detail *detail)
{
	detail->variables = calloc(from->nr_slots + 1ull, sizeof(*detail->variables));
	if (!detail->variables)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->nr_slots; i++) {
		struct variable *variable = &detail->variables[detail->nr_variables++];
		struct value_text text;
		int err;

		variable->kind = from->slots[i].kind;
		value_text_init(&text, reader->room, VARIABLE_NAME_MAX_CHARS);
		err = value_write_name(renew(reader), reader->build, from->slots[i].name_addr,
				       &text);
		if (err && !is_damage(err))
			return err;
		if (err)
			value_text_puts(&text, "?");
		variable->name = keep_text(reader, &text);
		if (!variable->name)
			return -ENOMEM;
		value_text_init(&text, reader->room, reader->value_max_chars);
		err = value_write(renew(reader), reader->build, from->slots[i].value_addr, &text);
		if (err)
			return err;
		variable->value = keep_text(reader, &text);
		if (!variable->value)
			return -ENOMEM;
	}
	return 0;
}

static void free_variables(struct frame_detail *detail)
{
	for (uint32_t i = 0; i < detail->nr_variables; i++) {
		free(detail->variables[i].name);
		free(detail->variables[i].value);
	}
	free(detail->variables);
	detail->variables = NULL;
	detail->nr_variables = 0;
}

/*
 * Put the variables of a frame into detail, which has none yet; free_variables() frees them. If
 * the frame is gone or its variables cannot be read, detail gets none, and lacks_variables. A
 * frame without a code object has none. Returns 0, -ENOMEM, -ESRCH, -EPERM.
 */
static int read_variables(struct variable_reader *reader, const struct walked_frame *frame,
			  struct frame_detail *detail)
{
	const remote_addr executable_addr = frame->addr + reader->build->offsets.frame.executable;
	struct variable_slots slots = {0};
	uint64_t executable;
	int err;

	if (frame->code->is_not_code)
		return 0;
	if (!reader->nr_bytes_left) {
		detail->lacks_variables = true;
		return 0;
	}
	err = variables_read(renew(reader), reader->build, frame->executable, frame->addr, &slots);
	if (!err)
		err = read_slots(reader, &slots, detail);
	free(slots.slots);
	/* They belong to the frame if it still exists and runs the same code. */
	detail->lacks_variables =
		err || remote_memory_read_u64(reader->memory, executable_addr, &executable) ||
		(executable & ~(uint64_t)OBJECT_TAG_MASK) != frame->executable;
	if (detail->lacks_variables)
		free_variables(detail);
	return is_damage(err) ? 0 : err;
}

/* What a dump reports of each frame besides its function and line. */

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

static void free_details(struct frame_detail *details, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		free_variables(&details[i]);
	free(details);
}

int sample_details(const struct code_cache *codes, const struct frame_list *list,
		   const struct loop_entry *entries, struct variable_reader *variables,
		   const struct sample *sample, struct frame_detail **ret_details)
{
	struct frame_detail *details = calloc(sample->nr_frames + 1ull, sizeof(*details));
	uint32_t listed = 0;
	int err = 0;

	if (!details)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < sample->nr_frames; i++) {
		/* The loop call in which the frame is the first visible one, if any. */
		struct loop_entry entry = {.is_entry = false};
		const struct walked_frame *walked;

		details[i] = unknown;
		if (sample->frames[i].function->kind == FUNCTION_COLLECTOR)
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
		details[i] = frame_detail_of(codes, walked);
		details[i].is_entry = entry.is_entry;
		details[i].entry_addr = entry.c_addr;
		if (variables)
			err = read_variables(variables, walked, &details[i]);
	}
	if (err)
		free_details(details, sample->nr_frames);
	else
		*ret_details = details;
	return err;
}

/* A sink that adds details to each sample of a thread and passes it to next. */
struct detail_sink {
	struct sample_sink sink;
	struct sampler *sampler;
	const struct snapshot_thread *thread;
	struct sample_sink *next;
};

static int add_details(struct sample_sink *sink, const struct sample *sample)
{
	const struct detail_sink *self = (const struct detail_sink *)sink;
	const struct code_cache *codes = &self->sampler->codes;
	const struct frame_list *list = &self->sampler->threads[self->thread->slot].list;
	cleanup_free struct loop_entry *entries = NULL;
	struct frame_detail *details;
	struct sample detailed = *sample;
	int err = loop_entries_read(codes, self->thread->ref.addr, list, !sample->error, &entries);

	if (!err)
		err = sample_details(codes, list, entries, self->sampler->variables, sample,
				     &details);
	if (err)
		return err;
	detailed.details = details;
	err = self->next->ops->sample(self->next, &detailed);
	free_details(details, sample->nr_frames);
	return err;
}

/* Stacks. */

/*
 * Walk the thread's stack into its list, and set in *ret_sample whether it is proven and
 * complete. Returns 0; -ENOENT: the thread has ended; or an error that ends the dump.
 */
static int walk_live(struct sampler *sampler, struct snapshot_thread *thread,
		     struct sample *ret_sample)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const struct walked_thread *walked = &sampled->walked;
	struct instant *instant = &sampler->snapshot.instant;
	int err = sampler_thread_look(sampler, thread, false);

	for (int i = 1; i < DUMP_MAX_TRIES && err == -EBADMSG; i++) {
		const uint64_t look_ns = clock_now_ns() + DUMP_PAUSE_NS;

		/* Lets the thread run on, and follows it to its CPU for the next look. */
		if (instant->preempt)
			preempt_aim(instant->preempt, &instant->followed, look_ns);
		clock_sleep_until(look_ns);
		err = sampler_thread_look(sampler, thread, false);
	}
	sampled->room.nr_converted = 0;
	if (err && err != -EBADMSG)
		return err;
	/* Without a proof, show the chain as it was last followed. */
	*ret_sample = (struct sample){
		.flags = err ? SAMPLE_UNPROVEN : 0,
		.error = walked->is_whole		 ? 0
			 : walked->loss == LOSS_TOO_DEEP ? -E2BIG
							 : -EBADMSG,
	};
	return 0;
}

/* walk_live() for a core file. */
static int walk_core(struct sampler *sampler, struct snapshot_thread *thread,
		     struct sample *ret_sample)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const struct stack_ends ends = stack_ends_read(sampler->snapshot.memory, sampler->build,
						       thread->ref.addr, thread->state);
	const struct frame_list *list = &sampled->list;
	bool bridged, has_gaps = false;
	int err =
		frames_walk_core(&sampler->codes, &thread->clock, &ends, &sampled->list, &bridged);

	sampled->room.nr_converted = 0;
	if (err && err != -EAGAIN && err != -EBADMSG && err != -EFAULT && err != -E2BIG)
		return err;
	sampler_thread_set_flags(sampler, thread);
	for (uint32_t i = 0; i < list->nr_frames; i++)
		has_gaps = has_gaps || (list->frames[i].code->has_gaps && frame_visible(list, i));
	*ret_sample = (struct sample){
		.flags = (err ? SAMPLE_UNPROVEN : 0) | (bridged ? SAMPLE_BRIDGED : 0) |
			 (has_gaps ? SAMPLE_GAPS : 0),
		.error = err,
	};
	return 0;
}

/* Emit a thread whose stack is in its list, with all details. */
static int emit_detailed(struct sampler *sampler, const struct snapshot_thread *thread,
			 struct sample sample, struct sample_sink *sink)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	const uint32_t finalizing = sampler->build->offsets.runtime.finalizing;
	struct exception_text text = {0};
	struct sample_exception exception;
	static const struct sample_sink_ops ops = {.sample = add_details};
	struct detail_sink detailed = {{&ops}, sampler, thread, sink};
	remote_addr addr = sampler_thread_exception(sampler, thread);
	struct sample_lock locks[FRAME_LOCKS_MAX];
	struct bounded_memory bounded;
	int err = 0;

	bounded_memory_init(&bounded, snapshot->memory, EXCEPTION_MAX_READS, NULL, UINT64_MAX);
	if (addr && value_types_are_known(&sampler->build->offsets))
		err = exception_text_read(&bounded.memory, sampler->build, addr, &text);
	/* An exception that cannot be read is left out. */
	if (remote_error_is_fatal(err))
		return err;
	exception = (struct sample_exception){text.type_name, text.message};
	if (text.type_name)
		sample.exception = &exception;
	if (sampler->threads[thread->slot].walked.collector != NOT_COLLECTING)
		sample.flags |= SAMPLE_GC;
	err = 0;
	if (sampler->extras.locks && !(sample.flags & SAMPLE_UNPROVEN))
		err = frame_locks_read(snapshot->memory, sampler->build,
				       &sampler->threads[thread->slot].list, locks,
				       &sample.nr_locks);
	sample.locks = locks;
	/* The thread that finalizes the interpreter, if the version records it. */
	if (finalizing != OFFSET_ABSENT &&
	    !remote_memory_read_u64(snapshot->memory, snapshot->runtime_addr + finalizing, &addr) &&
	    addr == thread->ref.addr)
		sample.flags |= SAMPLE_FINALIZES;
	if (sampler->variables)
		cached_memory_clear(&sampler->variables->cached);
	if (!err)
		err = sampler_thread_emit(sampler, thread, sample, &detailed.sink);
	exception_text_done(&text);
	return err;
}

/* Look at one thread and emit its sample, unless it has ended. */
static int dump_thread(struct sampler *sampler, struct snapshot_thread *thread,
		       struct sample_sink *sink)
{
	struct sample sample;
	int err;

	(void)code_cache_clear_if_full(&sampler->codes);
	if (sink->ops->before_look)
		sink->ops->before_look(sink, sampler->threads[thread->slot].info);
	err = sampler->extras.is_core ? walk_core(sampler, thread, &sample)
				      : walk_live(sampler, thread, &sample);
	if (err)
		return err == -ENOENT ? 0 : err;
	return sampler->extras.details ? emit_detailed(sampler, thread, sample, sink)
				       : sampler_thread_emit(sampler, thread, sample, sink);
}

/* sampler_dump(), while CPUs can be held. */
static int dump_threads(struct sampler *sampler, struct sample_sink *sink)
{
	struct snapshot *snapshot = &sampler->snapshot;
	enum instant_verdict verdict;
	int err;

	/* List the threads. A process may start and end threads all the time. */
	err = snapshot_refresh(snapshot);
	for (int i = 1; !snapshot->is_core && i < REFRESH_MAX_TRIES && sampler_is_transient(err);
	     i++) {
		(void)usleep(REFRESH_PAUSE_US);
		err = snapshot_refresh(snapshot);
	}
	if (!err)
		err = snapshot_begin(snapshot, NULL);
	if (!err)
		err = snapshot_end(snapshot, &verdict);
	/* Identify all threads before their stacks are read. */
	sampler->identities.nr_os_names_left = UINT32_MAX;
	for (size_t i = snapshot->nr_threads; !err && i > 0; i--)
		if (snapshot->threads[i - 1]->was_copied)
			err = sampler_thread_begin(sampler, snapshot->threads[i - 1]);
	if (!err)
		err = sampler_names_read(sampler, NULL, false);
	if (!err && sampler->extras.value_max_chars) {
		sampler->variables = variable_reader_create(sampler);
		err = sampler->variables ? 0 : -ENOMEM;
	}
	for (size_t i = snapshot->nr_threads; !err && i > 0; i--) {
		struct snapshot_thread *thread = snapshot->threads[i - 1];

		err = thread->was_copied ? -EAGAIN : 0;
		while (err == -EAGAIN)
			err = dump_thread(sampler, thread, sink);
	}
	variable_reader_destroy(sampler->variables);
	sampler->variables = NULL;
	return err;
}

int sampler_dump(struct sampler *sampler, struct sample_sink *sink)
{
	struct instant *instant = &sampler->snapshot.instant;
	int err = instant->is_dead ? 0 : preempt_create(&instant->preempt);

	/* Without CPUs to hold, waiting threads can be proven all the same. */
	if (err == -ENOMEM)
		return err;
	err = dump_threads(sampler, sink);
	preempt_destroy(instant->preempt);
	instant->preempt = NULL;
	return err;
}

const struct function *sampler_function(struct sampler *sampler, enum function_kind kind,
					const char *qualname, const char *path)
{
	return function_table_get(sampler->codes.functions, kind, qualname, path, 0);
}

const struct code_cache *sampler_codes(const struct sampler *sampler)
{
	return &sampler->codes;
}

int sampler_list_error(const struct sampler *sampler)
{
	return sampler->snapshot.list_err;
}
