/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/code/executable.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/objects/object.h"

#define PATH_BUILTIN "<built-in>"
#define PATH_UNKNOWN "<extension>"

/* The name of the code object of 3.12's shims (_Py_InterpreterTrampoline, Python/specialize.c). */
#define TRAMPOLINE_NAME "<interpreter trampoline>"

/* Size of a C string that may be cut. */
enum { NAME_BYTES = EXECUTABLE_NAME_MAX_BYTES + sizeof(ELLIPSIS_UTF8) };

/* The description of an object. The strings are owned, and have the same bytes as in the target. */
struct description {
	struct remote_memory *memory;
	const struct py_build *build;
	enum executable_kind kind;
	char *qualname;
	char *path;    /* PATH_BUILTIN or PATH_UNKNOWN if there is no file */
	uint64_t line; /* 0 if unknown */
};

/* Whether the error concerns only this one object. */
static bool is_unreadable(int err)
{
	return err == -EBADMSG || err == -EFAULT;
}

/* Read size bytes of an object, after_type bytes after its type. */
static int read_fields(const struct description *of, remote_addr object_addr, uint32_t after_type,
		       void *ret_fields, size_t size)
{
	const uint64_t type_end = of->build->offsets.object.ob_type + sizeof(remote_addr);

	return remote_memory_read(of->memory, object_addr + type_end + after_type, ret_fields,
				  size);
}

/* Read the C string at addr; cut it if it is too long. */
static int read_c_string(const struct description *of, remote_addr addr, char ret_text[NAME_BYTES])
{
	int err = c_string_read(of->memory, addr, ret_text, EXECUTABLE_NAME_MAX_BYTES + 1);

	if (!err && strlen(ret_text) == EXECUTABLE_NAME_MAX_BYTES)
		(void)stpcpy(ret_text + EXECUTABLE_NAME_MAX_BYTES, ELLIPSIS_UTF8);
	return err;
}

/* Read the name of the type at addr. */
static int read_type_name(const struct description *of, remote_addr addr, char ret_name[NAME_BYTES])
{
	remote_addr name_addr;
	int err = (addr % sizeof(uint64_t)) ? -EBADMSG : 0;

	if (!err)
		err = remote_memory_read_u64(of->memory, addr + of->build->offsets.object.tp_name,
					     &name_addr);
	return err ? err : read_c_string(of, name_addr, ret_name);
}

/* Returns -EBADMSG unless the object at addr is of exactly that kind, and not of a subclass. */
static int check_kind(const struct description *of, remote_addr addr, enum value_kind kind)
{
	struct value_type type;
	int err = value_type_of(of->memory, of->build, addr, &type);

	return err || (type.kind == kind && type.is_exact) ? err : -EBADMSG;
}

/* Read the str object at addr. */
static int read_str(const struct description *of, remote_addr addr, char **ret_text)
{
	int err = check_kind(of, addr, VALUE_STR);

	return err ? err : string_read(of->memory, &of->build->offsets, addr, ret_text);
}

/* Set the path and name. Returns 0 or -ENOMEM. */
__attribute__((format(printf, 3, 4))) static int name_it(struct description *of, const char *path,
							 const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&of->qualname, format, arguments) < 0)
		of->qualname = NULL;
	va_end(arguments);
	of->path = strdup(path);
	return of->path && of->qualname ? 0 : -ENOMEM;
}

