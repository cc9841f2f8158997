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
	remote_addr head_addr;		      /* of the list (3.14 and newer) */
	struct loop_tasks *loop_tasks;	      /* of its interpreter (before 3.14) */
	remote_addr running_addr;	      /* the task that the thread executes, or 0 */
};

/* The tasks of an interpreter before 3.14, each with its loop. An owner takes those of its loop. */
struct loop_tasks {
	struct asyncio_objects objects; /* all zero: it has not imported asyncio */
	struct addr_list tasks;		/* 0: taken */
	struct addr_list loops;
};

struct tasks {
	struct sampler *sampler;
	struct sample_sink *sink;
	struct asyncio_offsets asyncio; /* from 3.14 on */
	struct loop_tasks *loop_tasks;	/* before; owned, one for each interpreter; else NULL */
	struct bounded_memory memory;
	struct cached_memory cached; /* memory by pages, for first reads */
	struct task_reader reader;
	struct frame_list chain;   /* of the current task */
	struct addr_list list;	   /* the tasks of the current owner */
	struct addr_list awaiters; /* of the current task */
	bool complete;
};

/*
 * Find the task that the owner executes. A task that was started eagerly is in no list until it
 * awaits something: append it. Returns 0, -ENOMEM, -ESRCH, -EPERM.
 */
static int read_running(struct tasks *tasks, struct task_owner *owner)
{
	remote_addr task = 0;
	int err;

	if (!owner->thread)
		return 0;
	err = task_read_running(&tasks->reader, owner->thread->ref.addr, &task);
	if (err || !task)
		return remote_error_is_fatal(err) ? err : 0;
	owner->running_addr = task;
	for (uint32_t i = 0; i < tasks->list.nr; i++)
		if (tasks->list.addrs[i] == task)
			return 0;
	return addr_list_append(&tasks->list, task);
}

/* The name of a task, to be freed; NULL: it cannot be read. */
static char *name_of(struct tasks *tasks, const struct task_words *words)
{
	char *name = NULL;

	return task_read_name(&tasks->reader, words, &name) ? NULL : name;
}

/*
 * Whether a task is still that one, with that coroutine. If it has ended while its frames were read,
 * they may be those of another coroutine at the same address, and a later task may have taken both
 * addresses. The names that asyncio makes up tell tasks apart; what has no name is no task any more.
 */
