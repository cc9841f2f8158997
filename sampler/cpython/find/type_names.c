/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/type_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/find/build_check.h"
#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/objects/dict.h"
#include "sampler/cpython/objects/object.h"

/* Number of entries read of a module's dict; builtins has 160, types 50. */
#define MODULE_MAX_ENTRIES 1024

/* The same for sys.modules; the modules needed are among its first. */
#define MODULES_MAX_ENTRIES 16384

/* An attribute of a module, and the name of that type, or of the type of that instance. */
struct alias {
	const char *module;
	const char *attribute;
	bool of_instance;
	const char *name;
};

static const struct alias aliases[] = {
	{"builtins", "None", true, "NoneType"},
	{"builtins", "Ellipsis", true, "ellipsis"},
	{"builtins", "NotImplemented", true, "NotImplementedType"},
	{"builtins", "len", true, "builtin_function_or_method"},
	{"_frozen_importlib", "_new_module", true, "function"},
	{"types", "FunctionType", false, "function"},
	{"types", "CodeType", false, "code"},
	{"types", "MethodType", false, "method"},
	{"types", "CellType", false, "cell"},
	{"types", "FrameType", false, "frame"},
	{"types", "TracebackType", false, "traceback"},
	{"types", "MethodWrapperType", false, "method-wrapper"},
	{"types", "MethodDescriptorType", false, "method_descriptor"},
	{"types", "WrapperDescriptorType", false, "wrapper_descriptor"},
	{"types", "ClassMethodDescriptorType", false, "classmethod_descriptor"},
	{"types", "GetSetDescriptorType", false, "getset_descriptor"},
	{"types", "MemberDescriptorType", false, "member_descriptor"},
	{"types", "SimpleNamespace", false, "types.SimpleNamespace"},
	{"types", "GenericAlias", false, "types.GenericAlias"},
	{"types", "UnionType", false, "types.UnionType"},
};
enum { NR_ALIASES = sizeof(aliases) / sizeof(*aliases) };

/* Modules whose attributes are called like the types that they hold. */
static const char *const naming_modules[] = {"builtins", "_collections_abc"};
enum { NR_NAMING_MODULES = sizeof(naming_modules) / sizeof(*naming_modules) };

static bool is_static_type(const struct type_names *names, remote_addr addr)
{
	const struct py_offsets *offsets = &names->build->offsets;
	uint64_t type_addr, flags, own_flags;

	return remote_memory_read_u64(names->inner, addr + offsets->object.ob_type, &type_addr) ==
		       0 &&
	       remote_memory_read_u64(names->inner, type_addr + offsets->type.flags, &flags) == 0 &&
	       flags & TYPE_IS_TYPE &&
	       remote_memory_read_u64(names->inner, addr + offsets->type.flags, &own_flags) == 0 &&
	       !(own_flags & TYPE_HEAP);
}

/* Add a name for the type at addr, unless the memory has one or another was added before. */
static void add_name(struct type_names *names, remote_addr addr, const char *name)
{
	remote_addr name_addr;
	uint8_t byte;

	if (names->nr_names == TYPE_NAMES_MAX || strlen(name) >= TYPE_NAME_MAX_BYTES ||
	    !is_static_type(names, addr) ||
	    remote_memory_read_u64(names->inner, addr + names->build->offsets.object.tp_name,
				   &name_addr) != 0 ||
	    remote_memory_read(names->inner, name_addr, &byte, sizeof(byte)) == 0)
		return;
	for (size_t i = 0; i < names->nr_names; i++)
		if (names->names[i].addr == name_addr)
			return;
	names->names[names->nr_names].addr = name_addr;
	(void)stpcpy(names->names[names->nr_names++].text, name);
}

/* The same for the type of the object at addr. */
static void add_name_of_instance(struct type_names *names, remote_addr addr, const char *name)
{
	remote_addr type_addr;

	if (remote_memory_read_u64(names->inner, addr + names->build->offsets.object.ob_type,
				   &type_addr) == 0)
		add_name(names, type_addr, name);
}

static int add_alias(struct type_names *names, const struct dict *modules,
		     const struct alias *alias)
{
	remote_addr value_addr;
	struct dict dict;
	int err = dict_open_module(modules, MODULES_MAX_ENTRIES, alias->module, NULL, &dict);

	if (!err)
		err = dict_find(&dict, MODULE_MAX_ENTRIES, alias->attribute, NULL, &value_addr);
	if (!err && alias->of_instance)
		add_name_of_instance(names, value_addr, alias->name);
	else if (!err)
		add_name(names, value_addr, alias->name);
	return err;
}

