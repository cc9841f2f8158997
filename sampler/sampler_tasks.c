/* SPDX-License-Identifier: MIT */
/* Dumps the asyncio tasks at one moment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/bounded_memory.h"
#include "procmem/cleanup.h"
#include "sampler/cpython/base/cached_memory.h"
#include "sampler/cpython/threads/asyncio_task.h"
#include "sampler/sampler_state.h"

/* How often a list of tasks that changes, or a task that runs, is read again. */
enum { LIST_MAX_TRIES = 20, TASK_MAX_TRIES = 5 };

/*
 * Limit on all reads for tasks. A task with a chain of three coroutines takes about 25 reads, so
 * this is enough for 600,000; tasks beyond are missing.
 */
#define TASKS_MAX_READS (1u << 24)

/* The owner of a list of tasks: a thread, or an interpreter for its threads that have ended. */
struct task_owner {
	const struct snapshot_thread *thread; /* NULL: an interpreter */
	const struct code_clock *clock;	      /* of the last look at it */
	remote_addr head_addr;		      /* of the list */
	remote_addr running_addr;	      /* the task that the thread executes, or 0 */
};

struct tasks {
	struct sampler *sampler;
	struct sample_sink *sink;
	struct asyncio_offsets asyncio;
	struct bounded_memory memory;
	struct cached_memory cached; /* memory by pages, for first reads */
	struct task_reader reader;
	struct frame_list chain;   /* of the current task */
	struct addr_list list;	   /* the tasks of the current owner */
	struct addr_list awaiters; /* of the current task */
	bool complete;
};

/* Whether an error concerns one task or list, and neither the target nor us. */
static bool is_about_task(int err)
{
	return err == -EAGAIN || err == -EBADMSG || err == -EFAULT || err == -E2BIG;
}

/*
 * Find the task that the owner executes. A task that was started eagerly is in no list until it
 * awaits something: append it. Returns 0, -ENOMEM, -ESRCH, -EPERM.
 */
static int read_running(struct tasks *tasks, struct task_owner *owner)
{
	const struct asyncio_offsets *asyncio = &tasks->asyncio;
	struct remote_memory *memory = tasks->reader.memory;
	uint64_t loop = 0, task = 0;
	int err;

	if (!owner->thread)
		return 0;
	err = remote_memory_read_u64(memory, owner->thread->ref.addr + asyncio->thread.running_loop,
				     &loop);
	if (!err)
		err = remote_memory_read_u64(
			memory, owner->thread->ref.addr + asyncio->thread.running_task, &task);
	if (err || !loop || !task)
		return is_about_task(err) ? 0 : err;
	owner->running_addr = task;
	for (uint32_t i = 0; i < tasks->list.nr; i++)
		if (tasks->list.addrs[i] == task)
			return 0;
	return addr_list_append(&tasks->list, task);
}

/*
 * Read a task until two reads in a row agree; a core file needs one. The result is in the flags
 * and error of sample. The first read uses pages that may be old, the others do not.
 *
 * Returns 0; -ENOENT (it has ended), -ENOMEM, -ESRCH, -EPERM, or an error of task_read().
 */
static int read_task(struct tasks *tasks, const struct task_owner *owner, remote_addr addr,
		     struct task_words *ret_words, struct task_sample *sample)
{
	struct sampler *sampler = tasks->sampler;
	const bool is_core = sampler->extras.is_core;
	uint32_t nr_frames = UINT32_MAX;
	bool proven = false;
	int chain_err = 0;
	int err = 0;

	for (int i = 0; i <= TASK_MAX_TRIES && !proven; i++) {
		tasks->reader.memory = i ? &tasks->memory.memory : &tasks->cached.memory;
		err = task_read(&tasks->reader, addr, ret_words);
		if (!err) {
			chain_err = await_chain_walk(&sampler->codes, &tasks->reader, owner->clock,
						     ret_words->coro_addr, &tasks->chain);
			err = is_about_task(chain_err) ? 0 : chain_err;
		}
		/* The pages may be older than the task. */
		if (!i && is_about_task(err)) {
			cached_memory_clear(&tasks->cached);
			continue;
		}
		if (err || !ret_words->coro_addr)
			break;
		proven = !chain_err && (is_core || (i && tasks->chain.nr_unchanged == nr_frames &&
						    tasks->chain.nr_frames == nr_frames));
		nr_frames = tasks->chain.nr_frames;
	}
	tasks->reader.memory = &tasks->cached.memory;
	if (err || !ret_words->coro_addr)
		return err ? err : -ENOENT;
	sample->error = chain_err;
	sample->flags = proven ? 0 : SAMPLE_UNPROVEN;
	return 0;
}

/*
 * Emit a sample with the frames of its task. For a running task they are the frames of its
 * thread, from its coroutine's on. Returns -ENOMEM, or what the sink returned.
 */