/* A builtin_function_or_method: its module, or the class of a method; a dot; its name. */
static int name_builtin(struct description *of, remote_addr addr)
{
	uint8_t fields[BUILTIN_MODULE_AFTER_TYPE + sizeof(remote_addr)];
	remote_addr name_addr, self_addr, module_addr;
	cleanup_free char *module = NULL;
	char name[NAME_BYTES], owner[NAME_BYTES];
	const char *prefix = NULL;
	struct value_type type;
	int err = read_fields(of, addr, 0, fields, sizeof(fields));

	if (!err)
		err = remote_memory_read_u64(
			of->memory, field_u64(fields, BUILTIN_ML_AFTER_TYPE) + METHOD_DEF_NAME,
			&name_addr);
	if (!err)
		err = read_c_string(of, name_addr, name);
	if (err)
		return err;
	self_addr = field_u64(fields, BUILTIN_SELF_AFTER_TYPE);
	module_addr = field_u64(fields, BUILTIN_MODULE_AFTER_TYPE);
	if (module_addr) {
		err = read_str(of, module_addr, &module);
		prefix = module;
	} else if (self_addr) {
		/* The owner: a type by its own name, another object by its type's. */
		err = value_type_of(of->memory, of->build, self_addr, &type);
		if (!err)
			err = read_type_name(of, type.kind == VALUE_TYPE ? self_addr : type.addr,
					     owner);
		prefix = err ? NULL : owner;
	}
	if (err && !is_unreadable(err))
		return err;
	if (!prefix || (module && strcmp(module, "builtins") == 0))
		return name_it(of, PATH_BUILTIN, "%s", name);
	return name_it(of, PATH_BUILTIN, "%s.%s", prefix, name);
}

/* A method of a type in C: a method_descriptor or the like. */
static int name_descriptor(struct description *of, remote_addr addr)
{
	uint8_t fields[DESCRIPTOR_NAME_AFTER_TYPE + sizeof(remote_addr)];
	cleanup_free char *name = NULL;
	char type_name[NAME_BYTES];
	int err = read_fields(of, addr, 0, fields, sizeof(fields));

	if (!err)
		err = read_type_name(of, field_u64(fields, DESCRIPTOR_TYPE_AFTER_TYPE), type_name);
	if (!err)
		err = read_str(of, field_u64(fields, DESCRIPTOR_NAME_AFTER_TYPE), &name);
	return err ? err : name_it(of, PATH_BUILTIN, "%s.%s", type_name, name);
}

/* A Python function: by its code object. */
static int name_function(struct description *of, remote_addr addr)
{
	const struct py_offsets *offsets = &of->build->offsets;
	uint8_t code[CODE_MAX_BYTES];
	remote_addr code_addr;
	int err = read_fields(of, addr, FUNCTION_CODE_AFTER_TYPE, &code_addr, sizeof(code_addr));

	if (!err)
		err = check_kind(of, code_addr, VALUE_CODE);
	if (!err)
		err = remote_memory_read(of->memory, code_addr, code, code_head_bytes(offsets));
	if (!err)
		err = string_read(of->memory, offsets, field_u64(code, offsets->code.qualname),
				  &of->qualname);
	if (!err)
		err = string_read(of->memory, offsets, field_u64(code, offsets->code.filename),
				  &of->path);
	if (!err)
		of->line = field_u32(code, offsets->code.firstlineno);
	return err;
}

/* A bound method, which PyUnstable_ExecutableKinds has in place of a builtin. */
static int name_method(struct description *of, remote_addr addr)
{
	remote_addr function_addr;
	int err = read_fields(of, addr, METHOD_FUNCTION_AFTER_TYPE, &function_addr,
			      sizeof(function_addr));

	if (err)
		return err;
	err = check_kind(of, function_addr, VALUE_FUNCTION);
	if (!err)
		return name_function(of, function_addr);
	err = check_kind(of, function_addr, VALUE_BUILTIN);
	return err ? err : name_builtin(of, function_addr);
}

/* A tuple (name, file name, line). */
static int name_tuple(struct description *of, remote_addr addr)
{
	enum { NAME, PATH, LINE, NR_ITEMS };
	remote_addr items[NR_ITEMS];
	uint64_t size;
	int err = read_fields(of, addr, TUPLE_SIZE_AFTER_TYPE, &size, sizeof(size));

	if (!err && size != NR_ITEMS)
		err = -EBADMSG;
	if (!err)
		err = read_fields(of, addr, of->build->traits.tuple_items_after_type, items,
				  sizeof(items));
	if (!err)
		err = read_str(of, items[NAME], &of->qualname);
	if (!err)
		err = read_str(of, items[PATH], &of->path);
	if (!err)
		err = check_kind(of, items[LINE], VALUE_INT);
	if (!err)
		err = integer_read(of->memory, &of->build->offsets, items[LINE], &of->line);
	return !err && of->line > INT32_MAX ? -EBADMSG : err;
}

