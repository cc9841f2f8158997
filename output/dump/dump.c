/* SPDX-License-Identifier: MIT */
#include "output/dump/dump.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/dump/dump_tasks.h"
#include "output/dump/dumped_thread.h"
#include "output/dump/task_tree.h"
#include "output/dump/thread_groups.h"
#include "output/profile/label.h"
#include "output/text/json.h"
#include "output/text/signal_name.h"
#include "output/text/text.h"
#include "procmem/array.h"
#include "procmem/cleanup.h"

struct dump {
	struct sample_sink sink;
	struct dumped_thread *threads; /* owned; the first nr_crashed crashed */
	uint32_t nr_threads, max_threads, nr_crashed;
	bool includes_native;
	bool groups_stacks;
	bool shows_task_tree;
	struct dumped_layout layout;
	pid_t *tids; /* of the first nr_tids threads, ascending; owned */
	uint32_t nr_tids;
	struct dump_tasks tasks;
	enum tasks_read tasks_read;
	struct native_thread *native_threads;
	uint32_t nr_native_threads, max_native_threads;
	const struct post_mortem *post_mortem; /* borrowed; NULL for a process */
	const char *const *findings;	       /* borrowed */
	size_t nr_findings;
};

/* Insert a thread, for which there is room: after those that crashed if it did, else at the end. */
static struct dumped_thread *add_place(struct dump *dump, bool crashed)
{
	struct dumped_thread *threads = dump->threads;
	const uint32_t place = crashed ? dump->nr_crashed++ : dump->nr_threads;

	memmove(&threads[place + 1], &threads[place],
		(dump->nr_threads - place) * sizeof(*threads));
	dump->nr_threads++;
	return &threads[place];
}

static int dump_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct dump *dump = (struct dump *)sink;
	struct dumped_thread *threads = array_reserve(dump->threads, dump->nr_threads + 1,
						      &dump->max_threads, sizeof(*threads));
	struct dumped_thread dumped;
	int err;

	if (!threads)
		return -ENOMEM;
	dump->threads = threads;
	err = dumped_thread_init(&dumped, sample);
	if (!err)
		*add_place(dump, sample->flags & SAMPLE_CRASHED) = dumped;
	return err;
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
	for (size_t i = 0; i < dump->nr_threads; i++)
		dumped_thread_done(&dump->threads[i]);
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

void dump_show_task_tree(struct dump *dump)
{
	dump->shows_task_tree = true;
}

void dump_include_variables(struct dump *dump)
{
	dump->layout.with_variables = true;
}

void dump_include_sources(struct dump *dump, struct source_lines *sources)
{
	dump->layout.sources = sources;
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
static const struct dumped_thread *dump_find(const struct dump *dump, uint32_t flag)
{
	for (uint32_t i = 0; i < dump->nr_threads; i++)
		if (dump->threads[i].flags & flag)
			return &dump->threads[i];
	return NULL;
}

void dump_group_stacks(struct dump *dump)
{
	dump->groups_stacks = true;
}

void dump_fold_starts(struct dump *dump)
{
	dump->layout.folds_starts = true;
}

void dump_set_findings(struct dump *dump, const char *const *findings, size_t nr_findings)
{
	dump->findings = findings;
	dump->nr_findings = nr_findings;
}

void dump_append_findings(struct text *text, const char *const *findings, size_t nr_findings)
{
	enum { MAX_LISTED = 16 };

	for (size_t i = 0; i < nr_findings && i < MAX_LISTED; i++) {
		text_puts(text, i ? "" : "\n");
		label_append_string(text, findings[i]);
		text_puts(text, "\n");
	}
	if (nr_findings > MAX_LISTED)
		text_printf(text, "… and %zu more\n", nr_findings - MAX_LISTED);
}

void dump_write_findings(struct json *json, const char *const *findings, size_t nr_findings)
{
	json_key(json, "findings");
	json_array_begin(json);
	for (size_t i = 0; i < nr_findings; i++)
		json_string(json, findings[i]);
	json_array_end(json);
}

int dump_set_waiting(struct dump *dump, uint32_t index, const struct thread_waiting *waiting)
{
	struct thread_waiting copy;
	int err;

	assert(index < dump->nr_threads && !dump->nr_crashed);
	err = thread_waiting_copy(&copy, waiting);
	if (err)
		return err;
	thread_waiting_done(&dump->threads[index].waiting);
	dump->threads[index].waiting = copy;
	return 0;
}

int dump_add_to_groups(const struct dump *dump, pid_t pid, const char *name,
		       struct thread_groups *groups)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < dump->nr_threads && !dump->shows_task_tree; i++) {
		const struct grouped_thread thread = {
			.thread = &dump->threads[i],
			.process = name,
			.pid = pid,
		};

		err = thread_groups_add(groups, &thread, &dump->layout, !dump->groups_stacks);
	}
	return err;
}

/* Returns how many Python threads have no id. Any native thread may be one of them. */
static size_t dump_count_unknown(const struct dump *dump)
{
	size_t nr = 0;

	for (size_t i = 0; i < dump->nr_threads; i++)
		nr += dump->threads[i].thread.tid == 0;
	return nr;
}

/*
 * Returns the thread whose crash ended the process, or for a snapshot the main thread; NULL if
 * there is none, or if Python does not know the thread that crashed.
 */
static const struct dumped_thread *fatal_thread(const struct dump *dump)
{
	const struct dumped_thread *crashed = dump_find(dump, SAMPLE_CRASHED);

	if (crashed || dump->post_mortem->signal)
		return crashed;
	for (size_t i = 0; i < dump->nr_threads; i++)
		if (dump->threads[i].thread.is_main)
			return &dump->threads[i];
	return dump->nr_threads ? &dump->threads[0] : NULL;
}

