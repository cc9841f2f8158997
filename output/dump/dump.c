/* SPDX-License-Identifier: MIT */
#include "output/dump/dump_state.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/dump/dump_variables.h"
#include "procmem/array.h"
#include "procmem/cleanup.h"

/* The place of a new thread, for which there is room: behind those that crashed, or the last. */
static struct dumped *add_place(struct dump *dump, bool crashed)
{
	struct dumped *threads = dump->threads;
	const uint32_t place = crashed ? dump->nr_crashed++ : dump->nr_threads;

	memmove(&threads[place + 1], &threads[place],
		(dump->nr_threads - place) * sizeof(*threads));
	dump->nr_threads++;
	return &threads[place];
}

/* Copy the exception of a sample. 0 or -ENOMEM. */
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
	free(dump->natives);
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

void dump_want_native(struct dump *dump)
{
	dump->wants_native = true;
}

void dump_want_variables(struct dump *dump)
{
	dump->wants_variables = true;
}

void dump_want_sources(struct dump *dump, struct source_lines *sources)
{
	dump->sources = sources;
}

void dump_tell_tasks(struct dump *dump, enum tasks_told told)
{
	dump->tasks_told = told;
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
	natives = array_reserve(dump->natives, dump->nr_natives + 1, &dump->max_natives,
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

const struct dumped *dump_find(const struct dump *dump, uint32_t flag)
{
	for (uint32_t i = 0; i < dump->nr_threads; i++)
		if (dump->threads[i].flags & flag)
			return &dump->threads[i];
	return NULL;
}

size_t dump_count_unknown(const struct dump *dump)
{
	size_t nr = 0;

	for (size_t i = 0; i < dump->nr_threads; i++)
		nr += dump->threads[i].thread.tid == 0;
	return nr;
}
