/* SPDX-License-Identifier: MIT */
#include "sampler/task_roots.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/clock.h"
#include "procmem/cleanup.h"
#include "procmem/maps.h"
#include "sampler/cpython/threads/asyncio_offsets.h"
#include "sampler/cpython/threads/asyncio_task.h"
#include "sampler/sampler_state.h"

/* Tasks above the one that runs, and frames of all of them. */
enum { MAX_TASKS = 64, MAX_PATH_FRAMES = 1 << 12 };

/* How often asyncio is searched in a process that may load it. */
#define FIRST_SEARCH_NS 100000000ull
#define LAST_SEARCH_NS	(5 * NS_PER_S)

/* The tasks above a thread's stack, and the last sample made from them. */
struct rooted_thread {
	struct frame *above; /* owned; the frames to put above, outermost first */
	uint32_t nr_above, max_above;
	bool has_task;	   /* it executes one */
	uint32_t nr_outer; /* frames that users see above that task's */
	struct frame *last; /* owned; the frames of the last sample */
	uint32_t nr_last, max_last;
};

struct task_roots {
	struct sample_sink sink; /* must be first */
	struct sample_sink *next;
	struct rooted_thread *rooted; /* whose samples the sink gets; NULL: out of memory */
	struct sampler *sampler;
	struct asyncio_offsets asyncio;
	struct task_reader reader;
	bool is_found, is_hopeless;
	uint64_t search_ns, pause_ns;
	struct frame_list chain;   /* of the task being read */
	struct addr_list awaiters; /* of that task */
	struct frame *path;	   /* owned; the frames above, innermost task first */
	uint32_t nr_path, max_path;
	struct rooted_thread *threads; /* owned; by slot of the snapshot */
	uint32_t nr_threads;
};

static int emit(struct sample_sink *sink, const struct sample *sample);

int task_roots_create(struct sampler *sampler, struct task_roots **ret_roots)
{
	static const struct sample_sink_ops ops = {.sample = emit};
	struct task_roots *roots = calloc(1, sizeof(*roots));

	if (!roots)
		return -ENOMEM;
	roots->sink.ops = &ops;
	roots->sampler = sampler;
	roots->pause_ns = FIRST_SEARCH_NS;
	*ret_roots = roots;
	return 0;
}

void task_roots_destroy(struct task_roots *roots)
{
	if (!roots)
		return;
	for (uint32_t i = 0; i < roots->nr_threads; i++) {
		free(roots->threads[i].above);
		free(roots->threads[i].last);
	}
	free(roots->threads);
	free(roots->path);
	frame_list_done(&roots->chain);
	addr_list_done(&roots->awaiters);
	free(roots);
}

int task_roots_prepare(struct task_roots *roots, uint64_t now_ns)
{
	struct sampler *sampler = roots->sampler;
	struct maps maps = {0};
	bool is_whole;
	int err;

	if (roots->is_found || roots->is_hopeless || now_ns < roots->search_ns ||
	    !sampler->process)
		return 0;
	roots->search_ns = now_ns + roots->pause_ns;
	roots->pause_ns = roots->pause_ns * 2 < LAST_SEARCH_NS ? roots->pause_ns * 2
							       : LAST_SEARCH_NS;
	err = maps_read(sampler->process, &maps);
	if (!err)
		err = asyncio_offsets_find(sampler->snapshot.memory, &maps, sampler->build,
					   &roots->asyncio, &is_whole);
	maps_done(&maps);
	roots->is_found = !err;
	roots->is_hopeless = err == -ENOTSUP;
	roots->reader = (struct task_reader){
		.memory = sampler->snapshot.memory,
		.offsets = &sampler->build->offsets,
		.asyncio = &roots->asyncio,
	};
	return err == -ENOMEM || err == -ESRCH ? err : 0;
}

/* Reading the tasks of a thread. */

/* Whether an error concerns one task, and neither the target nor us. */
static bool is_about_task(int err)
{
	return err == -EAGAIN || err == -EBADMSG || err == -EFAULT || err == -E2BIG;
}

