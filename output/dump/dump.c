/* SPDX-License-Identifier: MIT */
#include "output/dump/dump.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/dump/dump_tasks.h"
#include "output/profile/label.h"
#include "output/text/json.h"
#include "output/text/signal_name.h"
#include "output/text/text.h"
#include "procmem/array.h"
#include "procmem/cleanup.h"

/* A kept sample, with thread and frames copied. Functions are borrowed from the sampler. */
struct dumped {
	struct sample_thread thread;
	uint32_t flags;
	int error;
	uint32_t nr_frames;
	char *exception_type;	      /* owned; NULL: no exception */
	char *exception_message;      /* owned */
	struct frame *frames;	      /* owned */
	struct frame_detail *details; /* owned; NULL: none */
};

struct dump {
	struct sample_sink sink;
	struct dumped *threads; /* owned; the first nr_crashed crashed */
	uint32_t nr_threads, max_threads, nr_crashed;
	bool includes_native;
	bool includes_variables;
	struct source_lines *sources; /* borrowed; NULL: no source */
	pid_t *tids;		      /* of the first nr_tids threads, ascending; owned */
	uint32_t nr_tids;
	struct dump_tasks tasks;
	enum tasks_read tasks_read;
	struct native_thread *native_threads;
	uint32_t nr_native_threads, max_native_threads;
	const struct post_mortem *post_mortem; /* borrowed; NULL for a process */
};

/* Insert a thread, for which there is room: after those that crashed if it did, else at the end. */
static struct dumped *add_place(struct dump *dump, bool crashed)
{
	struct dumped *threads = dump->threads;
	const uint32_t place = crashed ? dump->nr_crashed++ : dump->nr_threads;

	memmove(&threads[place + 1], &threads[place],
		(dump->nr_threads - place) * sizeof(*threads));
	dump->nr_threads++;
	return &threads[place];
}

/* Copy the exception of a sample. Returns 0 or -ENOMEM. */
static int copy_exception(const struct sample *sample, char **ret_type, char **ret_message)
{
	cleanup_free char *type = NULL;

	*ret_type = *ret_message = NULL;
	if (!sample->exception)
		return 0;
	type = strdup(sample->exception->type_name);
	*ret_message = type ? strdup(sample->exception->message) : NULL;
	if (!*ret_message)
		return -ENOMEM;
	*ret_type = take_ptr(type);
	return 0;
}

static int dump_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct dump *dump = (struct dump *)sink;
	const uint32_t nr_frames = sample->nr_frames;
	struct dumped *threads = array_reserve(dump->threads, dump->nr_threads + 1,
					       &dump->max_threads, sizeof(*threads));
	cleanup_free struct frame *frames = NULL;
	cleanup_free struct frame_detail *details = NULL;
	cleanup_free char *exception_type = NULL;
	cleanup_free char *exception_message = NULL;
	int err;

	if (!threads)
		return -ENOMEM;
	dump->threads = threads;
	frames = array_copy(sample->frames, nr_frames, sizeof(*frames));
	if (sample->details)
		details = array_copy(sample->details, nr_frames, sizeof(*details));
	if (!frames || (sample->details && !details))
		return -ENOMEM;
	err = copy_exception(sample, &exception_type, &exception_message);
	if (err)
		return err;
	if (details)
		err = dump_copy_variables(details, nr_frames);
	if (err) {
		dump_free_variables(details, nr_frames);
		return err;
	}
	*add_place(dump, sample->flags & SAMPLE_CRASHED) = (struct dumped){
		.thread = *sample->thread,
		.flags = sample->flags,
		.error = sample->error,
		.nr_frames = nr_frames,
		.exception_type = take_ptr(exception_type),
		.exception_message = take_ptr(exception_message),
		.frames = take_ptr(frames),
		.details = take_ptr(details),
	};
	return 0;
}

static int dump_task(struct sample_sink *sink, const struct task_sample *task)
{
	return dump_tasks_add(&((struct dump *)sink)->tasks, task);
}

