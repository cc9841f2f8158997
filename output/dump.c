/* SPDX-License-Identifier: MIT */
#include "output/dump.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/json.h"
#include "output/label.h"
#include "output/text.h"
#include "procmem/cleanup.h"

/* A sample that is kept: its thread and frames copied. Functions live as long as the sampler. */
struct dumped {
	struct sample_thread thread;
	uint32_t flags;
	int error;
	uint32_t nr_frames;
	struct frame *frames;	      /* owned */
	struct frame_detail *details; /* owned; NULL: none came */
};

struct dump {
	struct sample_sink sink;
	struct dumped *threads;
	size_t nr_threads, max_threads;
	bool wants_native;
	pid_t *tids; /* of the first nr_tids threads, by rising value; owned */
	size_t nr_tids;
	struct native_thread *natives;
	size_t nr_natives, max_natives;
};

/*
 * array with room for one element more than nr; NULL if out of memory, and then array is
 * still there.
 */
static void *array_reserve(void *array, size_t nr, size_t *max, size_t element_bytes)
{
	size_t grown = *max ? *max * 2 : 16;
	void *ret;

	if (nr < *max)
		return array;
	ret = reallocarray(array, grown, element_bytes);
	if (ret)
		*max = grown;
	return ret;
}

/* A copy of nr elements; not NULL, even of none, but when out of memory. */
static void *array_copy(const void *array, size_t nr, size_t element_bytes)
{
	void *copy = reallocarray(NULL, nr + 1, element_bytes);

	if (copy && nr)
		memcpy(copy, array, nr * element_bytes);
	return copy;
}

static int dump_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct dump *dump = (struct dump *)sink;
	const uint32_t nr_frames = sample->nr_frames;
	struct dumped *threads = array_reserve(dump->threads, dump->nr_threads, &dump->max_threads,
					       sizeof(*threads));
	cleanup_free struct frame *frames = NULL;
	cleanup_free struct frame_detail *details = NULL;

	if (!threads)
		return -ENOMEM;
	dump->threads = threads;
	frames = array_copy(sample->frames, nr_frames, sizeof(*frames));
	if (sample->details)
		details = array_copy(sample->details, nr_frames, sizeof(*details));
	if (!frames || (sample->details && !details))
		return -ENOMEM;
	threads[dump->nr_threads++] = (struct dumped){
		.thread = *sample->thread,
		.flags = sample->flags,
		.error = sample->error,
		.nr_frames = nr_frames,
		.frames = take_ptr(frames),
		.details = take_ptr(details),
	};
	return 0;
}

static const struct sample_sink_ops dump_ops = {.sample = dump_sample};

struct dump *dump_create(void)
{
	struct dump *dump = calloc(1, sizeof(*dump));

	if (dump)
		dump->sink.ops = &dump_ops;
	return dump;
}

void dump_destroy(struct dump *dump)
{
	if (!dump)
		return;
	for (size_t i = 0; i < dump->nr_threads; i++) {
		free(dump->threads[i].frames);
		free(dump->threads[i].details);
	}
	free(dump->threads);
	free(dump->tids);
	free(dump->natives);
	free(dump);
}

struct sample_sink *dump_sink(struct dump *dump)
{
	return &dump->sink;
}

void dump_want_native(struct dump *dump)
{
	dump->wants_native = true;
}

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a;
	pid_t y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* Have the ids of all threads sorted. False if out of memory. */
static bool sort_tids(struct dump *dump)
{
	pid_t *tids;

	if (dump->nr_tids == dump->nr_threads)
		return true;
	tids = reallocarray(dump->tids, dump->nr_threads, sizeof(*tids));
	if (!tids)
		return false;
	dump->tids = tids;
	dump->nr_tids = dump->nr_threads;
	for (size_t i = 0; i < dump->nr_tids; i++)
		tids[i] = dump->threads[i].thread.tid;
	qsort(tids, dump->nr_tids, sizeof(*tids), compare_tids);
	return true;
}