/* Append a frame to the path. Returns 0, -E2BIG or -ENOMEM. */
static int push(struct task_roots *roots, struct frame frame)
{
	struct frame *path;

	if (roots->nr_path == MAX_PATH_FRAMES)
		return -E2BIG;
	path = array_reserve(roots->path, roots->nr_path + 1, &roots->max_path, sizeof(*path));
	if (!path)
		return -ENOMEM;
	roots->path = path;
	path[roots->nr_path++] = frame;
	return 0;
}

/* Append the frame that names a task. */
static int push_name(struct task_roots *roots, const struct task_words *words)
{
	const struct function *function;
	cleanup_free char *name = NULL;
	int err = task_read_name(&roots->reader, words, &name);

	if (err && !is_about_task(err))
		return err;
	function = sampler_function(roots->sampler, FUNCTION_TASK, name ? name : "?", "");
	return function ? push(roots, (struct frame){.function = function}) : -ENOMEM;
}

/* Append the frames of a task that waits, innermost first, and its name. */
static int push_waiting(struct task_roots *roots, const struct code_clock *clock,
			const struct task_words *words)
{
	struct code_cache *codes = &roots->sampler->codes;
	const struct frame_list *chain = &roots->chain;
	int err = await_chain_walk(codes, &roots->reader, clock, words->coro_addr, &roots->chain);

	if (err && !is_about_task(err))
		return err;
	err = 0;
	for (uint32_t i = chain->nr_frames; !err && i-- > 0;)
		err = push(roots, (struct frame){
					  .function = chain->frames[i].code->function,
					  .line = code_line(codes, chain->frames[i].code,
							    chain->frames[i].instr_ptr),
				  });
	return err ? err : push_name(roots, words);
}

static int push_many(struct task_roots *roots, uint32_t nr)
{
	const struct function *function;
	char name[40];

	(void)snprintf(name, sizeof(name), "[awaited by %u tasks]", nr);
	function = sampler_function(roots->sampler, FUNCTION_TASK, name, "");
	return function ? push(roots, (struct frame){.function = function}) : -ENOMEM;
}

/* Append the tasks that await one, which is known. */
static int push_awaiters(struct task_roots *roots, const struct code_clock *clock,
			 struct task_words *words)
{
	int err = 0;

	for (int i = 0; i < MAX_TASKS && !err; i++) {
		err = task_read_awaiters(&roots->reader, words, &roots->awaiters);
		if (err || !roots->awaiters.nr)
			return err;
		if (roots->awaiters.nr > 1)
			return push_many(roots, roots->awaiters.nr);
		err = task_read(&roots->reader, roots->awaiters.addrs[0], words);
		if (!err)
			err = push_waiting(roots, clock, words);
	}
	return err;
}

/* Returns the data of a thread; NULL if out of memory. */
static struct rooted_thread *thread_get(struct task_roots *roots, uint32_t slot)
{
	const uint32_t nr = roots->sampler->snapshot.nr_slots;
	struct rooted_thread *threads;

	if (slot < roots->nr_threads)
		return &roots->threads[slot];
	threads = reallocarray(roots->threads, nr, sizeof(*threads));
	if (!threads)
		return NULL;
	memset(threads + roots->nr_threads, 0, (nr - roots->nr_threads) * sizeof(*threads));
	roots->threads = threads;
	roots->nr_threads = nr;
	return &threads[slot];
}

/* Keep the path, outermost first. */
static int keep_path(struct task_roots *roots, struct rooted_thread *rooted)
{
	struct frame *above =
		array_reserve(rooted->above, roots->nr_path, &rooted->max_above, sizeof(*above));

	if (!above)
		return -ENOMEM;
	rooted->above = above;
	rooted->nr_above = roots->nr_path;
	for (uint32_t i = 0; i < roots->nr_path; i++)
		above[i] = roots->path[roots->nr_path - 1 - i];
	return 0;
}