static const struct sample_sink_ops dump_ops = {.sample = dump_sample, .task = dump_task};

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
		free(dump->threads[i].exception_type);
		free(dump->threads[i].exception_message);
		free(dump->threads[i].frames);
		dump_free_variables(dump->threads[i].details, dump->threads[i].nr_frames);
		free(dump->threads[i].details);
	}
	free(dump->threads);
	dump_tasks_done(&dump->tasks);
	free(dump->tids);
	free(dump->native_threads);
	free(dump);
}

struct sample_sink *dump_sink(struct dump *dump)
{
	return &dump->sink;
}

void dump_set_post_mortem(struct dump *dump, const struct post_mortem *post_mortem)
{
	dump->post_mortem = post_mortem;
}

void dump_include_native(struct dump *dump)
{
	dump->includes_native = true;
}

void dump_include_variables(struct dump *dump)
{
	dump->includes_variables = true;
}

void dump_include_sources(struct dump *dump, struct source_lines *sources)
{
	dump->sources = sources;
}

void dump_set_tasks(struct dump *dump, enum tasks_read tasks)
{
	dump->tasks_read = tasks;
}

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a;
	pid_t y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* Make a sorted array of all thread ids. Returns false if out of memory. */
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
	struct native_thread *native_threads;

	if (!sort_tids(dump))
		return -ENOMEM;
	if (dump->nr_tids &&
	    bsearch(&thread->tid, dump->tids, dump->nr_tids, sizeof(*dump->tids), compare_tids))
		return 0;
	native_threads = array_reserve(dump->native_threads, dump->nr_native_threads + 1,
				       &dump->max_native_threads, sizeof(*native_threads));
	if (!native_threads)
		return -ENOMEM;
	dump->native_threads = native_threads;
	native_threads[dump->nr_native_threads++] = *thread;
	return 0;
}

/* Returns the first thread whose sample has a flag, or NULL. */
static const struct dumped *dump_find(const struct dump *dump, uint32_t flag)
{
	for (uint32_t i = 0; i < dump->nr_threads; i++)
		if (dump->threads[i].flags & flag)
			return &dump->threads[i];
	return NULL;
}

/* Returns how many Python threads have no id. Any native thread may be one of them. */
static size_t dump_count_unknown(const struct dump *dump)
{
	size_t nr = 0;

	for (size_t i = 0; i < dump->nr_threads; i++)
		nr += dump->threads[i].thread.tid == 0;
	return nr;
}

static void append_name(struct text *text, const char *name)
{
	label_append_escaped(text, name, strlen(name), LABEL_DISPLAY);
}

/* Append a thread's state. */
static void append_state(struct text *text, uint32_t flags)
{
	static const struct {
		uint32_t flag;
		const char *words;
	} states[] = {
		{SAMPLE_CRASHED, ", crashed"},
		{SAMPLE_HOLDS_GIL, ", holds the GIL"},
		{SAMPLE_WAITS_FOR_GIL, ", waits for the GIL"},
		{SAMPLE_GC, ", collects garbage"},
	};

	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
		if (flags & states[i].flag)
			text_puts(text, states[i].words);
}

static void append_exception(struct text *text, const struct dumped *dumped)
{
	if (!dumped->exception_type)
		return;
	text_puts(text, "  handling ");
	append_name(text, dumped->exception_type);
	if (dumped->exception_message[0]) {
		text_puts(text, ": ");
		append_name(text, dumped->exception_message);
	}
	text_puts(text, "\n");
}

static void append_thread(struct text *text, const struct dump *dump, const struct dumped *dumped)
{
	const struct sample_thread *thread = &dumped->thread;
	const struct dump_frames frames = {
		.frames = dumped->frames,
		.details = dumped->details,
		.nr = dumped->nr_frames,
		.sources = dump->sources,
	};

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
	append_state(text, dumped->flags);
	text_puts(text, dumped->nr_frames || dumped->error ? " (most recent call last):\n"
							   : ": runs no Python code\n");
	if (dumped->flags & SAMPLE_BRIDGED)
		text_puts(text, "  (some links between frames are missing from the core: frames "
				"below them come from the data stack)\n");
	if (dumped->error)
		text_printf(text, "  (the stack is incomplete: %s)\n",
			    dump_error_text(dumped->error));
	else if (dumped->flags & SAMPLE_UNPROVEN)
		text_puts(text, "  (read while the thread ran: these frames may not belong "
				"together)\n");
	if (dumped->flags & SAMPLE_IN_JIT)
		text_puts(text, "  (in JIT code: the line of the innermost Python frame may "
				"be a few statements late)\n");
	dump_frames_append(text, &frames);
	append_exception(text, dumped);
}