int dump_add_native(struct dump *dump, const struct native_thread *thread)
{
	struct native_thread *natives;

	if (!sort_tids(dump))
		return -ENOMEM;
	if (dump->nr_tids &&
	    bsearch(&thread->tid, dump->tids, dump->nr_tids, sizeof(*dump->tids), compare_tids))
		return 0;
	natives = array_reserve(dump->natives, dump->nr_natives, &dump->max_natives,
				sizeof(*natives));
	if (!natives)
		return -ENOMEM;
	dump->natives = natives;
	natives[dump->nr_natives++] = *thread;
	return 0;
}

const char *dump_error_text(int error)
{
	switch (error) {
	case -EFAULT:
		return "memory that had to be there was not";
	case -E2BIG:
		return "it has too many frames, or they go in a circle";
	default: /* -EAGAIN, -EBADMSG */
		return "its frames do not hang together";
	}
}

static void append_name(struct text *text, const char *name)
{
	label_append_escaped(text, name, strlen(name), LABEL_DISPLAY);
}

static void append_thread(struct text *text, const struct dumped *dumped)
{
	const struct sample_thread *thread = &dumped->thread;

	text_printf(text, "\nThread %d", thread->tid);
	if (thread->name[0]) {
		text_puts(text, " \"");
		append_name(text, thread->name);
		text_puts(text, "\"");
	}
	if (thread->interpreter_id)
		text_printf(text, " in interpreter %lld", (long long)thread->interpreter_id);
	if (thread->is_main)
		text_puts(text, ", main");
	if (dumped->flags & SAMPLE_HOLDS_GIL)
		text_puts(text, ", holds the GIL");
	text_puts(text, dumped->nr_frames || dumped->error ? " (most recent call last):\n"
							   : ": runs no Python code\n");
	if (dumped->error)
		text_printf(text, "  (its stack could not be followed to the bottom: %s)\n",
			    dump_error_text(dumped->error));
	else if (dumped->flags & SAMPLE_UNPROVEN)
		text_puts(text, "  (it ran while it was read: these frames may not belong "
				"together)\n");
	for (uint32_t i = 0; i < dumped->nr_frames; i++) {
		const struct frame *frame = &dumped->frames[i];

		text_puts(text, "  File \"");
		append_name(text, frame->function->path);
		text_printf(text, "\", line %d, in ", frame->line);
		append_name(text, frame->function->qualname);
		text_puts(text, "\n");
	}
}

/* What a thread does, by its state. Source: proc_pid_stat(5). */
static const char *state_text(char state)
{
	switch (state) {
	case 'R':
		return "runs";
	case 'D':
		return "waits for a device";
	case 'T':
		return "is stopped";
	case 't':
		return "is stopped by a tracer";
	case 'Z':
	case 'X':
		return "has ended";
	default:
		return "waits";
	}
}

static void append_native(struct text *text, const struct native_thread *thread)
{
	text_printf(text, "  Thread %d \"", thread->tid);
	append_name(text, thread->name);
	text_printf(text, "\": %s", state_text(thread->state));
	if (thread->wchan[0]) {
		text_puts(text, " in ");
		append_name(text, thread->wchan);
	}
	text_puts(text, "\n");
}

/* How many threads of Python's have no id: any native one may be one of those. */
static size_t count_unknown(const struct dump *dump)
{
	size_t nr = 0;

	for (size_t i = 0; i < dump->nr_threads; i++)
		nr += dump->threads[i].thread.tid == 0;
	return nr;
}

static void append_natives(struct text *text, const struct dump *dump)
{
	const size_t nr_unknown = count_unknown(dump);

	if (!dump->nr_natives) {
		text_puts(text, "\nNo native threads beside these.\n");
		return;
	}
	if (nr_unknown) {
		text_printf(text,
			    "\nNative threads cannot be told from these: the id%s of %zu %s not "
			    "known.\n",
			    text_plural(nr_unknown), nr_unknown, nr_unknown == 1 ? "is" : "are");
		return;
	}
	text_puts(text, "\nNative threads, which Python does not know:\n");
	for (size_t i = 0; i < dump->nr_natives; i++)
		append_native(text, &dump->natives[i]);
}