/* Find a task's coroutine in the stack of its thread. Returns false if it is not there. */
static bool find_coroutine(const struct task_roots *roots, const struct snapshot_thread *thread,
			   remote_addr coro_addr, uint32_t *ret_nr_outer)
{
	const struct sampler *sampler = roots->sampler;
	const struct frame_list *list = &sampler->threads[thread->slot].list;
	const uint32_t nr =
		frame_list_find(list, coro_addr + sampler->build->offsets.generator.iframe);

	*ret_nr_outer = nr > 1 ? list->frames[nr - 2].nr_begun : 0;
	return nr && frame_visible(list, nr - 1);
}

int task_roots_look(struct task_roots *roots, const struct snapshot_thread *thread)
{
	struct rooted_thread *rooted = thread_get(roots, thread->slot);
	struct task_words words;
	uint64_t task_addr;
	int err;

	if (!rooted)
		return -ENOMEM;
	rooted->has_task = false;
	if (!roots->is_found)
		return 0;
	err = remote_memory_read_u64(roots->reader.memory,
				     thread->ref.addr + roots->asyncio.thread.running_task,
				     &task_addr);
	if (!err && task_addr)
		err = task_read(&roots->reader, task_addr, &words);
	if (err || !task_addr)
		return is_about_task(err) ? 0 : err;
	rooted->has_task =
		find_coroutine(roots, thread, words.coro_addr, &rooted->nr_outer);
	if (!rooted->has_task)
		return 0;
	roots->nr_path = 0;
	err = push_name(roots, &words);
	if (!err)
		err = push_awaiters(roots, &thread->clock, &words);
	if (!err || is_about_task(err))
		err = keep_path(roots, rooted);
	return err;
}

/* Emitting. */

/*
 * Returns how many of a sample's frames, C frames included, come before Python's frame number nr;
 * nr_frames if it has no such frame, because a gap replaces it.
 */
static uint32_t count_outer(const struct sample *sample, uint32_t nr)
{
	uint32_t i = 0;

	for (; i < sample->nr_frames; i++)
		if (sample->frames[i].function->kind == FUNCTION_PYTHON && !nr--)
			break;
	return i;
}

/* Returns how many frames are those of the last sample, from the outermost on. */
static uint32_t count_same(const struct rooted_thread *rooted, const struct frame *frames,
			   uint32_t nr_frames)
{
	uint32_t i = 0;

	while (i < nr_frames && i < rooted->nr_last &&
	       frames[i].function == rooted->last[i].function &&
	       frames[i].line == rooted->last[i].line)
		i++;
	return i;
}

static int emit(struct sample_sink *sink, const struct sample *sample)
{
	struct task_roots *roots = (struct task_roots *)sink;
	struct rooted_thread *rooted = roots->rooted;
	struct sample changed = *sample;
	uint32_t nr_above = 0, nr_outer = 0, nr;
	struct frame *frames;

	if (!rooted)
		return -ENOMEM;
	if (rooted->has_task)
		nr_outer = count_outer(sample, rooted->nr_outer);
	if (nr_outer == sample->nr_frames)
		nr_outer = 0;
	else if (rooted->has_task)
		nr_above = rooted->nr_above;
	nr = nr_above + sample->nr_frames - nr_outer;
	frames = array_reserve(rooted->last, nr + 1, &rooted->max_last, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	rooted->last = frames;
	changed.nr_unchanged = 0;
	if (nr_above) {
		changed.nr_unchanged = count_same(rooted, rooted->above, nr_above);
		memcpy(frames, rooted->above, nr_above * sizeof(*frames));
	}
	for (uint32_t i = nr_above; i < nr; i++) {
		const struct frame *frame = &sample->frames[nr_outer + i - nr_above];

		if (changed.nr_unchanged == i && i < rooted->nr_last &&
		    frames[i].function == frame->function && frames[i].line == frame->line)
			changed.nr_unchanged++;
		frames[i] = *frame;
	}
	rooted->nr_last = nr;
	changed.frames = frames;
	changed.nr_frames = nr;
	changed.details = NULL;
	return roots->next->ops->sample(roots->next, &changed);
}

struct sample_sink *task_roots_sink(struct task_roots *roots, const struct snapshot_thread *thread,
				    struct sample_sink *next)
{
	roots->rooted = thread_get(roots, thread->slot);
	roots->next = next;
	return &roots->sink;
}
