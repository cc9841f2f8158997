/* SPDX-License-Identifier: MIT */
#include "sampler/task_survey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "sampler/sampler_state.h"

/* Making. */

void task_surveyor_init(struct task_surveyor *surveyor, struct sampler *sampler,
			struct task_path *path)
{
	*surveyor = (struct task_surveyor){.path = path};
	cached_memory_init(&surveyor->cached, sampler->snapshot.instant.look.inner);
}

void task_surveyor_done(struct task_surveyor *surveyor)
{
	cached_memory_done(&surveyor->cached);
	addr_list_done(&surveyor->tasks);
	free(surveyor->awaits);
}

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
	*ret_survey = survey;
	return 0;
}

void task_survey_destroy(struct sampler *sampler, struct task_survey *survey)
{
	if (!survey)
		return;
	sample_ids_put_slot(sampler->identities.ids, survey->info.slot);
	free(survey->frames);
	free(survey->stacks);
	emitted_frames_done(&survey->emitted);
	free(survey);
}

/* Reading. */

/* Find out which tasks await others. Returns 0; -ENOMEM, -ESRCH, -EPERM. */
static int read_awaits(struct task_surveyor *surveyor)
{
	const struct addr_list *tasks = &surveyor->tasks;
	struct addr_list *awaiters = &surveyor->path->awaiters;
	bool *awaits = array_reserve(surveyor->awaits, tasks->nr + 1, &surveyor->max_awaits,
				     sizeof(*awaits));

	if (!awaits)
		return -ENOMEM;
	surveyor->awaits = awaits;
	memset(awaits, 0, tasks->nr * sizeof(*awaits));
	for (uint32_t i = 0; i < tasks->nr; i++) {
		struct task_words words;
		int err = task_read(&surveyor->reader, tasks->addrs[i], &words);

		if (!err)
			err = task_read_awaiters(&surveyor->reader, &words, awaiters);
		if (remote_error_is_fatal(err))
			return err;
		for (uint32_t j = 0; !err && j < awaiters->nr; j++) {
			const uint32_t task = addr_list_find(tasks, awaiters->addrs[j]);

			if (task != ADDR_LIST_NONE)
				awaits[task] = true;
		}
	}
	return 0;
}

/* Add the path as a stack, outermost frame first. Returns 0, -E2BIG or -ENOMEM. */
static int add_stack(struct task_survey *survey, const struct task_path *path, uint32_t max_frames)
{
	const uint32_t nr = path->nr_frames;
	struct surveyed_stack *stacks;
	struct frame *frames;

	if (survey->nr_frames + nr > max_frames)
		return -E2BIG;
	stacks = array_reserve(survey->stacks, survey->nr_stacks + 1, &survey->max_stacks,
			       sizeof(*stacks));
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

/* Read what leads to a task. The path is empty if it has ended or cannot be read. */
static int read_path(struct task_surveyor *surveyor, const struct code_clock *clock,
		     remote_addr task_addr)
{
	struct task_path *path = surveyor->path;
	struct task_words words;
	int err = task_read(&surveyor->reader, task_addr, &words);

	path->nr_frames = 0;
	if (!err && words.coro_addr)
		err = task_path_add_suspended(path, &surveyor->reader, clock, &words);
	if (!err && words.coro_addr)
		err = task_path_add_awaiters(path, &surveyor->reader, clock, &words);
	return remote_error_is_fatal(err) ? err : 0;
}

static int add_tasks(struct task_surveyor *surveyor, struct task_survey *survey,
		     const struct task_place *place)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < surveyor->tasks.nr; i++) {
		const remote_addr task_addr = surveyor->tasks.addrs[i];

		if (task_addr == place->running_addr || surveyor->awaits[i])
			continue;
		err = read_path(surveyor, place->clock, task_addr);
		if (!err && surveyor->path->nr_frames)
			err = add_stack(survey, surveyor->path, place->max_frames);
	}
	return err;
}

/* Keep the tasks of a loop. Returns 0; -ENOMEM, -ESRCH, -EPERM. */
static int keep_of_loop(struct task_surveyor *surveyor, remote_addr loop_addr)
{
	struct addr_list *list = &surveyor->tasks;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < list->nr; i++) {
		struct task_words words;
		int err = task_read(&surveyor->reader, list->addrs[i], &words);

		if (remote_error_is_fatal(err))
			return err;
		if (!err && words.loop_addr == loop_addr)
			list->addrs[nr++] = words.addr;
	}
	list->nr = nr;
	return 0;
}

/*
 * List the tasks of the thread's loop. What could be read of a list is used. Returns 0, -E2BIG,
 * -ENOMEM, -ESRCH, -EPERM.
 */
static int list_tasks(struct task_surveyor *surveyor, const struct task_place *place)
{
	const uint32_t max_tasks = place->is_in_look ? SURVEY_MAX_TASKS_IN_LOOK : SURVEY_MAX_TASKS;
	const struct task_reader *reader = &surveyor->reader;
	struct addr_list *tasks = &surveyor->tasks;
	remote_addr loop_addr = 0;
	int err;

	tasks->nr = 0;
	if (!reader->objects) {
		err = task_list_read(reader,
				     place->thread_addr + reader->asyncio->thread.tasks_head,
				     max_tasks, tasks);
	} else {
		err = asyncio_objects_loop(reader->memory, reader->build, place->thread_addr,
					   &loop_addr);
		if (!err && loop_addr)
			err = asyncio_objects_list(reader->memory, reader->build, reader->objects,
						   max_tasks, tasks);
	}
	if (err == -E2BIG || remote_error_is_fatal(err))
		return err;
	err = reader->objects ? keep_of_loop(surveyor, loop_addr) : 0;
	addr_list_sort(tasks);
	return err;
}

int task_survey_take(struct task_surveyor *surveyor, struct task_survey *survey,
		     const struct task_place *place)
{
	const struct sampler *sampler = surveyor->path->sampler;
	int err = 0;

	if (surveyor->last == survey)
		err = cached_memory_renew(&surveyor->cached);
	else
		cached_memory_clear(&surveyor->cached);
	surveyor->last = survey;
	survey->nr_stacks = 0;
	survey->nr_frames = 0;
	if (err)
		return err;
	bounded_memory_init(&surveyor->memory, &surveyor->cached.memory,
			    place->is_in_look ? SURVEY_MAX_READS_IN_LOOK : SURVEY_MAX_READS,
			    sampler->snapshot.stop, UINT64_MAX);
	surveyor->reader = *place->reader;
	surveyor->reader.memory = &surveyor->memory.memory;
	err = list_tasks(surveyor, place);
	if (!err)
		err = read_awaits(surveyor);
	if (!err)
		err = add_tasks(surveyor, survey, place);
	return !err && !surveyor->memory.nr_left ? -E2BIG : err;
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

int task_survey_emit(struct task_survey *survey, struct sample sample, struct sample_sink *sink)
{
	struct emitted_frames *emitted = &survey->emitted;
	int err = 0;

	set_name(survey, sample.thread->name, sink);
	sample.thread = &survey->info;
	for (uint32_t i = 0; !err && i < survey->nr_stacks; i++) {
		const struct surveyed_stack *stack = &survey->stacks[i];

		err = emitted_frames_replace(emitted, survey->frames + stack->first,
					     stack->nr_frames, NULL, 0, &sample.nr_unchanged);
		sample.frames = emitted->frames;
		sample.nr_frames = emitted->nr;
		if (!err)
			err = sink->ops->sample(sink, &sample);
	}
	return err;
}