static bool is_same(struct tasks *tasks, const struct task_words *words, const char *name)
{
	cleanup_free char *now_name = NULL;
	struct task_words now;

	if (task_read(&tasks->reader, words->addr, &now) || now.coro_addr != words->coro_addr)
		return false;
	now_name = name_of(tasks, &now);
	return name && now_name && strcmp(name, now_name) == 0;
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
		cleanup_free char *name = NULL;

		tasks->reader.memory = i ? &tasks->memory.memory : &tasks->cached.memory;
		err = task_read(&tasks->reader, addr, ret_words);
		if (!err) {
			name = i ? name_of(tasks, ret_words) : NULL;
			chain_err = await_chain_walk(&sampler->codes, &tasks->reader, owner->clock,
						     ret_words->coro_addr, &tasks->chain);
			err = remote_error_is_fatal(chain_err) ? chain_err : 0;
		}
		/* The pages may be older than the task. */
		if (!i && err && !remote_error_is_fatal(err)) {
			cached_memory_clear(&tasks->cached);
			continue;
		}
		if (err || !ret_words->coro_addr)
			break;
		proven = !chain_err && (is_core || (i && tasks->chain.nr_unchanged == nr_frames &&
						    tasks->chain.nr_frames == nr_frames &&
						    is_same(tasks, ret_words, name)));
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
	const struct frame_list *list = &tasks->chain;
	cleanup_free struct frame *frames = NULL;
	cleanup_free struct frame_detail *details = NULL;
	uint32_t first = 0;

	if (sample->running && owner->thread) {
		const struct frame_list *running = &sampler->threads[owner->thread->slot].list;
		remote_addr frame_addr;
		const int err = coroutine_read_frame(&tasks->reader, words->coro_addr, &frame_addr);
		const uint32_t nr = err ? 0 : frame_list_find(running, frame_addr);

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
	if (!err)
		err = task_read_name(&tasks->reader, &words, &name);
	tasks->reader.memory = &tasks->cached.memory;
	if (remote_error_is_fatal(err))
		return err;
	sample.name = name ? name : "";
	sample.awaited_by = tasks->awaiters.addrs;
	sample.nr_awaited_by = tasks->awaiters.nr;
	if (owner->thread)
		sample.thread = sampler->threads[owner->thread->slot].info;
	return emit_task(tasks, owner, &words, &sample);
}

/* Put the tasks of an owner, except those taken before, into tasks->list, before 3.14. */
static int take_tasks(struct tasks *tasks, const struct task_owner *owner)
{
	struct loop_tasks *of = owner->loop_tasks;
	remote_addr loop_addr = 0;
	int err = 0;

	if (owner->thread)
		err = asyncio_objects_loop(tasks->reader.memory, tasks->reader.build,
					   owner->thread->ref.addr, &loop_addr);
	if (err || (owner->thread && !loop_addr))
		return err;
	for (uint32_t i = 0; !err && i < of->tasks.nr; i++) {
		if (!of->tasks.addrs[i] || (owner->thread && of->loops.addrs[i] != loop_addr))
			continue;
		err = addr_list_append(&tasks->list, of->tasks.addrs[i]);
		of->tasks.addrs[i] = 0;
	}
	return err;
}

/* Emit all tasks of an owner. Returns -ENOMEM, -ESRCH, -EPERM, or what the sink returned. */
static int dump_owner(struct tasks *tasks, struct task_owner *owner)
{
	int err = -EAGAIN;

	tasks->reader.objects = owner->loop_tasks ? &owner->loop_tasks->objects : NULL;
	/* A partially read list is used as it is. */
	for (int i = 0; i < LIST_MAX_TRIES && err == -EAGAIN; i++) {
		if (i)
			(void)usleep(REFRESH_PAUSE_US);
		cached_memory_clear(&tasks->cached);
		tasks->list.nr = 0;
		err = owner->loop_tasks ? take_tasks(tasks, owner)
					: task_list_read(&tasks->reader, owner->head_addr,
							 TASKS_MAX, &tasks->list);
	}
	if (remote_error_is_fatal(err))
		return err;
	tasks->complete = tasks->complete && !err;
	err = read_running(tasks, owner);
	for (uint32_t i = 0; !err && i < tasks->list.nr; i++) {
		err = dump_task(tasks, owner, tasks->list.addrs[i]);
		/* A task that can no longer be read has ended, unless in a core file. */
		if (err && err != -ENOENT && (err == -E2BIG || tasks->sampler->extras.is_core))
			tasks->complete = false;
		err = remote_error_is_fatal(err) ? err : 0;
	}
	return err;
}

/* Read which loops the tasks of an interpreter are of. Leaves out what is no task. */
static int read_loops(struct tasks *tasks, struct loop_tasks *of)
{
	uint32_t nr = 0;
	int err = 0;

	of->loops.nr = 0;
	for (uint32_t i = 0; !err && i < of->tasks.nr; i++) {
		struct task_words words;

		err = task_read(&tasks->reader, of->tasks.addrs[i], &words);
		if (!err && words.coro_addr) {
			of->tasks.addrs[nr++] = words.addr;
			err = addr_list_append(&of->loops, words.loop_addr);
		}
		if (!remote_error_is_fatal(err))
			err = 0;
	}
	of->tasks.nr = nr;
	return err;
}

/*
 * Find the tasks of an interpreter, before 3.14. Returns 0; -ENOTSUP; -ENOMEM, -ESRCH, -EPERM.
 */
static int find_tasks(struct tasks *tasks, remote_addr interp_addr, struct loop_tasks *of)
{
	struct remote_memory *memory = tasks->reader.memory;
	int err = asyncio_objects_find(memory, tasks->reader.build, interp_addr, &of->objects);

	if (err == -ENOTSUP || remote_error_is_fatal(err))
		return err;
	tasks->complete = tasks->complete && (!err || err == -ENOENT);
	if (err)
		return 0;
	tasks->reader.objects = &of->objects;
	err = -EAGAIN;
	for (int i = 0; i < LIST_MAX_TRIES && err == -EAGAIN; i++) {
		if (i)
			(void)usleep(REFRESH_PAUSE_US);
		cached_memory_clear(&tasks->cached);
		of->tasks.nr = 0;
		err = asyncio_objects_list(memory, tasks->reader.build, &of->objects, TASKS_MAX,
					   &of->tasks);
	}
	if (remote_error_is_fatal(err))
		return err;
	tasks->complete = tasks->complete && !err;
	return read_loops(tasks, of);
}

/* Find out where tasks are. Returns 0, -ENOENT (nowhere), or an error of sampler_dump_tasks(). */
static int find_all(struct tasks *tasks, const struct maps *maps)
{
	const struct sampler *sampler = tasks->sampler;
	const struct snapshot *snapshot = &sampler->snapshot;
	bool is_whole = true;
	int err = 0;

	bounded_memory_init(&tasks->memory, snapshot->memory, TASKS_MAX_READS, NULL, UINT64_MAX);
	cached_memory_init(&tasks->cached, &tasks->memory.memory);
	tasks->reader = (struct task_reader){
		.memory = &tasks->cached.memory,
		.build = sampler->build,
	};
	tasks->complete = !snapshot->list_err;
	if (!asyncio_objects_known(sampler->build)) {
		tasks->reader.asyncio = &tasks->asyncio;
		err = asyncio_offsets_find(snapshot->memory, maps, sampler->build, &tasks->asyncio,
					   &is_whole);
		if (err == -ENOENT)
			tasks->complete = is_whole;
		return err;
	}
	tasks->loop_tasks = calloc(snapshot->nr_interpreters + 1, sizeof(*tasks->loop_tasks));
	if (!tasks->loop_tasks)
		return -ENOMEM;
	for (size_t i = 0; !err && i < snapshot->nr_interpreters; i++)
		err = find_tasks(tasks, snapshot->interpreters[i].ref.addr, &tasks->loop_tasks[i]);
	return err;
}

/* Emit the tasks of threads, oldest first, then those of threads that have ended. */
static int dump_owners(struct tasks *tasks)
{
	const struct snapshot *snapshot = &tasks->sampler->snapshot;
	int err = 0;

	for (size_t i = snapshot->nr_threads; !err && i > 0; i--) {
		const struct snapshot_thread *thread = snapshot->threads[i - 1];
		struct task_owner owner = {
			.thread = thread,
			.clock = &thread->clock,
			.head_addr = thread->ref.addr + tasks->asyncio.thread.tasks_head,
		};

		if (tasks->loop_tasks)
			owner.loop_tasks = &tasks->loop_tasks[thread->ref.interpreter];
		if (owner.loop_tasks && !owner.loop_tasks->objects.interp_addr)
			continue;
		if (thread->was_copied)
			err = dump_owner(tasks, &owner);
		else
			tasks->complete = false;
	}
	for (size_t i = snapshot->nr_interpreters; !err && i > 0; i--) {
		const struct snapshot_interpreter *interpreter = &snapshot->interpreters[i - 1];
		struct task_owner owner = {
			.clock = &interpreter->clock,
			.head_addr = interpreter->ref.addr + tasks->asyncio.interpreter.tasks_head,
		};

		if (tasks->loop_tasks)
			owner.loop_tasks = &tasks->loop_tasks[i - 1];
		if (!owner.loop_tasks || owner.loop_tasks->objects.interp_addr)
			err = dump_owner(tasks, &owner);
	}
	return err;
}

int sampler_dump_tasks(struct sampler *sampler, const struct maps *maps, struct sample_sink *sink,
		       bool *ret_complete)
{
	struct tasks tasks = {.sampler = sampler, .sink = sink};
	int err;

	err = find_all(&tasks, maps);
	if (!err)
		err = dump_owners(&tasks);
	for (size_t i = 0; tasks.loop_tasks && i < sampler->snapshot.nr_interpreters; i++) {
		addr_list_done(&tasks.loop_tasks[i].tasks);
		addr_list_done(&tasks.loop_tasks[i].loops);
	}
	free(tasks.loop_tasks);
	frame_list_done(&tasks.chain);
	addr_list_done(&tasks.list);
	addr_list_done(&tasks.awaiters);
	cached_memory_done(&tasks.cached);
	if (err && err != -ENOENT)
		return err;
	*ret_complete = tasks.complete && tasks.memory.nr_left;
	return 0;
}