int dump_write_text(const struct dump *dump, const struct run_info *info, FILE *out)
{
	struct text text = {0};
	int err;

	text_printf(&text, "Process %d: ", info->pid);
	append_name(&text, info->command_line);
	text_printf(&text, "\nCPython %s\n", info->python);
	for (size_t i = 0; i < dump->nr_threads; i++)
		append_thread(&text, &dump->threads[i]);
	if (dump->wants_native)
		append_natives(&text, dump);
	err = text_write(&text, out);
	text_done(&text);
	return err;
}

/* A number that may not be known, which is less than 0 then. */
static void write_known(struct json *json, const char *key, int32_t value)
{
	json_key(json, key);
	if (value < 0)
		json_null(json);
	else
		json_i64(json, value);
}

static void write_frame(struct json *json, const struct frame *frame,
			const struct frame_detail *detail)
{
	json_object_begin(json);
	json_key(json, "name");
	json_string(json, frame->function->qualname);
	json_key(json, "path");
	json_string(json, frame->function->path);
	json_key(json, "line");
	json_i64(json, frame->line);
	json_key(json, "first_line");
	json_i64(json, frame->function->first_line);
	write_known(json, "column", detail->column);
	write_known(json, "end_line", detail->end_line);
	write_known(json, "end_column", detail->end_column);
	json_object_end(json);
}

/* What is known of a thread's frame beside the frame. */
static const struct frame_detail *detail_of(const struct dumped *dumped, uint32_t i)
{
	static const struct frame_detail unknown = {.column = -1, .end_line = -1, .end_column = -1};

	return dumped->details ? &dumped->details[i] : &unknown;
}

static void write_thread(struct json *json, const struct dumped *dumped)
{
	json_object_begin(json);
	json_key(json, "tid");
	json_i64(json, dumped->thread.tid);
	json_key(json, "name");
	json_string(json, dumped->thread.name);
	json_key(json, "os_name");
	json_string(json, dumped->thread.os_name);
	json_key(json, "interpreter");
	json_i64(json, dumped->thread.interpreter_id);
	json_key(json, "main");
	json_bool(json, dumped->thread.is_main);
	json_key(json, "holds_gil");
	json_bool(json, (dumped->flags & SAMPLE_HOLDS_GIL) != 0);
	json_key(json, "proven");
	json_bool(json, !(dumped->flags & SAMPLE_UNPROVEN));
	json_key(json, "error");
	json_string(json, dumped->error ? dump_error_text(dumped->error) : NULL);
	json_key(json, "frames");
	json_array_begin(json);
	for (uint32_t i = 0; i < dumped->nr_frames; i++)
		write_frame(json, &dumped->frames[i], detail_of(dumped, i));
	json_array_end(json);
	json_object_end(json);
}

static void write_native(struct json *json, const struct native_thread *thread)
{
	const char state[] = {thread->state, '\0'};

	json_object_begin(json);
	json_key(json, "tid");
	json_i64(json, thread->tid);
	json_key(json, "name");
	json_string(json, thread->name);
	json_key(json, "state");
	json_string(json, state);
	json_key(json, "wchan");
	json_string(json, thread->wchan[0] ? thread->wchan : NULL);
	json_object_end(json);
}

static void write_natives(struct json *json, const struct dump *dump)
{
	json_key(json, "native_threads");
	if (!dump->wants_native || (dump->nr_natives && count_unknown(dump))) {
		json_string(json, NULL);
		return;
	}
	json_array_begin(json);
	for (size_t i = 0; i < dump->nr_natives; i++)
		write_native(json, &dump->natives[i]);
	json_array_end(json);
}

int dump_write_json(const struct dump *dump, const struct run_info *info, FILE *out)
{
	struct json json;

	json_init(&json, out, 2);
	json_object_begin(&json);
	json_key(&json, "pid");
	json_i64(&json, info->pid);
	json_key(&json, "python");
	json_string(&json, info->python);
	json_key(&json, "command");
	json_string(&json, info->command_line);
	json_key(&json, "threads");
	json_array_begin(&json);
	for (size_t i = 0; i < dump->nr_threads; i++)
		write_thread(&json, &dump->threads[i]);
	json_array_end(&json);
	write_natives(&json, dump);
	json_object_end(&json);
	return json_finish(&json);
}
