/* SPDX-License-Identifier: MIT */
#include "sampler/python/executable_kinds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/python/c_string.h"
#include "sampler/python/executable_offsets.h"
#include "sampler/python/strings.h"
#include "sampler/python/type_flags.h"

#define ELLIPSIS     "\xe2\x80\xa6" /* "…" */
#define PATH_BUILTIN "<built-in>"
#define PATH_UNKNOWN "<extension>"

/* Whether what failed makes only this one object unreadable. */
static bool is_unreadable(int err)
{
	return err == -EBADMSG || err == -EFAULT;
}

/* What an object's type tells. */
struct type {
	remote_addr addr;
	uint64_t flags;
	char name[EXECUTABLE_NAME_MAX_BYTES + sizeof(ELLIPSIS)];
};

/* A thing that is described. */
struct description {
	struct executable_reads *reads;
	const struct py_build *build;
	struct executable_text *text;
};

/* A word of an object, so many bytes behind its type. */
static int read_field(const struct description *of, remote_addr object_addr, uint32_t after_type,
		      uint64_t *ret_value)
{
	const uint64_t type_end = of->build->offsets.object.ob_type + sizeof(remote_addr);

	return remote_memory_read_u64(&of->reads->memory, object_addr + type_end + after_type,
				      ret_value);
}

/* The C string at addr, cut if it is too long. Its own bytes alone are kept as read. */
static int read_c_string(const struct description *of, remote_addr addr,
			 char ret_text[EXECUTABLE_NAME_MAX_BYTES + sizeof(ELLIPSIS)])
{
	char text[EXECUTABLE_NAME_MAX_BYTES + 1];
	size_t length;
	int err = c_string_read(of->reads->source, addr, text, sizeof(text));

	if (err)
		return err;
	length = strlen(text);
	err = remote_memory_read(&of->reads->memory, addr, ret_text,
				 length < EXECUTABLE_NAME_MAX_BYTES ? length + 1 : length);
	ret_text[length] = '\0';
	if (!err && length == EXECUTABLE_NAME_MAX_BYTES)
		memcpy(ret_text + length, ELLIPSIS, sizeof(ELLIPSIS));
	return err;
}

/* The name of the type at addr. */
static int read_type_name(const struct description *of, remote_addr addr,
			  char ret_name[EXECUTABLE_NAME_MAX_BYTES + sizeof(ELLIPSIS)])
{
	remote_addr name_addr;
	int err = (addr % sizeof(uint64_t)) ? -EBADMSG : 0;

	if (!err)
		err = remote_memory_read_u64(&of->reads->memory,
					     addr + of->build->offsets.object.tp_name, &name_addr);
	return err ? err : read_c_string(of, name_addr, ret_name);
}

/*
 * The type of an object. Its flags may change, but not those that are asked for. Where they
 * lie is not known if the debug offsets had to be searched: then a name is believed.
 */
static int read_type(const struct description *of, remote_addr object_addr, struct type *ret_type)
{
	const struct py_offsets *offsets = &of->build->offsets;
	int err = (object_addr % sizeof(uint64_t)) ? -EBADMSG : 0;

	if (!err)
		err = remote_memory_read_u64(
			&of->reads->memory, object_addr + offsets->object.ob_type, &ret_type->addr);
	if (!err)
		err = read_type_name(of, ret_type->addr, ret_type->name);
	ret_type->flags = 0;
	if (!err && offsets->type.flags != OFFSET_ABSENT)
		err = remote_memory_read_u64(
			of->reads->source, ret_type->addr + offsets->type.flags, &ret_type->flags);
	return err;
}

static bool type_is(const struct type *type, const char *name)
{
	return !(type->flags & TYPE_HEAP) && strcmp(type->name, name) == 0;
}

/* Whether the object at addr is of the static type of that name: -EBADMSG if not. */
static int check_type(const struct description *of, remote_addr addr, const char *name)
{
	struct type type;
	int err = read_type(of, addr, &type);

	return err || type_is(&type, name) ? err : -EBADMSG;
}

/* Give the text its name, two strings in one, and its path. 0 or -ENOMEM. */
static int name_it(const struct description *of, const char *first, const char *second,
		   const char *path)
{
	struct executable_text *text = of->text;

	text->kind = EXECUTABLE_NAMED;
	text->path = strdup(path);
	if (asprintf(&text->qualname, "%s%s", first, second) < 0)
		text->qualname = NULL;
	return text->path && text->qualname ? 0 : -ENOMEM;
}

static int name_by_type(const struct description *of, const struct type *type)
{
	char name[sizeof(type->name) + 1];

	(void)snprintf(name, sizeof(name), "<%s", type->name);
	return name_it(of, name, ">", PATH_UNKNOWN);
}

