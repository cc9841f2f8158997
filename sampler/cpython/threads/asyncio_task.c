/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/threads/asyncio_task.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/base/cycle.h"
#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/objects/dict.h"
#include "sampler/cpython/objects/object.h"
#include "sampler/cpython/threads/asyncio_callbacks.h"

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

int task_list_read(const struct task_reader *reader, remote_addr head_addr, uint32_t max_tasks,
		   struct addr_list *list)
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
		if (!err && (cycle_detector_visit(&cycle, addr) || list->nr >= max_tasks))
			err = -E2BIG;
		if (!err)
			err = addr_list_append(list, addr - reader->asyncio->task.node);
	}
	return err;
}

/*
 * Read bytes of a task or a future (which has fewer of its own), and the words that both have, from
 * 3.14 on.
 */
static int read_bytes(const struct task_reader *reader, remote_addr addr, uint32_t bytes,
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
		.addr = addr,
		.is_task = is_task,
		.awaited_by_addr = field_u64(object, reader->asyncio->task.awaited_by),
		.awaited_by_is_set = is_set,
	};
	return 0;
}

/* Read a task or a future before 3.14. */
static int read_older(const struct task_reader *reader, remote_addr addr,
		      struct task_words *ret_words)
{
	struct asyncio_object object;
	int err = asyncio_objects_read(reader->memory, &reader->build->offsets, reader->objects,
				       addr, &object);

	if (err)
		return err;
	*ret_words = (struct task_words){
		.addr = addr,
		.is_task = object.is_task,
		.name_addr = object.name_addr,
		.coro_addr = object.is_done ? 0 : object.coro_addr,
		.loop_addr = object.loop_addr,
		.callback0_addr = object.callback0_addr,
		.callbacks_addr = object.callbacks_addr,
	};
	return 0;
}

int task_read(const struct task_reader *reader, remote_addr task_addr, struct task_words *ret_task)
{
	const struct asyncio_offsets *asyncio = reader->asyncio;
	uint8_t object[TASK_MAX_BYTES];
	struct task_words task;
	int err = reader->objects
			  ? read_older(reader, task_addr, &task)
			  : read_bytes(reader, task_addr, asyncio->task.size, object, &task);

	if (err)
		return err;
	if (!task.is_task)
		return -EBADMSG;
	if (!reader->objects) {
		task.name_addr = field_u64(object, asyncio->task.name);
		task.coro_addr = field_u64(object, asyncio->task.coro);
	}
	*ret_task = task;
	return 0;
}

int task_read_running(const struct task_reader *reader, remote_addr thread_addr,
		      remote_addr *ret_task_addr)
{
	struct remote_memory *memory = reader->memory;
	uint64_t loop_addr = 0, task_addr = 0;
	int err = reader->objects
			  ? asyncio_objects_loop(memory, reader->build, thread_addr, &loop_addr)
			  : remote_memory_read_u64(
				    memory, thread_addr + reader->asyncio->thread.running_loop,
				    &loop_addr);

	if (!err && loop_addr && reader->objects)
		err = asyncio_objects_running(memory, reader->build, reader->objects, loop_addr,
					      &task_addr);
	else if (!err && loop_addr)
		err = remote_memory_read_u64(
			memory, thread_addr + reader->asyncio->thread.running_task, &task_addr);
	if (!err)
		*ret_task_addr = task_addr;
	return err;
}

/* Read the type of an object, and its head. */
static int read_type(struct task_reader *reader, remote_addr addr, struct object_head *ret_head,
		     struct value_type *ret_type)
{
	int err = remote_memory_read(reader->memory, addr + reader->build->offsets.object.ob_type,
				     ret_head, sizeof(*ret_head));

	return err ? err
		   : type_cache_get(&reader->types, reader->memory, &reader->build->offsets,
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
		return string_read(reader->memory, &reader->build->offsets, task->name_addr,
				   ret_name);
	if (type.kind != VALUE_INT)
		return -EBADMSG;
	/* The name that CPython creates on request. */
	err = integer_read(reader->memory, &reader->build->offsets, task->name_addr, &number);
	if (!err && asprintf(ret_name, "Task-%" PRIu64, number) < 0)
		err = -ENOMEM;
	return err;
}

/* Append the objects that await a task or a future, before 3.14. */
static int append_by_callbacks(const struct task_reader *reader, const struct task_words *task,
			       struct addr_list *objects)
{
	const struct callback_reader callbacks = {
		.memory = reader->memory,
		.build = reader->build,
		.objects = reader->objects,
		.awaited_addr = task->addr,
		.awaiting = objects,
		.max_awaiting = AWAITERS_MAX,
	};
	const struct asyncio_object object = {
		.callback0_addr = task->callback0_addr,
		.callbacks_addr = task->callbacks_addr,
	};

