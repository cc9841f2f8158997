/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/threads/asyncio_task.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "sampler/cpython/base/circle.h"
#include "sampler/cpython/objects/integer.h"
#include "sampler/cpython/objects/set.h"
#include "sampler/cpython/objects/strings.h"

/* struct llist_node. */
struct list_node {
	uint64_t next;
	uint64_t prev;
};

/* So many futures in a row may stand between a task and one that awaits it. */
enum { MAX_FUTURES_BETWEEN = 4 };

void addr_list_done(struct addr_list *list)
{
	if (!list)
		return;
	free(list->addrs);
	*list = (struct addr_list){0};
}

int addr_list_append(struct addr_list *list, remote_addr addr)
{
	remote_addr *addrs =
		array_reserve(list->addrs, list->nr + 1, &list->max, sizeof(*list->addrs));

	if (!addrs)
		return -ENOMEM;
	list->addrs = addrs;
	addrs[list->nr++] = addr;
	return 0;
}

int task_list_read(const struct task_reader *reader, remote_addr head_addr, struct addr_list *list)
{
	remote_addr addr = head_addr;
	struct circle circle = {0};
	struct list_node node;
	remote_addr before_addr;
	int err = remote_memory_read(reader->memory, head_addr, &node, sizeof(node));

	while (!err && node.next != head_addr) {
		before_addr = addr;
		addr = node.next;
		err = remote_memory_read(reader->memory, addr, &node, sizeof(node));
		if (!err && node.prev != before_addr)
			err = -EAGAIN;
		if (!err && (circle_closes(&circle, addr) || list->nr >= TASKS_MAX))
			err = -E2BIG;
		if (!err)
			err = addr_list_append(list, addr - reader->asyncio->task.node);
	}
	return err;
}

/* Read a task or a future, whose own part is shorter: so many bytes of it, and what both say. */
static int read_object(const struct task_reader *reader, remote_addr addr, uint32_t bytes,
		       uint8_t object[TASK_MAX_BYTES], struct task_words *ret_words,
		       bool *ret_is_task)
{
	uint8_t is_task, is_set;
	int err;

	if (addr % sizeof(uint64_t))
		return -EBADMSG;
	err = remote_memory_read(reader->memory, addr, object, bytes);
	if (err)
		return err;
	is_task = field_u8(object, reader->asyncio->task.is_task);
	is_set = field_u8(object, reader->asyncio->task.awaited_by_is_set);
	if (is_task > 1 || is_set > 1)
		return -EBADMSG;
	*ret_words = (struct task_words){
		.awaited_by_addr = field_u64(object, reader->asyncio->task.awaited_by),
		.awaited_by_is_set = is_set,
	};
	*ret_is_task = is_task;
	return 0;
}

int task_read(const struct task_reader *reader, remote_addr task_addr, struct task_words *ret_task)
{
	const struct asyncio_offsets *asyncio = reader->asyncio;
	uint8_t object[TASK_MAX_BYTES];
	struct task_words task;
	bool is_task;
	int err = read_object(reader, task_addr, asyncio->task.size, object, &task, &is_task);

	if (err)
		return err;
	if (!is_task)
		return -EBADMSG;
	task.name_addr = field_u64(object, asyncio->task.name);
	task.coro_addr = field_u64(object, asyncio->task.coro);
	*ret_task = task;
	return 0;
}

int task_read_name(struct task_reader *reader, const struct task_words *task, char **ret_name)
{
	struct value_type type;
	remote_addr type_addr;
	uint64_t number;
	int err = remote_memory_read_u64(
		reader->memory, task->name_addr + reader->offsets->object.ob_type, &type_addr);

	if (!err)
		err = type_cache_get(&reader->types, reader->memory, reader->offsets, type_addr,
				     &type);
	if (err)
		return err;
	if (type.kind == VALUE_STR)
		return string_read(reader->memory, reader->offsets, task->name_addr, ret_name);
	if (type.kind != VALUE_INT)
		return -EBADMSG;
	/* The name that CPython makes when it is asked for it. */
	err = integer_read(reader->memory, reader->offsets, task->name_addr, &number);
	if (!err && asprintf(ret_name, "Task-%" PRIu64, number) < 0)
		err = -ENOMEM;
	return err;
}

/* Whether something is wrong with one object, and not with all of the memory. */
static bool is_one_objects(int err)
{
	return err == -EBADMSG || err == -EFAULT || err == -EAGAIN;
}

/* Append the members of a set. */
static int read_set(const struct task_reader *reader, remote_addr addr, struct addr_list *list)
{
	remote_addr member_addr;
	struct set set;
	int err = set_open(reader->memory, reader->offsets, addr, &set);

	/* A set's table has four times as many slots as members at most. */
	if (!err && set.nr_slots > 4ull * AWAITERS_MAX)
		err = -EBADMSG;
	while (!err && list->nr < AWAITERS_MAX) {
		err = set_next(reader->memory, &set, &member_addr);
		if (!err)
			err = addr_list_append(list, member_addr);
	}
	return err == -ENOENT ? 0 : err;
}

/* Append what awaits a task or future, be it either. */
static int append_awaiting(const struct task_reader *reader, const struct task_words *task,
			   struct addr_list *objects)
{
	int err;

	if (!task->awaited_by_addr || objects->nr >= AWAITERS_MAX)
		return 0;
	if (!task->awaited_by_is_set)
		return addr_list_append(objects, task->awaited_by_addr);
	err = read_set(reader, task->awaited_by_addr, objects);
	return is_one_objects(err) ? 0 : err;
}

/* Of what awaits: keep a task, or append those that await a future to futures_awaiting. */
static int sort_awaiting(const struct task_reader *reader, remote_addr addr,
			 struct addr_list *awaiters, struct addr_list *futures_awaiting)
{
	const struct asyncio_offsets *asyncio = reader->asyncio;
	const uint32_t last = asyncio->task.awaited_by_is_set > asyncio->task.is_task
				      ? asyncio->task.awaited_by_is_set
				      : asyncio->task.is_task;
	uint8_t object[TASK_MAX_BYTES];
	struct task_words words;
	bool is_task;
	int err = read_object(reader, addr, last + 1, object, &words, &is_task);

	if (err)
		return is_one_objects(err) ? 0 : err;
	if (is_task)
		return awaiters->nr < AWAITERS_MAX ? addr_list_append(awaiters, addr) : 0;
	return append_awaiting(reader, &words, futures_awaiting);
}

int task_read_awaiters(const struct task_reader *reader, const struct task_words *task,
		       struct addr_list *awaiters)
{
	struct addr_list objects = {0};
	int err;

	awaiters->nr = 0;
	err = append_awaiting(reader, task, &objects);
	for (int i = 0; !err && objects.nr && i <= MAX_FUTURES_BETWEEN; i++) {
		struct addr_list next = {0};

		for (uint32_t n = 0; !err && n < objects.nr; n++)
			err = sort_awaiting(reader, objects.addrs[n], awaiters, &next);
		addr_list_done(&objects);
		objects = next;
	}
	addr_list_done(&objects);
	return err;
}
