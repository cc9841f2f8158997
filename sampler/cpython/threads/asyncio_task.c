/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/threads/asyncio_task.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "sampler/cpython/base/cycle.h"
#include "sampler/cpython/objects/dict.h"
#include "sampler/cpython/objects/object.h"

/* struct llist_node. */
struct list_node {
	uint64_t next;
	uint64_t prev;
};

/* The type of an object and the word after it; nothing before them is needed. */
struct object_head {
	uint64_t type_addr;
	uint64_t first_field;
};

/* Limit on consecutive futures between a task and one that awaits it. */
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
	struct cycle_detector cycle = {0};
	struct list_node node;
	remote_addr before_addr;
	int err = remote_memory_read(reader->memory, head_addr, &node, sizeof(node));

	while (!err && node.next != head_addr) {
		before_addr = addr;
		addr = node.next;
		err = remote_memory_read(reader->memory, addr, &node, sizeof(node));
		if (!err && node.prev != before_addr)
			err = -EAGAIN;
		if (!err && (cycle_detector_visit(&cycle, addr) || list->nr >= TASKS_MAX))
			err = -E2BIG;
		if (!err)
			err = addr_list_append(list, addr - reader->asyncio->task.node);
	}
	return err;
}

/* Read bytes of a task or a future (which has fewer of its own), and the words that both have. */
static int read_object(const struct task_reader *reader, remote_addr addr, uint32_t bytes,
		       uint8_t object[TASK_MAX_BYTES], struct task_words *ret_words)
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
		.is_task = is_task,
		.awaited_by_addr = field_u64(object, reader->asyncio->task.awaited_by),
		.awaited_by_is_set = is_set,
	};
	return 0;
}

int task_read(const struct task_reader *reader, remote_addr task_addr, struct task_words *ret_task)
{
	const struct asyncio_offsets *asyncio = reader->asyncio;
	uint8_t object[TASK_MAX_BYTES];
	struct task_words task;
	int err = read_object(reader, task_addr, asyncio->task.size, object, &task);

	if (err)
		return err;
	if (!task.is_task)
		return -EBADMSG;
	task.name_addr = field_u64(object, asyncio->task.name);
	task.coro_addr = field_u64(object, asyncio->task.coro);
	*ret_task = task;
	return 0;
}

/* Read the type of an object, and its head. */
static int read_type(struct task_reader *reader, remote_addr addr, struct object_head *ret_head,
		     struct value_type *ret_type)
{
	int err = remote_memory_read(reader->memory, addr + reader->offsets->object.ob_type,
				     ret_head, sizeof(*ret_head));

	return err ? err
		   : type_cache_get(&reader->types, reader->memory, reader->offsets,
				    ret_head->type_addr, ret_type);
}

int task_read_name(struct task_reader *reader, const struct task_words *task, char **ret_name)
{
	struct object_head head;
	struct value_type type;
	uint64_t number;
	int err = read_type(reader, task->name_addr, &head, &type);

	if (err)
		return err;
	if (type.kind == VALUE_STR)
		return string_read(reader->memory, reader->offsets, task->name_addr, ret_name);
	if (type.kind != VALUE_INT)
		return -EBADMSG;
	/* The name that CPython creates on request. */
	err = integer_read(reader->memory, reader->offsets, task->name_addr, &number);
	if (!err && asprintf(ret_name, "Task-%" PRIu64, number) < 0)
		err = -ENOMEM;
	return err;
}

/* Whether the error concerns one object, and not the whole memory. */
static bool is_one_objects(int err)
{
	return err == -EBADMSG || err == -EFAULT || err == -EAGAIN;
}

/* Append the objects that await a task or a future. */
static int append_awaiting(const struct task_reader *reader, const struct task_words *task,
			   struct addr_list *objects)
{
	remote_addr member_addr;
	struct set set;
	int err;

	if (!task->awaited_by_addr || objects->nr >= AWAITERS_MAX)
		return 0;
	if (!task->awaited_by_is_set)
		return addr_list_append(objects, task->awaited_by_addr);
	err = set_open(reader->memory, reader->offsets, task->awaited_by_addr, &set);
	/* The table of a set has at most four times as many slots as members. */
	if (!err && set.nr_slots > 4ull * AWAITERS_MAX)
		err = -EBADMSG;
	while (!err && objects->nr < AWAITERS_MAX) {
		err = set_next(&set, &member_addr);
		if (!err)
			err = addr_list_append(objects, member_addr);
	}
	return err == -ENOENT || is_one_objects(err) ? 0 : err;
}

/*
 * Append an awaiting object to awaiters if it is a task; if it is a future, append what awaits that
 * to futures_awaiting.
 */