	return asyncio_callbacks_read(&callbacks, &object);
}

/* Append the objects that await a task or a future. */
static int append_awaiting(const struct task_reader *reader, const struct task_words *task,
			   struct addr_list *objects)
{
	remote_addr member_addr;
	struct set set;
	int err;

	if (reader->objects)
		return append_by_callbacks(reader, task, objects);
	if (!task->awaited_by_addr || objects->nr >= AWAITERS_MAX)
		return 0;
	if (!task->awaited_by_is_set)
		return addr_list_append(objects, task->awaited_by_addr);
	err = set_open(reader->memory, &reader->build->offsets, task->awaited_by_addr, &set);
	/* The table of a set has at most four times as many slots as members. */
	if (!err && set.nr_slots > 4ull * AWAITERS_MAX)
		err = -EBADMSG;
	while (!err && objects->nr < AWAITERS_MAX) {
		err = set_next(&set, &member_addr);
		if (!err)
			err = addr_list_append(objects, member_addr);
	}
	return remote_error_is_fatal(err) ? err : 0;
}

/* How many bytes of a future are read: up to the last word used. */
static uint32_t future_bytes(const struct asyncio_offsets *asyncio)
{
	const uint32_t is_set = asyncio->task.awaited_by_is_set;
	const uint32_t is_task = asyncio->task.is_task;

	return (is_set > is_task ? is_set : is_task) + 1;
}

/*
 * Append an awaiting object to awaiters if it is a task; if it is a future, append what awaits that
 * to futures_awaiting.
 */
static int sort_awaiting(const struct task_reader *reader, remote_addr addr,
			 struct addr_list *awaiters, struct addr_list *futures_awaiting)
{
	uint8_t object[TASK_MAX_BYTES];
	struct task_words words;
	int err;

