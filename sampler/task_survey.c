/* SPDX-License-Identifier: MIT */
#include "sampler/task_survey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "sampler/sampler_state.h"

/* Making. */

int task_survey_create(struct sampler *sampler, const struct sample_thread *thread,
		       struct task_survey **ret_survey)
{
	struct sample_ids *ids = sampler->identities.ids;
	struct task_survey *survey = calloc(1, sizeof(*survey));

	if (!survey)
		return -ENOMEM;
	survey->info = *thread;
	survey->info.name[0] = '\0';
	survey->info.is_main = false;
	survey->info.ident = 0;
	if (sample_ids_take_slot(ids, &survey->info.slot)) {
		free(survey);
		return -ENOMEM;
	}
	survey->info.id = ids->nr_threads++;
	cached_memory_init(&survey->memory, sampler->snapshot.instant.look.inner);
	*ret_survey = survey;
	return 0;
}

void task_survey_destroy(struct sampler *sampler, struct task_survey *survey)
{
	if (!survey)
		return;
	sample_ids_put_slot(sampler->identities.ids, survey->info.slot);
	cached_memory_done(&survey->memory);
	addr_list_done(&survey->tasks);
	addr_list_done(&survey->awaiters);
	free(survey->frames);
	free(survey->stacks);
	free(survey->last);
	free(survey);
}

/* Reading. */

static int compare_addrs(const void *a, const void *b)
{
	const remote_addr left = *(const remote_addr *)a, right = *(const remote_addr *)b;

	return (left > right) - (left < right);
}

/* Whether a task awaits another one, which was read. */
static bool awaits_task(const struct task_survey *survey, remote_addr task_addr)
{
	const struct addr_list *list = &survey->awaiters;

	return list->nr &&
	       bsearch(&task_addr, list->addrs, list->nr, sizeof(task_addr), compare_addrs);
}

/* Find out which tasks await others. */
static int read_awaiters(struct task_survey *survey, struct task_path *path)
{
	struct task_words words;
	int err = 0;

	survey->awaiters.nr = 0;
	for (uint32_t i = 0; !err && i < survey->tasks.nr; i++) {
		err = task_read(&survey->reader, survey->tasks.addrs[i], &words);
		if (!err)
			err = task_read_awaiters(&survey->reader, &words, &path->awaiters);
		for (uint32_t j = 0; !err && j < path->awaiters.nr; j++)
			err = addr_list_append(&survey->awaiters, path->awaiters.addrs[j]);
		if (task_error_is_its_own(err))
			err = 0;
	}
	if (survey->awaiters.nr)
		qsort(survey->awaiters.addrs, survey->awaiters.nr, sizeof(remote_addr),
		      compare_addrs);
	return err;
}

/* Add the path as a stack, outermost frame first. Returns 0 or -ENOMEM. */
static int add_stack(struct task_survey *survey, const struct task_path *path)
{
	const uint32_t nr = path->nr_frames;
	struct surveyed_stack *stacks = array_reserve(survey->stacks, survey->nr_stacks + 1,
						      &survey->max_stacks, sizeof(*stacks));
	struct frame *frames;

	if (!stacks)
		return -ENOMEM;
	survey->stacks = stacks;
	frames = array_reserve(survey->frames, survey->nr_frames + nr, &survey->max_frames,
			       sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	survey->frames = frames;
	for (uint32_t i = 0; i < nr; i++)
		frames[survey->nr_frames + i] = path->frames[nr - 1 - i];
	stacks[survey->nr_stacks++] = (struct surveyed_stack){survey->nr_frames, nr};
	survey->nr_frames += nr;
	return 0;
}

static int add_task(struct task_survey *survey, struct task_path *path,
		    const struct code_clock *clock, remote_addr task_addr)
{
	struct task_words words;
	int err = task_read(&survey->reader, task_addr, &words);

	if (err || !words.coro_addr)
		return err;
	path->nr_frames = 0;
	err = task_path_add_suspended(path, &survey->reader, clock, &words);
	if (!err)
		err = task_path_add_awaiters(path, &survey->reader, clock, &words);
	return err ? err : add_stack(survey, path);
}

static int add_tasks(struct task_survey *survey, struct task_path *path,
		     const struct task_place *place)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < survey->tasks.nr; i++) {
		const remote_addr task_addr = survey->tasks.addrs[i];

		if (task_addr == place->running_addr || awaits_task(survey, task_addr))
			continue;
		err = add_task(survey, path, place->clock, task_addr);
		if (task_error_is_its_own(err))
			err = 0;
	}
	return err;
}

