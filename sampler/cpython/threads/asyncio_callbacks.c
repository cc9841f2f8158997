/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/threads/asyncio_callbacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/objects/dict.h"

/* Limit on the variables that a callback shares with other functions: gather() has six. */
enum { VARIABLES_MAX = 16 };

/* Limit on the attributes of a TaskGroup. */
enum { ATTRIBUTES_MAX = 64 };

/* Callbacks that hold a future in a variable which they share with the function in their names. */
static const char *const closures[] = {
	"gather.<locals>._done_callback",
	"_gather.<locals>._done_callback", /* 3.9 */
	"shield.<locals>._inner_done_callback",
	"_wait.<locals>._on_completion",
};

/* Read the word at that distance from the end of an object's type. */
static int read_word(const struct callback_reader *reader, remote_addr addr, uint32_t after_type,
		     remote_addr *ret_word)
{
	const uint32_t type_end =
		reader->build->offsets.object.ob_type + (uint32_t)sizeof(remote_addr);

	return (addr % sizeof(uint64_t))
		       ? -EBADMSG
		       : remote_memory_read_u64(reader->memory, addr + type_end + after_type,
						ret_word);
}

/* Read an item of a tuple: -ENOENT if it has fewer. */
static int read_item(const struct callback_reader *reader, remote_addr tuple_addr, uint64_t index,
		     remote_addr *ret_item_addr)
{
	const uint32_t items = reader->build->traits.tuple_items_after_type;
	uint64_t nr_items;
	int err = read_word(reader, tuple_addr, TUPLE_SIZE_AFTER_TYPE, &nr_items);

	if (!err && index >= nr_items)
		err = -ENOENT;
	return err ? err
		   : read_word(reader, tuple_addr, items + (uint32_t)index * 8, ret_item_addr);
}

static int append(const struct callback_reader *reader, remote_addr addr)
{
	return reader->awaiting->nr < reader->max_awaiting
		       ? addr_list_append(reader->awaiting, addr)
		       : 0;
}

/* Append the object at addr if it is a task or future; -ENOENT if not. */
static int append_future(const struct callback_reader *reader, remote_addr addr)
{
	struct asyncio_object object;
	int err = asyncio_objects_read(reader->memory, &reader->build->offsets, reader->objects,
				       addr, &object);

	if (err)
		return remote_error_is_fatal(err) ? err : -ENOENT;
	return append(reader, addr);
}

/* Append the object at addr if it is a task that says that it awaits ours; -ENOENT if not. */
static int append_waiting_task(const struct callback_reader *reader, remote_addr addr)
{
	struct asyncio_object object;
	int err = asyncio_objects_read(reader->memory, &reader->build->offsets, reader->objects,
				       addr, &object);

	if (err)
		return remote_error_is_fatal(err) ? err : -ENOENT;
	return object.is_task && object.waiter_addr == reader->awaited_addr ? append(reader, addr)
									    : -ENOENT;
}

/* Append the future among the variables that a function shares. */
static int append_shared(const struct callback_reader *reader, remote_addr function_addr)
{
	remote_addr closure_addr, cell_addr, value_addr;
	int err = read_word(reader, function_addr, reader->build->traits.closure_after_type,
			    &closure_addr);

	for (uint64_t i = 0; !err && i < VARIABLES_MAX; i++) {
		err = read_item(reader, closure_addr, i, &cell_addr);
		if (!err)
			err = read_word(reader, cell_addr, CELL_REF_AFTER_TYPE, &value_addr);
		if (err)
			return err;
		err = append_future(reader, value_addr);
		if (err != -ENOENT)
			return err;
		err = 0;
	}
	return err ? err : -ENOENT;
}

/* Append the task that has entered the TaskGroup at group_addr. */
static int append_parent(const struct callback_reader *reader, remote_addr group_addr)
{
	remote_addr task_addr;
	struct dict attributes;
	int err = dict_open_attributes(reader->memory, reader->build, group_addr, &attributes);

	if (!err)
		err = dict_find(&attributes, ATTRIBUTES_MAX, "_parent_task", NULL, &task_addr);
	return err ? err : append_future(reader, task_addr);
}

/* Read the name of the function at addr, which may be no function; allocated. */
static int read_name(const struct callback_reader *reader, remote_addr addr, char **ret_name)
{
	remote_addr name_addr;
	int err = read_word(reader, addr, reader->build->traits.qualname_after_type, &name_addr);

	if (!err && !name_addr)
		err = -EBADMSG;
	return err ? err
		   : string_read(reader->memory, &reader->build->offsets, name_addr, ret_name);
}

/* Append what the callback at addr belongs to, if it is a function that shares variables. */
static int append_by_function(const struct callback_reader *reader, remote_addr addr)
{
	cleanup_free char *name = NULL;
	int err = read_name(reader, addr, &name);

	for (size_t i = 0; !err && i < sizeof(closures) / sizeof(*closures); i++)
		if (strcmp(name, closures[i]) == 0)
			return append_shared(reader, addr);
	return err ? err : -ENOENT;
}

/* The same for a callback that binds an object to the function at function_addr. */
static int append_by_bound(const struct callback_reader *reader, remote_addr function_addr,
			   remote_addr bound_addr)
{
	cleanup_free char *name = NULL;
	remote_addr argument_addr;
	int err = read_name(reader, function_addr, &name);

	if (err)
		return err;
	if (strcmp(name, "TaskGroup._on_task_done") == 0)
		return append_parent(reader, bound_addr);
	if (strcmp(name, "_release_waiter") != 0)
		return -ENOENT;
	err = read_item(reader, bound_addr, 0, &argument_addr);
	return err ? err : append_future(reader, argument_addr);
}

/* Append what the callback at addr belongs to. */
static int append_of_callback(const struct callback_reader *reader, remote_addr addr)
{
	/* ww_task; m_ml and m_self; im_func and im_self; fn and args of a partial. */
	remote_addr words[2];
	int err = read_word(reader, addr, 0, &words[0]);

	if (!err)
		err = read_word(reader, addr, sizeof(remote_addr), &words[1]);
	if (err)
		return remote_error_is_fatal(err) ? err : 0;
	err = append_waiting_task(reader, words[reader->objects->layout.wakeup_word]);
	if (err == -ENOENT)
		err = append_by_function(reader, addr);
	if (err && !remote_error_is_fatal(err))
		err = append_by_bound(reader, words[0], words[1]);
	return remote_error_is_fatal(err) ? err : 0;
}

int asyncio_callbacks_read(const struct callback_reader *reader,
			   const struct asyncio_object *object)
{
	remote_addr items_addr = 0, pair_addr, callback_addr;
	uint64_t nr_items = 0;
	int err = 0;

	if (object->callback0_addr)
		err = append_of_callback(reader, object->callback0_addr);
	if (err || !object->callbacks_addr)
		return err;
	err = read_word(reader, object->callbacks_addr, SIZE_AFTER_TYPE, &nr_items);
	if (!err)
		err = read_word(reader, object->callbacks_addr, LIST_ITEMS_AFTER_TYPE, &items_addr);
	if (nr_items > reader->max_awaiting)
		nr_items = reader->max_awaiting;
	for (uint64_t i = 0; !err && i < nr_items; i++) {
		err = remote_memory_read_u64(reader->memory, items_addr + i * 8, &pair_addr);
		if (!err)
			err = read_item(reader, pair_addr, 0, &callback_addr);
		if (!err)
			err = append_of_callback(reader, callback_addr);
	}
	return remote_error_is_fatal(err) ? err : 0;
}