void dump_append_fatal(const struct dump *dump, struct text *text)
{
	const struct dumped_thread *fatal = fatal_thread(dump);
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

static void append_native_thread(struct text *text, const struct native_thread *thread)
{
	text_printf(text, "  Thread %d \"", thread->tid);
	label_append_string(text, thread->name);
	text_printf(text, "\": %s", thread_state_text(thread->state));
	if (thread->wchan[0]) {
		text_puts(text, " in ");
		label_append_string(text, thread->wchan);
	}
	text_puts(text, "\n");
}

void dump_append_native(struct text *text, const struct dump *dump, pid_t pid, const char *name)
{
	const size_t nr_unknown = dump_count_unknown(dump);

	if (!dump->includes_native || dump->shows_task_tree)
		return;
	if (!dump->nr_native_threads) {
		text_puts(text, "\nNo other native threads");
		dumped_process_append(text, pid, name);
		text_puts(text, ".\n");
		return;
	}
	text_puts(text, "\nNative threads");
	dumped_process_append(text, pid, name);
	if (nr_unknown) {
		text_printf(text,
			    " cannot be distinguished from these: the id%s of %zu %s unknown.\n",
			    text_plural(nr_unknown), nr_unknown, nr_unknown == 1 ? "is" : "are");
		return;
	}
	text_puts(text, " unknown to Python:\n");
	for (size_t i = 0; i < dump->nr_native_threads; i++)
		append_native_thread(text, &dump->native_threads[i]);
}

void dump_append_finalizing(struct text *text, const struct dump *dump, pid_t pid, const char *name)
{
	const struct dumped_thread *finalizes = dump_find(dump, SAMPLE_FINALIZES);

	if (!finalizes)
		return;
	text_puts(text, "The interpreter");
	dumped_process_append(text, pid, name);
	text_printf(text, " is finalizing in thread %d\n", finalizes->thread.tid);
}

static void append_head(struct text *text, const struct dump *dump, const struct run_info *info)
{
	if (dump->post_mortem) {
		post_mortem_append_head(text, dump->post_mortem, info);
	} else {
		text_printf(text, "Process %d: ", info->target.pid);
		label_append_string(text, info->target.command_line);
		text_printf(text, "\nCPython %s\n", info->python.version);
	}
	dump_append_finalizing(text, dump, info->target.pid, NULL);
}

int dump_describe_tasks(const struct dump *dump, pid_t pid, const char *name,
			struct paragraphs *paragraphs)
{
	struct text missing = {0};
	struct source_lines *sources = dump->layout.sources;
	int err = dump->shows_task_tree
			  ? task_tree_describe(&dump->tasks, sources, pid, name, paragraphs)
			  : dump_tasks_describe(&dump->tasks, sources, pid, name, paragraphs);

	if (err || dump->tasks_read != TASKS_PARTIAL)
		return err;
	text_puts(&missing, "Some tasks");
	dumped_process_append(&missing, pid, name);
	text_puts(&missing, " could not be read and may be missing.\n");
	return paragraphs_add(paragraphs, &missing);
}

int dump_write_text(const struct dump *dump, const struct run_info *info, FILE *out)
{
	struct thread_groups groups = {0};
	struct paragraphs tasks = {0};
	struct text text = {0};
	int err = dump_add_to_groups(dump, info->target.pid, NULL, &groups);

	append_head(&text, dump, info);
	dump_append_findings(&text, dump->findings, dump->nr_findings);
	thread_groups_append(&text, &groups);
	thread_groups_done(&groups);
	if (!err)
		err = dump_describe_tasks(dump, info->target.pid, NULL, &tasks);
	paragraphs_append(&text, &tasks);
	paragraphs_done(&tasks);
	dump_append_native(&text, dump, info->target.pid, NULL);
	if (dump->post_mortem)
		post_mortem_append_end(&text, dump->post_mortem);
	if (!err)
		err = text_write(&text, out);
	text_done(&text);
	return err;
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
		dump_tasks_write(json, &dump->tasks, dump->layout.sources);
	json_key(json, "tasks_complete");
	if (dump->tasks_read == TASKS_NOT_READ)
		json_null(json);
	else
		json_bool(json, dump->tasks_read == TASKS_COMPLETE);
}

void dump_write_members(struct json *json, const struct dump *dump, const struct run_info *info)
{
	const struct dumped_thread *finalizes = dump_find(dump, SAMPLE_FINALIZES);

	json_key(json, "pid");
	json_i64(json, info->target.pid);
	json_member_string(json, "python", info->python.version);
	json_member_string(json, "command", info->target.command_line);
	if (dump->post_mortem)
		post_mortem_write_json(json, dump->post_mortem);
	json_key(json, "finalizing");
	if (finalizes)
		json_i64(json, finalizes->thread.tid);
	else
		json_null(json);
	json_key(json, "threads");
	json_array_begin(json);
	for (size_t i = 0; i < dump->nr_threads; i++)
		dumped_thread_write(json, &dump->threads[i], &dump->layout);
	json_array_end(json);
	write_tasks(json, dump);
	write_native_threads(json, dump);
}

int dump_write_json(const struct dump *dump, const struct run_info *info, FILE *out)
{
	struct json json;

	json_init(&json, out, 2);
	json_object_begin(&json);
	json_member_u64(&json, "version", DUMP_JSON_VERSION);
	dump_write_members(&json, dump, info);
	if (!dump->post_mortem)
		dump_write_findings(&json, dump->findings, dump->nr_findings);
	json_object_end(&json);
	return json_finish(&json);
}