/*
 * Returns the thread whose crash ended the process, or for a snapshot the main thread; NULL if
 * there is none, or if Python does not know the thread that crashed.
 */
static const struct dumped *fatal_thread(const struct dump *dump)
{
	const struct dumped *crashed = dump_find(dump, SAMPLE_CRASHED);

	if (crashed || dump->post_mortem->signal)
		return crashed;
	for (size_t i = 0; i < dump->nr_threads; i++)
		if (dump->threads[i].thread.is_main)
			return &dump->threads[i];
	return dump->nr_threads ? &dump->threads[0] : NULL;
}

void dump_append_fatal(const struct dump *dump, struct text *text)
{
	const struct dumped *fatal = fatal_thread(dump);
	struct dump_frames frames = {0};
	char name[SIGNAL_NAME_MAX_BYTES];

	if (dump->post_mortem->signal) {
		signal_name(dump->post_mortem->signal, name);
		text_printf(text, "Killed by %s\n", name);
	} else {
		text_puts(text, "A snapshot: the process did not die\n");
	}
	if (fatal)
		frames = (struct dump_frames){.frames = fatal->frames, .nr = fatal->nr_frames};
	dump_frames_append(text, &frames);
	if (!fatal)
		text_puts(text, "  (a thread unknown to Python: see --native=all)\n");
	else if (!frames.nr)
		text_puts(text, "  (no Python frames)\n");
}

