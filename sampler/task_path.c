/* SPDX-License-Identifier: MIT */
#include "sampler/task_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "sampler/sampler_state.h"

#define UNNAMED_PREFIX "Task-"

void task_path_done(struct task_path *path)
{
	free(path->frames);
	frame_list_done(&path->chain);
	addr_list_done(&path->awaiters);
	*path = (struct task_path){0};
}

/* Returns 0, -E2BIG or -ENOMEM. */
static int push(struct task_path *path, struct frame frame)
{
	struct frame *frames;

	if (!frame.function)
		return -ENOMEM;
	if (path->nr_frames == TASK_PATH_MAX_FRAMES)
		return -E2BIG;
	frames = array_reserve(path->frames, path->nr_frames + 1, &path->max_frames,
			       sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	path->frames = frames;
	frames[path->nr_frames++] = frame;
	return 0;
}

/* Whether asyncio has made up a name: "Task-", then digits. */
static bool is_made_up(const char *name)
{
	const size_t length = strlen(UNNAMED_PREFIX);

	return strncmp(name, UNNAMED_PREFIX, length) == 0 && name[length] &&
	       strspn(name + length, "0123456789") == strlen(name + length);
}

static int push_name(struct task_path *path, const char *name)
{
	return push(path,
		    (struct frame){
			    .function = sampler_function(path->sampler, FUNCTION_TASK, name, ""),
		    });
}

int task_path_add_running(struct task_path *path, struct task_reader *reader,
			  const struct task_words *words)
{
	cleanup_free char *name = NULL;
	const int err = task_read_name(reader, words, &name);

	if (remote_error_is_fatal(err))
		return err;
	return push_name(path, name && *name && !is_made_up(name) ? name : TASK_UNNAMED);
}

int task_path_add_suspended(struct task_path *path, struct task_reader *reader,
			    const struct code_clock *clock, const struct task_words *words)
{
	struct code_cache *codes = &path->sampler->codes;
	const struct frame_list *chain = &path->chain;
	int err = await_chain_walk(codes, reader, clock, words->coro_addr, &path->chain);

	if (remote_error_is_fatal(err))
		return err;
	err = 0;
	for (uint32_t i = chain->nr_frames; !err && i-- > 0;) {
		const struct walked_frame *walked = &chain->frames[i];

		err = push(path, (struct frame){
					 .function = walked->code->function,
					 .line = code_line(codes, walked->code, walked->instr_ptr),
				 });
	}
	return err ? err : task_path_add_running(path, reader, words);
}

static int push_many(struct task_path *path, uint32_t nr)
{
	char name[40];

	(void)snprintf(name, sizeof(name), "[awaited by %u tasks]", nr);
	return push_name(path, name);
}

int task_path_add_awaiters(struct task_path *path, struct task_reader *reader,
			   const struct code_clock *clock, const struct task_words *words)
{
	struct task_words current = *words;
	int err = 0;

	for (int i = 0; i < TASK_PATH_MAX_TASKS && !err; i++) {
		err = task_read_awaiters(reader, &current, &path->awaiters);
		if (err || !path->awaiters.nr)
			break;
		if (path->awaiters.nr > 1) {
			err = push_many(path, path->awaiters.nr);
			break;
		}
		err = task_read(reader, path->awaiters.addrs[0], &current);
		if (!err)
			err = task_path_add_suspended(path, reader, clock, &current);
	}
	return remote_error_is_fatal(err) ? err : 0;
}

void emitted_frames_done(struct emitted_frames *emitted)
{
	free(emitted->frames);
	*emitted = (struct emitted_frames){0};
}

int emitted_frames_replace(struct emitted_frames *emitted, const struct frame *outer,
			   uint32_t nr_outer, const struct frame *inner, uint32_t nr_inner,
			   uint32_t *ret_nr_same)
{
	const uint32_t nr = nr_outer + nr_inner;
	struct frame *frames =
		array_reserve(emitted->frames, nr + 1, &emitted->max, sizeof(*frames));
	uint32_t nr_same = 0;

	if (!frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		const struct frame *frame = i < nr_outer ? &outer[i] : &inner[i - nr_outer];

		if (nr_same == i && i < emitted->nr && frames[i].function == frame->function &&
		    frames[i].line == frame->line)
			nr_same++;
		else
			frames[i] = *frame;
	}
	emitted->frames = frames;
	emitted->nr = nr;
	*ret_nr_same = nr_same;
	return 0;
}
