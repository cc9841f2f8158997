/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/sys_info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/objects/dict.h"
#include "sampler/cpython/objects/object.h"
#include "sampler/cpython/threads/threads.h"

/*
 * Number of entries searched. sys is the first module of sys.modules; it has about 100 attributes.
 */
#define MODULES_MAX_KEYS 64
#define SYS_MAX_KEYS	 1024

/* The main interpreter, or the newest one if that is not in the list. */
static int find_main(struct remote_memory *memory, const struct py_build *build,
		     remote_addr runtime_addr, remote_addr *ret_interp_addr)
{
	struct thread_list list;
	int err = thread_list_read(memory, build, runtime_addr, true, &list);

	if (err)
		return err;
	*ret_interp_addr = list.interpreters[0].addr;
	for (size_t i = 0; i < list.nr_interpreters; i++)
		if (list.interpreters[i].id == 0)
			*ret_interp_addr = list.interpreters[i].addr;
	thread_list_done(&list);
	return 0;
}

/* The object called name in sys, if it is of that kind or derived from it. */
static int find_object(const struct dict *sys, const char *name, enum value_kind kind,
		       remote_addr *ret_addr)
{
	struct value_type type;
	int err = dict_find(sys, SYS_MAX_KEYS, name, NULL, ret_addr);

	if (!err)
		err = value_type_of(sys->memory, sys->build, *ret_addr, &type);
	return err || type.kind == kind ? err : -EBADMSG;
}

/*
 * Add the argument at addr. Returns 0, -ENOMEM, -E2BIG (no room for more) or an error of the read.
 */
static int add_argument(const struct dict *sys, remote_addr addr, struct sys_info *info,
			size_t *nr_bytes)
{
	char *text = NULL;
	int err = string_read(sys->memory, &sys->build->offsets, addr, &text);

	if (err && !remote_error_is_fatal(err)) {
		text = strdup("<not in the core>");
		err = text ? 0 : -ENOMEM;
	}
	if (err)
		return err;
	*nr_bytes += strlen(text);
	if (*nr_bytes > SYS_MAX_ARGUMENTS_BYTES) {
		free(text);
		return -E2BIG;
	}
	info->arguments[info->nr_arguments++] = text;
	return 0;
}

/*
 * Read a list of str objects into info. On an error, info keeps the items before the faulty one;
 * if that is the first one, arguments stay NULL, which differs from an empty list.
 */
static int read_list(const struct dict *sys, remote_addr addr, struct sys_info *info)
{
	uint8_t fields[LIST_ITEMS_AFTER_TYPE + sizeof(remote_addr)];
	uint64_t nr_items, items_addr, item_addr;
	size_t nr_bytes = 0;
	int err = remote_memory_read(sys->memory, addr + sys->build->offsets.object.ob_type + 8,
				     fields, sizeof(fields));

	if (err)
		return err;
	nr_items = field_u64(fields, SIZE_AFTER_TYPE);
	items_addr = field_u64(fields, LIST_ITEMS_AFTER_TYPE);
	if (nr_items > SYS_MAX_ARGUMENTS)
		nr_items = SYS_MAX_ARGUMENTS;
	info->arguments = calloc(nr_items + 1, sizeof(char *));
	if (!info->arguments)
		return -ENOMEM;
	for (uint64_t i = 0; !err && i < nr_items; i++) {
		err = remote_memory_read_u64(sys->memory, items_addr + i * sizeof(item_addr),
					     &item_addr);
		if (!err)
			err = add_argument(sys, item_addr, info, &nr_bytes);
	}
	if (err && !info->nr_arguments) {
		free(info->arguments);
		info->arguments = NULL;
	}
	return err;
}

static int read_info(const struct dict *sys, struct sys_info *info)
{
	remote_addr addr;
	int err = find_object(sys, "orig_argv", VALUE_LIST, &addr);

	info->has_original = !err;
	if (err && !remote_error_is_fatal(err))
		err = find_object(sys, "argv", VALUE_LIST, &addr);
	if (!err)
		err = read_list(sys, addr, info);
	if (remote_error_is_fatal(err))
		return err;
	err = find_object(sys, "executable", VALUE_STR, &addr);
	if (!err)
		err = string_read(sys->memory, &sys->build->offsets, addr, &info->executable);
	return remote_error_is_fatal(err) ? err : 0;
}

int sys_info_read(struct remote_memory *memory, const struct py_build *build,
		  remote_addr runtime_addr, struct sys_info *ret_info)
{
	struct sys_info info = {0};
	struct dict modules, sys;
	remote_addr interp_addr;
	int err = find_main(memory, build, runtime_addr, &interp_addr);

	if (!err)
		err = dict_open_modules(memory, build, interp_addr, &modules);
	if (!err)
		err = dict_open_module(&modules, MODULES_MAX_KEYS, "sys", NULL, &sys);
	if (!err)
		err = read_info(&sys, &info);
	if (remote_error_is_fatal(err)) {
		sys_info_done(&info);
		return err;
	}
	*ret_info = info;
	return 0;
}

void sys_info_done(struct sys_info *info)
{
	for (size_t i = 0; i < info->nr_arguments; i++)
		free(info->arguments[i]);
	free(info->arguments);
	free(info->executable);
	*info = (struct sys_info){0};
}