/* Returns what a thread does, by its state. Source: proc_pid_stat(5). */
static const char *state_text(char state)
{
	switch (state) {
	case 'R':
		return "runs";
	case 'D':
		return "waits uninterruptibly";
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

static void append_native_thread(struct text *text, const struct native_thread *thread)
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

static void append_native_threads(struct text *text, const struct dump *dump)
{
	const size_t nr_unknown = dump_count_unknown(dump);

	if (!dump->nr_native_threads) {
		text_puts(text, "\nNo other native threads.\n");
		return;
	}
	if (nr_unknown) {
		text_printf(
			text,
			"\nNative threads cannot be distinguished from these: the id%s of %zu %s "
			"unknown.\n",
			text_plural(nr_unknown), nr_unknown, nr_unknown == 1 ? "is" : "are");
		return;
	}
	text_puts(text, "\nNative threads unknown to Python:\n");
	for (size_t i = 0; i < dump->nr_native_threads; i++)
		append_native_thread(text, &dump->native_threads[i]);
}

static void append_head(struct text *text, const struct dump *dump, const struct run_info *info)
{
	const struct dumped *finalizes = dump_find(dump, SAMPLE_FINALIZES);

	if (dump->post_mortem) {
		post_mortem_append_head(text, dump->post_mortem, info);
	} else {
		text_printf(text, "Process %d: ", info->target.pid);
		append_name(text, info->target.command_line);
		text_printf(text, "\nCPython %s\n", info->python.version);
	}
	if (finalizes)
		text_printf(text, "The interpreter is finalizing in thread %d\n",
			    finalizes->thread.tid);
}

/* Returns 0 or -ENOMEM. */
static int append_tasks(struct text *text, const struct dump *dump)
{
	int err = dump_tasks_append(text, &dump->tasks, dump->sources);

	if (!err && dump->tasks_read == TASKS_PARTIAL)
		text_puts(text, "\nSome tasks could not be read and may be missing.\n");
	return err;
}

int dump_write_text(const struct dump *dump, const struct run_info *info, FILE *out)
{
	struct text text = {0};
	int err;

	append_head(&text, dump, info);
	for (size_t i = 0; i < dump->nr_threads; i++)
		append_thread(&text, dump, &dump->threads[i]);
	err = append_tasks(&text, dump);
	if (dump->includes_native)
		append_native_threads(&text, dump);
	if (dump->post_mortem)
		post_mortem_append_end(&text, dump->post_mortem);
	if (!err)
		err = text_write(&text, out);
	text_done(&text);
	return err;
}

static void write_exception(struct json *json, const struct dumped *dumped)
{
	if (!dumped->exception_type) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	json_member_string(json, "type", dumped->exception_type);
	json_member_string(json, "message", dumped->exception_message);
	json_object_end(json);
}

/* Returns why a stack is incomplete; NULL if it is complete. */
static const char *error_text(const struct dumped *dumped)
{
	if (dumped->error)
		return dump_error_text(dumped->error);
	if (dumped->flags & SAMPLE_GAPS)
		return "some of its frames are not in the core";
	return NULL;
}

static void write_thread(struct json *json, const struct dump *dump, const struct dumped *dumped)
{
	const struct dump_frames frames = {
		.frames = dumped->frames,
		.details = dumped->details,
		.nr = dumped->nr_frames,
		.with_variables = dump->includes_variables,
		.sources = dump->sources,
	};

	json_object_begin(json);
	json_key(json, "tid");
	json_i64(json, dumped->thread.tid);
	json_key(json, "name");
	json_string(json, dumped->thread.name);
	json_key(json, "os_name");
	json_string(json, dumped->thread.os_name);
	json_key(json, "interpreter");
	json_i64(json, dumped->thread.interpreter_id);
	json_member_bool(json, "main", dumped->thread.is_main);
	json_member_bool(json, "holds_gil", (dumped->flags & SAMPLE_HOLDS_GIL) != 0);
	json_member_bool(json, "waits_for_gil", (dumped->flags & SAMPLE_WAITS_FOR_GIL) != 0);
	json_member_bool(json, "gc", (dumped->flags & SAMPLE_GC) != 0);
	json_member_bool(json, "jit", (dumped->flags & SAMPLE_IN_JIT) != 0);
	json_member_bool(json, "crashed", (dumped->flags & SAMPLE_CRASHED) != 0);
	json_key(json, "exception");
	write_exception(json, dumped);
	json_member_bool(json, "c_stack_missing", (dumped->flags & SAMPLE_C_STACK_MISSING) != 0);
	json_member_bool(json, "proven", !(dumped->flags & SAMPLE_UNPROVEN));
	json_member_string(json, "error", error_text(dumped));
	json_key(json, "frames");
	dump_frames_write(json, &frames);
	json_object_end(json);
}

static void write_native_thread(struct json *json, const struct native_thread *thread)
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

static void write_native_threads(struct json *json, const struct dump *dump)
{
	json_key(json, "native_threads");
	if (!dump->includes_native || (dump->nr_native_threads && dump_count_unknown(dump))) {
		json_string(json, NULL);
		return;
	}
	json_array_begin(json);
	for (size_t i = 0; i < dump->nr_native_threads; i++)
		write_native_thread(json, &dump->native_threads[i]);
	json_array_end(json);
}

static void write_tasks(struct json *json, const struct dump *dump)
{
	json_key(json, "tasks");
	if (dump->tasks_read == TASKS_NOT_READ)
		json_null(json);
	else
		dump_tasks_write(json, &dump->tasks, dump->sources);
	json_key(json, "tasks_complete");
	if (dump->tasks_read == TASKS_NOT_READ)
		json_null(json);
	else
		json_bool(json, dump->tasks_read == TASKS_COMPLETE);
}

int dump_write_json(const struct dump *dump, const struct run_info *info, FILE *out)
{
	const struct dumped *finalizes = dump_find(dump, SAMPLE_FINALIZES);
	struct json json;

	json_init(&json, out, 2);
	json_object_begin(&json);
	json_key(&json, "pid");
	json_i64(&json, info->target.pid);
	json_key(&json, "python");
	json_string(&json, info->python.version);
	json_key(&json, "command");
	json_string(&json, info->target.command_line);
	if (dump->post_mortem)
		post_mortem_write_json(&json, dump->post_mortem);
	json_key(&json, "finalizing");
	if (finalizes)
		json_i64(&json, finalizes->thread.tid);
	else
		json_null(&json);
	json_key(&json, "threads");
	json_array_begin(&json);
	for (size_t i = 0; i < dump->nr_threads; i++)
		write_thread(&json, dump, &dump->threads[i]);
	json_array_end(&json);
	write_tasks(&json, dump);
	write_native_threads(&json, dump);
	json_object_end(&json);
	return json_finish(&json);
}