	if (reader->objects)
		err = read_older(reader, addr, &words);
	else
		err = read_bytes(reader, addr, future_bytes(reader->asyncio), object, &words);
	if (err)
		return remote_error_is_fatal(err) ? err : 0;
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
	/* The callbacks of a task may lead to one twice. */
	if (reader->objects)
		addr_list_sort(awaiters);
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

/*
 * Whether the instruction after the one at instr_ptr is one that awaits, where the state does not
 * say so. Returns 0, -ENOENT if not, -EFAULT, -ESRCH or -EPERM.
 */
static int check_instruction(struct chain *chain, remote_addr instr_ptr)
{
	const struct generator_states *states = &chain->walk.build->traits.generator_states;
	uint8_t unit[2]; /* opcode and argument */
	int err;

	if (!states->awaiting_opcode && !states->awaiting_oparg)
		return 0;
	err = remote_memory_read(chain->reader->memory, instr_ptr + sizeof(unit), unit,
				 sizeof(unit));
	if (err)
		return err;
	if (states->awaiting_opcode)
		return unit[0] == states->awaiting_opcode ? 0 : -ENOENT;
	return unit[1] >= states->awaiting_oparg ? 0 : -ENOENT;
}

/* Read what is on the stack of a suspended frame that ends at top_addr. */
static int read_awaited(struct chain *chain, remote_addr frame_addr, remote_addr stack_addr,
			remote_addr top_addr, remote_addr *ret_addr)
{
	const uint64_t depth_bytes =
		chain->walk.build->traits.generator_states.awaited_words * 8ull;
	uint64_t reference;
	int err;

	if (top_addr < stack_addr + depth_bytes || top_addr - frame_addr > STRUCT_MAX_BYTES)
		return -EBADMSG;
	err = remote_memory_read_u64(chain->reader->memory, top_addr - depth_bytes, &reference);
	if (!err)
		*ret_addr = reference & ~(uint64_t)OBJECT_TAG_MASK;
	return err;
}

/* Append the frame of the generator at addr, which contains it; *ret_next gets what it awaits. */
static int add_generator(struct chain *chain, remote_addr addr, remote_addr *ret_next)
{
	const struct py_offsets *offsets = &chain->walk.build->offsets;
	const struct generator_states *states = &chain->walk.build->traits.generator_states;
	const remote_addr frame_addr = addr + offsets->generator.iframe;
	const remote_addr stack_addr = frame_addr + offsets->frame.localsplus;
	const size_t bytes = offsets->generator.iframe + frame_head_bytes(offsets);
	uint8_t generator[GENERATOR_MAX_BYTES];
	struct frame_words words;
	int8_t state;
	int err;

	if (bytes > sizeof(generator) || offsets->generator.frame_state >= bytes)
		return -EBADMSG;
	err = remote_memory_read(chain->reader->memory, addr, generator, bytes);
	if (err)
		return err;
	state = (int8_t)field_u8(generator, offsets->generator.frame_state);
	if (state >= states->first_finished)
		return 0;
	words = frame_words(offsets, generator + offsets->generator.iframe);
	if (words.owner != OWNED_BY_GENERATOR)
		return -EBADMSG;
	err = walk_frame(&chain->walk, frame_addr, &words);
	if (err)
		return err == -ENOENT ? -EBADMSG : err;
	if (state < states->first_awaiting || state > states->last_awaiting)
		return 0;
	err = check_instruction(chain, words.instr_ptr);
	if (err)
		return err == -ENOENT ? 0 : err;
	if (offsets->frame.stackpointer == OFFSET_ABSENT)
		words.stackpointer =
			words.stacktop < 0 ? 0 : stack_addr + (uint64_t)words.stacktop * 8;
	return read_awaited(chain, frame_addr, stack_addr, words.stackpointer, ret_next);
}

/* Read where the stack of a suspended frame object begins and ends; 0: it runs, or has finished. */
static int read_stack_ends(struct chain *chain, remote_addr frame_addr, remote_addr *ret_stack_addr,
			   remote_addr *ret_top_addr)
{
	const struct py_offsets *offsets = &chain->walk.build->offsets;
	struct remote_memory *memory = chain->reader->memory;
	int32_t depth;
	int err = remote_memory_read_u64(
		memory, frame_addr + offsets->frame.executable + FRAME_VALUESTACK_AFTER_CODE,
		ret_stack_addr);

	if (err)
		return err;
	if (offsets->frame.stackpointer != OFFSET_ABSENT)
		return remote_memory_read_u64(memory, frame_addr + offsets->frame.stackpointer,
					      ret_top_addr);
	err = remote_memory_read(memory, frame_addr + offsets->frame.stackdepth, &depth,
				 sizeof(depth));
	if (!err)
		*ret_top_addr = depth < 0 ? 0 : *ret_stack_addr + (uint64_t)depth * 8;
	return err;
}

/* The same as add_generator() before 3.11: the generator has a frame object. */
static int add_older_generator(struct chain *chain, remote_addr addr, remote_addr *ret_next)
{
	const struct py_build *build = chain->walk.build;
	uint8_t frame[FRAME_MAX_BYTES];
	remote_addr frame_addr, stack_addr, top_addr;
	struct frame_words words;
	int err = coroutine_read_frame(chain->reader, addr, &frame_addr);

	if (err || !frame_addr)
		return err;
	err = remote_memory_read(chain->reader->memory, frame_addr, frame,
				 frame_head_bytes(&build->offsets));
	if (err)
		return err;
	words = frame_words(&build->offsets, frame);
	err = walk_frame(&chain->walk, frame_addr, &words);
	if (err)
		return err == -ENOENT ? -EBADMSG : err;
	if (words.lasti < 0 || words.state == build->traits.executing)
		return 0;
	err = check_instruction(chain, words.instr_ptr);
	if (!err)
		err = read_stack_ends(chain, frame_addr, &stack_addr, &top_addr);
	if (err)
		return err == -ENOENT ? 0 : err;
	return top_addr ? read_awaited(chain, frame_addr, stack_addr, top_addr, ret_next) : 0;
}

int coroutine_read_frame(const struct task_reader *reader, remote_addr coro_addr,
			 remote_addr *ret_frame_addr)
{
	const struct py_offsets *offsets = &reader->build->offsets;

	if (offsets->generator.frame != OFFSET_ABSENT)
		return remote_memory_read_u64(reader->memory, coro_addr + offsets->generator.frame,
					      ret_frame_addr);
	*ret_frame_addr = coro_addr + offsets->generator.iframe;
	return 0;
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
			err = codes->build->traits.frames_on_heap
				      ? add_older_generator(&chain, addr, &next_addr)
				      : add_generator(&chain, addr, &next_addr);
		else if (type.kind == VALUE_AWAITER ||
			 (may_drive(&type) && is_awaiter(reader, &head)))
			next_addr = head.first_field;
	}
	return err;
}