/* Add the names of all types of a module, and of the type of modules. */
static int add_module(struct type_names *names, const struct dict *modules, const char *name)
{
	struct dict_walk walk = {0};
	struct dict_entry entry;
	remote_addr module_addr;
	int err = dict_find(modules, MODULES_MAX_ENTRIES, name, NULL, &module_addr);

	if (!err)
		err = dict_open_attributes(names->inner, names->build, module_addr, &walk.dict);
	if (err)
		return err;
	add_name_of_instance(names, module_addr, "module");
	while (!err && walk.next < MODULE_MAX_ENTRIES) {
		cleanup_free char *key = NULL;

		err = dict_next(&walk, &entry);
		if (err || !is_static_type(names, entry.value_addr))
			continue;
		err = string_read(names->inner, &names->build->offsets, entry.key_addr, &key);
		if (!err)
			add_name(names, entry.value_addr, key);
		err = remote_error_is_fatal(err) ? err : 0;
	}
	return err;
}

/*
 * Collect all names that can be found in the first interpreter of the list; all interpreters have
 * the same types. Returns 0, -ENOMEM, -ESRCH or -EPERM.
 */
static int collect(struct type_names *names, remote_addr runtime_addr)
{
	const struct py_offsets *offsets = &names->build->offsets;
	const remote_addr code_addr = build_find_code(names->inner, runtime_addr, names->build);
	remote_addr interp_addr;
	struct dict modules;
	int err;

	if (offsets->type.flags == OFFSET_ABSENT)
		return 0;
	if (code_addr)
		add_name_of_instance(names, code_addr, "code");
	err = remote_memory_read_u64(
		names->inner, runtime_addr + offsets->runtime.interpreters_head, &interp_addr);
	if (!err)
		err = dict_open_modules(names->inner, names->build, interp_addr, &modules);
	if (err)
		return remote_error_is_fatal(err) ? err : 0;
	for (size_t i = 0; !remote_error_is_fatal(err) && i < NR_ALIASES; i++)
		err = add_alias(names, &modules, &aliases[i]);
	for (size_t i = 0; !remote_error_is_fatal(err) && i < NR_NAMING_MODULES; i++)
		err = add_module(names, &modules, naming_modules[i]);
	return remote_error_is_fatal(err) ? err : 0;
}

/* Longest read of a name: EXECUTABLE_NAME_MAX_BYTES + 1. */
enum { NAME_READ_MAX_BYTES = 257 };

/* Add the bytes of a name to a piece that could not be read to its end. */
static void complete(const struct type_names *names, struct remote_range *range)
{
	const remote_addr addr = range->addr + range->done_bytes;
	char *bytes = (char *)range->buffer + range->done_bytes;
	const size_t left = range->size - range->done_bytes;

	/* A longer piece is no name, but a page that begins or ends with one. */
	if (left > NAME_READ_MAX_BYTES)
		return;
	for (size_t i = 0; i < names->nr_names; i++) {
		const uint64_t first = addr - names->names[i].addr;
		const size_t length = strlen(names->names[i].text);

		if (first > length)
			continue;
		memset(bytes, 0, left);
		memcpy(bytes, names->names[i].text + first,
		       length - first < left ? length - first : left);
		range->done_bytes = range->size;
		return;
	}
}

static int read_ranges(struct remote_memory *memory, struct remote_range *ranges, size_t nr_ranges)
{
	const struct type_names *names = (const struct type_names *)memory;
	int err = remote_memory_read_ranges(names->inner, ranges, nr_ranges);

	for (size_t i = 0; !err && names->nr_names && i < nr_ranges; i++)
		if (ranges[i].done_bytes < ranges[i].size)
			complete(names, &ranges[i]);
	return err;
}

int type_names_init(struct type_names *names, struct remote_memory *inner,
		    const struct py_build *build, remote_addr runtime_addr)
{
	static const struct remote_memory_ops ops = {.read_ranges = read_ranges};
	int err;

	*names = (struct type_names){
		.memory.ops = &ops,
		.inner = inner,
		.build = build,
		.names = calloc(TYPE_NAMES_MAX, sizeof(struct type_name)),
	};
	err = names->names ? collect(names, runtime_addr) : -ENOMEM;
	if (err)
		type_names_done(names);
	return err;
}

void type_names_done(struct type_names *names)
{
	free(names->names);
	*names = (struct type_names){.nr_names = 0};
}