/* Keep the tasks of a loop. Returns 0; -ENOMEM, -ESRCH, -EPERM. */
static int keep_of_loop(struct task_survey *survey, remote_addr loop_addr)
{
	struct addr_list *list = &survey->tasks;
	uint32_t nr = 0;
	int err = 0;

	for (uint32_t i = 0; !err && i < list->nr; i++) {
		struct task_words words;

		err = task_read(&survey->reader, list->addrs[i], &words);
		if (!err && words.loop_addr == loop_addr)
			list->addrs[nr++] = words.addr;
		if (task_error_is_its_own(err))
			err = 0;
	}
	list->nr = nr;
	return err;
}

/* List the tasks of the thread's loop. What could be read of a list is used. */
static int list_tasks(struct task_survey *survey, const struct task_place *place)
{
	const struct task_reader *reader = &survey->reader;
	remote_addr loop_addr = 0;
	int err;

	if (!reader->objects)
		return task_list_read(reader,
				      place->thread_addr + reader->asyncio->thread.tasks_head,
				      &survey->tasks);
	err = asyncio_objects_loop(reader->memory, reader->build, place->thread_addr, &loop_addr);
	if (err || !loop_addr)
		return err;
	err = asyncio_objects_list(reader->memory, reader->build, reader->objects,
				   place->max_tasks + 1, &survey->tasks);
	return err ? err : keep_of_loop(survey, loop_addr);
}

int task_survey_take(struct task_survey *survey, struct task_path *path,
		     const struct task_place *place)
{
	int err = cached_memory_renew(&survey->memory);

	survey->tasks.nr = 0;
	survey->nr_stacks = 0;
	survey->nr_frames = 0;
	if (err)
		return err;
	survey->reader = *place->reader;
	survey->reader.memory = &survey->memory.memory;
	err = list_tasks(survey, place);
	if (survey->tasks.nr > place->max_tasks)
		return -E2BIG;
	if (task_error_is_its_own(err))
		err = 0;
	if (!err)
		err = read_awaiters(survey, path);
	return err ? err : add_tasks(survey, path, place);
}

/* Emitting. */

/* Name the thread of the tasks after theirs. */
static void set_name(struct task_survey *survey, const char *name, struct sample_sink *sink)
{
	char text[sizeof(survey->info.name)];
	const bool is_first = !survey->info.name[0];
	const int max_bytes = sizeof(text) - sizeof("tasks of ");

	(void)snprintf(text, sizeof(text), "tasks of %.*s", max_bytes, name);
	if (strcmp(text, survey->info.name) == 0)
		return;
	memcpy(survey->info.name, text, sizeof(text));
	survey->info.is_named = true;
	if (!is_first && sink->ops->renamed)
		sink->ops->renamed(sink, &survey->info);
}

/* Returns how many frames are those of the last sample, from the outermost on, and keeps them. */
static int keep_frames(struct task_survey *survey, const struct frame *frames, uint32_t nr_frames,
		       uint32_t *ret_nr_same)
{
	struct frame *last =
		array_reserve(survey->last, nr_frames + 1, &survey->max_last, sizeof(*last));
	uint32_t nr = 0;

	if (!last)
		return -ENOMEM;
	survey->last = last;
	while (nr < nr_frames && nr < survey->nr_last && frames[nr].function == last[nr].function &&
	       frames[nr].line == last[nr].line)
		nr++;
	memcpy(last + nr, frames + nr, (nr_frames - nr) * sizeof(*last));
	survey->nr_last = nr_frames;
	*ret_nr_same = nr;
	return 0;
}

int task_survey_emit(struct task_survey *survey, struct sample sample, struct sample_sink *sink)
{
	int err = 0;

	set_name(survey, sample.thread->name, sink);
	sample.thread = &survey->info;
	for (uint32_t i = 0; !err && i < survey->nr_stacks; i++) {
		const struct surveyed_stack *stack = &survey->stacks[i];

		sample.frames = survey->frames + stack->first;
		sample.nr_frames = stack->nr_frames;
		err = keep_frames(survey, sample.frames, sample.nr_frames, &sample.nr_unchanged);
		if (!err)
			err = sink->ops->sample(sink, &sample);
	}
	return err;
}