static int emit_task(struct tasks *tasks, const struct task_owner *owner,
		     const struct task_words *words, struct task_sample *sample)
{
	const struct sampler *sampler = tasks->sampler;
	const struct code_cache *codes = &sampler->codes;
	const remote_addr frame_addr = words->coro_addr + sampler->build->offsets.generator.iframe;
	const struct frame_list *list = &tasks->chain;
	cleanup_free struct frame *frames = NULL;
	cleanup_free struct frame_detail *details = NULL;
	uint32_t first = 0;

	if (sample->running && owner->thread) {
		const struct frame_list *running = &sampler->threads[owner->thread->slot].list;
		const uint32_t nr = frame_list_find(running, frame_addr);

		/* If not found, the thread has switched to this task since its stack was read. */
		list = nr ? running : list;
		first = nr ? nr - 1 : 0;
		sample->flags |= nr ? 0 : SAMPLE_UNPROVEN;
	}
	frames = calloc(list->nr_frames + 1ull, sizeof(*frames));
	details = calloc(list->nr_frames + 1ull, sizeof(*details));
	if (!frames || !details)
		return -ENOMEM;
	for (uint32_t i = first; i < list->nr_frames; i++) {
		const struct walked_frame *walked = &list->frames[i];

		if (list != &tasks->chain && !frame_visible(list, i))
			continue;
		details[sample->nr_frames] = frame_detail_of(codes, walked);
		frames[sample->nr_frames++] = (struct frame){
			.function = walked->code->function,
			.line = code_line(codes, walked->code, walked->instr_ptr),
		};
	}
	sample->frames = frames;
	sample->details = details;
	return tasks->sink->ops->task(tasks->sink, sample);
}

/* Read one task and emit it. Errors of read_task(), -E2BIG, or what the sink returned. */
static int dump_task(struct tasks *tasks, const struct task_owner *owner, remote_addr addr)
{
	const struct sampler *sampler = tasks->sampler;
	struct task_sample sample = {.addr = addr, .running = addr && addr == owner->running_addr};
	cleanup_free char *name = NULL;
	struct task_words words;
	int err = read_task(tasks, owner, addr, &words, &sample);

	if (err)
		return err;
	/* Unless it is a core file, bypass the pages, which may be older than the words. */
	if (!sampler->extras.is_core)
		tasks->reader.memory = &tasks->memory.memory;
	err = task_read_awaiters(&tasks->reader, &words, &tasks->awaiters);
	if (!err) {
		err = task_read_name(&tasks->reader, &words, &name);
		err = is_about_task(err) ? 0 : err;
	}
	tasks->reader.memory = &tasks->cached.memory;
	if (err)
		return err;
	sample.name = name ? name : "";
	sample.awaited_by = tasks->awaiters.addrs;
	sample.nr_awaited_by = tasks->awaiters.nr;
	if (owner->thread)
		sample.thread = sampler->threads[owner->thread->slot].info;
	return emit_task(tasks, owner, &words, &sample);
}

/* Emit all tasks of an owner. Returns -ENOMEM, -ESRCH, -EPERM, or what the sink returned. */
static int dump_owner(struct tasks *tasks, struct task_owner *owner)
{
	int err = -EAGAIN;

	/* A partially read list is used as it is. */
	for (int i = 0; i < LIST_MAX_TRIES && err == -EAGAIN; i++) {
		if (i)
			(void)usleep(REFRESH_PAUSE_US);
		cached_memory_clear(&tasks->cached);
		tasks->list.nr = 0;
		err = task_list_read(&tasks->reader, owner->head_addr, &tasks->list);
	}
	tasks->complete = tasks->complete && !is_about_task(err);
	if (!err || is_about_task(err))
		err = read_running(tasks, owner);
	for (uint32_t i = 0; !err && i < tasks->list.nr; i++) {
		err = dump_task(tasks, owner, tasks->list.addrs[i]);
		/* A task that can no longer be read has ended, unless in a core file. */
		if (err == -E2BIG || (is_about_task(err) && tasks->sampler->extras.is_core))
			tasks->complete = false;
		if (is_about_task(err) || err == -ENOENT)
			err = 0;
	}
	return err;
}

int sampler_dump_tasks(struct sampler *sampler, const struct maps *maps, struct sample_sink *sink,
		       bool *ret_complete)
{
	struct tasks tasks = {.sampler = sampler, .sink = sink};
	const struct snapshot *snapshot = &sampler->snapshot;
	int err = asyncio_offsets_find(sampler->snapshot.memory, maps, sampler->build,
				       &tasks.asyncio, &tasks.complete);

	if (!err) {
		tasks.complete = !sampler->snapshot.list_err;
		bounded_memory_init(&tasks.memory, sampler->snapshot.memory, TASKS_MAX_READS, NULL,
				    UINT64_MAX);
		cached_memory_init(&tasks.cached, &tasks.memory.memory);
		tasks.reader = (struct task_reader){
			.memory = &tasks.cached.memory,
			.offsets = &sampler->build->offsets,
			.asyncio = &tasks.asyncio,
		};
	}
	/* The tasks of threads, oldest first, then those of threads that have ended. */
	for (size_t i = snapshot->nr_threads; !err && i > 0; i--) {
		const struct snapshot_thread *thread = snapshot->threads[i - 1];
		struct task_owner owner = {
			.thread = thread,
			.clock = &thread->clock,
			.head_addr = thread->ref.addr + tasks.asyncio.thread.tasks_head,
		};

		if (thread->was_copied)
			err = dump_owner(&tasks, &owner);
		else
			tasks.complete = false;
	}
	for (size_t i = snapshot->nr_interpreters; !err && i > 0; i--) {
		const struct snapshot_interpreter *interpreter = &snapshot->interpreters[i - 1];
		struct task_owner owner = {
			.clock = &interpreter->clock,
			.head_addr = interpreter->ref.addr + tasks.asyncio.interpreter.tasks_head,
		};

		err = dump_owner(&tasks, &owner);
	}
	frame_list_done(&tasks.chain);
	addr_list_done(&tasks.list);
	addr_list_done(&tasks.awaiters);
	cached_memory_done(&tasks.cached);
	if (err && err != -ENOENT)
		return err;
	*ret_complete = tasks.complete;
	return 0;
}