/* The name of the object that a builtin belongs to: its type's, or its own if it is one. */
static int read_owner_name(const struct description *of, remote_addr self_addr,
			   char ret_name[EXECUTABLE_NAME_MAX_BYTES + sizeof(ELLIPSIS)])
{
	struct type type;
	int err = read_type(of, self_addr, &type);

	if (!err && type.flags & TYPE_IS_TYPE)
		return read_type_name(of, self_addr, ret_name);
	if (!err)
		memcpy(ret_name, type.name, sizeof(type.name));
	return err;
}

/* What stands before a builtin's own name: its module, or the class of a method, and a dot. */
static int read_prefix(const struct description *of, remote_addr addr, char **ret_prefix)
{
	char owner[EXECUTABLE_NAME_MAX_BYTES + sizeof(ELLIPSIS)];
	remote_addr module_addr, self_addr;
	cleanup_free char *module = NULL;
	const char *prefix = NULL;
	int err = read_field(of, addr, BUILTIN_MODULE_AFTER_TYPE, &module_addr);

	if (!err)
		err = read_field(of, addr, BUILTIN_SELF_AFTER_TYPE, &self_addr);
	if (err)
		return err;
	if (module_addr && check_type(of, module_addr, "str") == 0) {
		err = string_read(&of->reads->memory, &of->build->offsets, module_addr, &module);
		prefix = !err && strcmp(module, "builtins") != 0 ? module : NULL;
	} else if (!module_addr && self_addr) {
		err = read_owner_name(of, self_addr, owner);
		prefix = err ? NULL : owner;
	}
	if (err && !is_unreadable(err))
		return err;
	return asprintf(ret_prefix, prefix ? "%s." : "%s", prefix ? prefix : "") < 0 ? -ENOMEM : 0;
}

/* A builtin_function_or_method. */
static int name_builtin(const struct description *of, remote_addr addr)
{
	char name[EXECUTABLE_NAME_MAX_BYTES + sizeof(ELLIPSIS)];
	cleanup_free char *prefix = NULL;
	remote_addr ml_addr, name_addr;
	int err = read_field(of, addr, BUILTIN_ML_AFTER_TYPE, &ml_addr);

	if (!err)
		err = remote_memory_read_u64(&of->reads->memory, ml_addr + METHOD_DEF_NAME,
					     &name_addr);
	if (!err)
		err = read_c_string(of, name_addr, name);
	if (!err)
		err = read_prefix(of, addr, &prefix);
	return err ? err : name_it(of, prefix, name, PATH_BUILTIN);
}

/* A method of a type in C: method_descriptor and its like. */
static int name_descriptor(const struct description *of, remote_addr addr)
{
	char type_name[EXECUTABLE_NAME_MAX_BYTES + sizeof(ELLIPSIS)];
	cleanup_free char *prefix = NULL;
	cleanup_free char *name = NULL;
	remote_addr type_addr, name_addr;
	int err = read_field(of, addr, DESCRIPTOR_TYPE_AFTER_TYPE, &type_addr);

	if (!err)
		err = read_type_name(of, type_addr, type_name);
	if (!err)
		err = read_field(of, addr, DESCRIPTOR_NAME_AFTER_TYPE, &name_addr);
	if (!err)
		err = check_type(of, name_addr, "str");
	if (!err)
		err = string_read(&of->reads->memory, &of->build->offsets, name_addr, &name);
	if (!err && asprintf(&prefix, "%s.", type_name) < 0)
		err = -ENOMEM;
	return err ? err : name_it(of, prefix, name, PATH_BUILTIN);
}

/* A function of Python code: by its code object. */
static int name_function(const struct description *of, remote_addr addr)
{
	const struct py_offsets *offsets = &of->build->offsets;
	struct remote_memory *memory = &of->reads->memory;
	remote_addr code_addr, qualname_addr, path_addr;
	int err = read_field(of, addr, FUNCTION_CODE_AFTER_TYPE, &code_addr);

	if (!err)
		err = check_type(of, code_addr, "code");
	if (!err)
		err = remote_memory_read_u64(memory, code_addr + offsets->code.qualname,
					     &qualname_addr);
	if (!err)
		err = remote_memory_read_u64(memory, code_addr + offsets->code.filename,
					     &path_addr);
	if (!err)
		err = remote_memory_read(memory, code_addr + offsets->code.firstlineno,
					 &of->text->line, sizeof(of->text->line));
	if (!err)
		err = string_read(memory, offsets, qualname_addr, &of->text->qualname);
	if (!err)
		err = string_read(memory, offsets, path_addr, &of->text->path);
	of->text->kind = EXECUTABLE_NAMED;
	return err;
}