static int (*const namers[NR_VALUE_KINDS])(struct description *of, remote_addr addr) = {
	[VALUE_BUILTIN] = name_builtin, [VALUE_DESCRIPTOR] = name_descriptor,
	[VALUE_METHOD] = name_method,	[VALUE_FUNCTION] = name_function,
	[VALUE_TUPLE] = name_tuple,
};

static void description_done(struct description *of)
{
	free(of->qualname);
	free(of->path);
	of->qualname = of->path = NULL;
}

/*
 * Describe the object at addr. An object that is damaged or unknown is named after its type.
 * Returns 0; -EBADMSG or -EFAULT (there is no object); -ENOMEM, -ESRCH, -EPERM.
 */
static int describe(struct description *of, remote_addr addr)
{
	char type_name[NAME_BYTES];
	struct value_type type;
	int err = value_type_of(of->memory, of->build, addr, &type);

	if (!err)
		err = read_type_name(of, type.addr, type_name);
	if (err)
		return err;
	of->kind = type.kind == VALUE_CODE && type.is_exact   ? EXECUTABLE_CODE
		   : type.kind == VALUE_NONE && type.is_exact ? EXECUTABLE_HIDDEN
							      : EXECUTABLE_NAMED;
	if (of->kind != EXECUTABLE_NAMED)
		return 0;
	err = type.is_exact && namers[type.kind] ? namers[type.kind](of, addr) : -EBADMSG;
	if (!is_unreadable(err))
		return err;
	description_done(of);
	of->line = 0;
	return name_it(of, PATH_UNKNOWN, "<%s>", type_name);
}

/*
 * Read the object of an entry anew. If the description differs, it is another object. After any
 * error the entry is unread.
 */
static int load(struct code_cache *codes, struct code *entry, const struct code_clock *clock)
{
	struct description found = {.memory = codes->memory, .build = codes->build};
	const struct function *function = NULL;
	int err = describe(&found, entry->addr);

	if (!err && found.kind == EXECUTABLE_NAMED) {
		function = function_table_get(codes->functions, FUNCTION_PYTHON, found.qualname,
					      found.path, (int32_t)found.line);
		if (!function)
			err = -ENOMEM;
		else if (function_is_overflow(function))
			err = -E2BIG;
	}
	description_done(&found);
	if (err) {
		found.kind = EXECUTABLE_UNREAD;
		function = NULL;
	}
	if (found.kind != entry->kind || function != entry->function) {
		entry->nr_loads++;
		entry->since_tick = clock->tick;
	}
	entry->kind = found.kind;
	entry->function = function;
	entry->checked = *clock;
	return err;
}

int executable_get(struct code_cache *codes, remote_addr addr, const struct code_clock *clock,
		   struct code **ret_code)
{
	struct code *entry;
	int err = code_entry_get(&codes->executables, MAX_EXECUTABLES, &codes->nr_new_executables,
				 addr, &entry);

	if (err)
		return err;
	entry->is_not_code = true;
	entry->in_use = true;
	if (entry->kind == EXECUTABLE_UNREAD || entry->checked.tick != clock->tick)
		err = load(codes, entry, clock);
	if (err)
		return err;
	/*
	 * The frame ran this object only if it was read before the frame, and has not changed
	 * since.
	 */
	if (clock->frames_are_older && entry->kind == EXECUTABLE_NAMED &&
	    entry->since_tick >= (clock->newer_from_tick ? clock->newer_from_tick : clock->tick))
		return -EAGAIN;
	if (entry->kind == EXECUTABLE_CODE) {
		err = code_cache_get(codes, addr, clock, &entry);
		if (err)
			return err;
	}
	/* None, or the shims' code object of 3.12: never freed, so remembered for good. */
	if (!entry->function ||
	    (!entry->is_not_code && strcmp(entry->function->qualname, TRAMPOLINE_NAME) == 0)) {
		if (!executable_is_hidden(codes, addr))
			codes->hidden_executables[codes->nr_hidden_executables++ %
						  MAX_HIDDEN_EXECUTABLES] = addr;
		entry = NULL;
	}
	*ret_code = entry;
	return 0;
}