static int sort_awaiting(const struct task_reader *reader, remote_addr addr,
			 struct addr_list *awaiters, struct addr_list *futures_awaiting)
{
	const struct asyncio_offsets *asyncio = reader->asyncio;
	const uint32_t last = asyncio->task.awaited_by_is_set > asyncio->task.is_task
				      ? asyncio->task.awaited_by_is_set
				      : asyncio->task.is_task;
	uint8_t object[TASK_MAX_BYTES];
	struct task_words words;
	int err = read_object(reader, addr, last + 1, object, &words);

	if (err)
		return is_one_objects(err) ? 0 : err;
	if (words.is_task)
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

/* The chain of awaits. */

/* Size of a generator object up to its frame's locals, at most: 152 bytes in 3.15. */
enum { GENERATOR_MAX_BYTES = 512 };

/* Awaiters that drive each other: anext(numbers, None) drives the result of numbers.asend(). */
enum { MAX_AWAITERS_IN_A_ROW = 4 };

struct chain {
	struct frame_walk walk;
	struct task_reader *reader;
};

/* Read what the generator with the frame at frame_addr awaits: a reference on its stack, or 0. */
static int read_awaited(struct chain *chain, remote_addr frame_addr,
			const struct frame_words *words, remote_addr *ret_addr)
{
	const struct py_build *build = chain->walk.build;
	const uint64_t depth_bytes = build->traits.generator_states.awaited_words * 8ull;
	const remote_addr stack_addr = frame_addr + build->offsets.frame.localsplus;
	uint64_t reference;
	int err;

	if (words->stackpointer < stack_addr + depth_bytes ||
	    words->stackpointer - frame_addr > STRUCT_MAX_BYTES)
		return -EBADMSG;
	err = remote_memory_read_u64(chain->reader->memory, words->stackpointer - depth_bytes,
				     &reference);
	if (!err)
		*ret_addr = reference & ~(uint64_t)OBJECT_TAG_MASK;
	return err;
}

/* Append the frame of the generator at addr; *ret_next gets what it awaits. */
static int add_generator(struct chain *chain, remote_addr addr, remote_addr *ret_next)
{
	const struct py_build *build = chain->walk.build;
	const struct generator_states *states = &build->traits.generator_states;
	const uint32_t iframe = build->offsets.generator.iframe;
	const uint32_t frame_state = build->offsets.generator.frame_state;
	const size_t bytes = iframe + frame_head_bytes(&build->offsets);
	uint8_t generator[GENERATOR_MAX_BYTES];
	struct frame_words words;
	int8_t state;
	int err;

	if (bytes > sizeof(generator) || frame_state >= bytes)
		return -EBADMSG;
	err = remote_memory_read(chain->reader->memory, addr, generator, bytes);
	if (err)
		return err;
	state = (int8_t)field_u8(generator, frame_state);
	if (state >= states->first_finished)
		return 0;
	words = frame_words(&build->offsets, generator + iframe);
	if (words.owner != OWNED_BY_GENERATOR)
		return -EBADMSG;
	err = walk_frame(&chain->walk, addr + iframe, &words);
	if (err)
		return err == -ENOENT ? -EBADMSG : err;
	if (state < states->first_awaiting || state > states->last_awaiting)
		return 0;
	return read_awaited(chain, addr + iframe, &words, ret_next);
}

/* Whether the type may be that of an awaiter: its name cannot be read. */
static bool may_drive(const struct value_type *type)
{
	return type->kind == VALUE_OBJECT && !type->has_name;
}

/* Whether an object that may be an awaiter is one: what it finally drives has a frame. */
static bool is_awaiter(struct task_reader *reader, const struct object_head *head)
{
	struct object_head driven = *head;
	struct value_type type = {.kind = VALUE_OBJECT};

	for (int i = 0; i < MAX_AWAITERS_IN_A_ROW && may_drive(&type); i++)
		if (read_type(reader, driven.first_field, &driven, &type))
			return false;
	return type.kind == VALUE_GENERATOR;
}

int await_chain_walk(struct code_cache *codes, struct task_reader *reader,
		     const struct code_clock *clock, remote_addr coro_addr, struct frame_list *list)
{
	struct chain chain = {
		.walk = {.build = codes->build, .codes = codes, .clock = clock, .list = list},
		.reader = reader,
	};
	remote_addr addr = coro_addr;
	struct cycle_detector cycle = {0};
	struct object_head head;
	struct value_type type;
	remote_addr next_addr;
	int err = 0;

	frame_list_begin(list, 0);
	for (; !err && addr; addr = next_addr) {
		if (cycle_detector_visit(&cycle, addr) || cycle.nr > AWAIT_CHAIN_MAX)
			return -E2BIG;
		err = read_type(reader, addr, &head, &type);
		if (err)
			return err;
		next_addr = 0;
		if (type.kind == VALUE_GENERATOR)
			err = add_generator(&chain, addr, &next_addr);
		else if (type.kind == VALUE_AWAITER ||
			 (may_drive(&type) && is_awaiter(reader, &head)))
			next_addr = head.first_field;
	}
	return err;
}