/* A bound method, which the table of kinds has in place of a builtin. */
static int name_method(const struct description *of, remote_addr addr)
{
	remote_addr function_addr;
	struct type type;
	int err = read_field(of, addr, METHOD_FUNCTION_AFTER_TYPE, &function_addr);

	if (!err)
		err = read_type(of, function_addr, &type);
	if (err)
		return err;
	if (type_is(&type, "function"))
		return name_function(of, function_addr);
	if (type_is(&type, "builtin_function_or_method"))
		return name_builtin(of, function_addr);
	return -EBADMSG;
}

/* A small int that is not negative. It may be the last thing in a mapping. */
static int read_line(const struct description *of, remote_addr addr, int32_t *ret_line)
{
	enum { DIGIT_BITS = 30, MAX_DIGITS = 2, SIGN_BITS = 3 };
	const struct py_offsets *offsets = &of->build->offsets;
	uint32_t digits[MAX_DIGITS] = {0};
	uint64_t size, line;
	int err = check_type(of, addr, "int");

	if (!err)
		err = remote_memory_read_u64(&of->reads->memory, addr + offsets->integer.size,
					     &size);
	if (err)
		return err;
	/* Below the count is the sign, 0 for what is above 0 and 1 for 0, and one bit more. */
	if (offsets->integer.size_shift && size & SIGN_BITS && size >> offsets->integer.size_shift)
		return -EBADMSG;
	size >>= offsets->integer.size_shift;
	if (size > MAX_DIGITS)
		return -EBADMSG;
	err = remote_memory_read(&of->reads->memory, addr + offsets->integer.digits, digits,
				 size * sizeof(*digits));
	line = digits[0] | (uint64_t)digits[1] << DIGIT_BITS;
	if (err || line > INT32_MAX)
		return err ? err : -EBADMSG;
	*ret_line = (int32_t)line;
	return 0;
}

/* Read the str object at addr. */
static int read_str(const struct description *of, remote_addr addr, char **ret_text)
{
	int err = check_type(of, addr, "str");

	return err ? err : string_read(&of->reads->memory, &of->build->offsets, addr, ret_text);
}

/* A tuple (name, file name, line). */
static int name_tuple(const struct description *of, remote_addr addr)
{
	enum { NAME, PATH, LINE, NR_ITEMS };
	const uint32_t first = of->build->traits.tuple_items_after_type;
	remote_addr items[NR_ITEMS];
	uint64_t size;
	int err = read_field(of, addr, TUPLE_SIZE_AFTER_TYPE, &size);

	if (!err && size != NR_ITEMS)
		err = -EBADMSG;
	for (uint32_t i = 0; !err && i < NR_ITEMS; i++)
		err = read_field(of, addr, first + i * (uint32_t)sizeof(items[i]), &items[i]);
	if (!err)
		err = read_str(of, items[NAME], &of->text->qualname);
	if (!err)
		err = read_str(of, items[PATH], &of->text->path);
	if (!err)
		err = read_line(of, items[LINE], &of->text->line);
	of->text->kind = EXECUTABLE_NAMED;
	return err;
}

static const struct {
	const char *type_name;
	int (*name)(const struct description *of, remote_addr addr);
} named_kinds[] = {
	{"builtin_function_or_method", name_builtin},
	{"method_descriptor", name_descriptor},
	{"classmethod_descriptor", name_descriptor},
	{"wrapper_descriptor", name_descriptor},
	{"method", name_method},
	{"function", name_function},
	{"tuple", name_tuple},
};

static int describe(const struct description *of, remote_addr addr, const struct type *type)
{
	enum { NR_KINDS = sizeof(named_kinds) / sizeof(*named_kinds) };
	int err = -EBADMSG;

	if (type_is(type, "NoneType") || type_is(type, "code")) {
		of->text->kind = type_is(type, "code") ? EXECUTABLE_CODE : EXECUTABLE_NOTHING;
		return 0;
	}
	for (size_t i = 0; i < NR_KINDS; i++)
		if (type_is(type, named_kinds[i].type_name))
			err = named_kinds[i].name(of, addr);
	if (!is_unreadable(err))
		return err;
	executable_text_done(of->text);
	return name_by_type(of, type);
}

int executable_describe(struct executable_reads *reads, const struct py_build *build,
			remote_addr addr, struct executable_text *ret_text)
{
	struct executable_text text = {0};
	const struct description of = {.reads = reads, .build = build, .text = &text};
	struct type type;
	int err = read_type(&of, addr, &type);

	if (!err)
		err = describe(&of, addr, &type);
	if (err) {
		executable_text_done(&text);
		return err;
	}
	*ret_text = text;
	return 0;
}

void executable_text_done(struct executable_text *text)
{
	free(text->qualname);
	free(text->path);
	*text = (struct executable_text){0};
}
