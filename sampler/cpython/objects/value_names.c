/* SPDX-License-Identifier: MIT */
/* Writes objects that are shown by name: classes, modules, functions and methods. */
#include <errno.h>
#include <string.h>

#include "sampler/cpython/objects/dict.h"
#include "sampler/cpython/objects/value_writer.h"

enum {
	/* Longer C strings are cut; names of static types have at most 60 bytes. */
	C_NAME_BYTES = 128,
	/* Keys of a class or module that are searched; both have these names early. */
	NAMES_MAX_KEYS = 256,
};

static void write_c_name(struct value_writer *writer, const char *name)
{
	for (; *name; name++)
		value_text_byte(writer->text, (uint8_t)*name, 0);
}

void value_write_checked_chars(struct value_writer *writer, remote_addr addr)
{
	if (!writer_failed(writer, writer_has_kind(writer, addr, VALUE_STR) ? 0 : -EBADMSG))
		value_write_chars(writer, addr);
}

/* Clear the error of a part that could not be read. Returns whether there was one. */
static bool clear_unreadable(struct value_writer *writer)
{
	const int err = writer->text->err;

	if (err != -EBADMSG && err != -EFAULT)
		return false;
	writer->text->err = 0;
	return true;
}

/* Read the name of a static type. Returns false if that fails. */
static bool read_static_name(struct value_writer *writer, remote_addr addr, char name[C_NAME_BYTES])
{
	return !writer_failed(
		writer, type_name_read(writer->memory, writer->offsets, addr, name, C_NAME_BYTES));
}

void value_write_type_name(struct value_writer *writer, const struct value_type *type)
{
	char name[C_NAME_BYTES];

	if (type->is_heap) {
		value_write_checked_chars(writer, writer_heap_field(writer, type->addr,
								    TYPE_NAME_BEFORE_CACHED_KEYS));
	} else if (read_static_name(writer, type->addr, name)) {
		const char *dot = strrchr(name, '.');

		write_c_name(writer, dot ? dot + 1 : name);
	}
	if (clear_unreadable(writer))
		value_text_puts(writer->text, "object");
}

/* Write the module of a class, and a dot. */
static void write_class_module(struct value_writer *writer, remote_addr addr)
{
	const uint32_t offset = writer->offsets->type.flags + TYPE_DICT_AFTER_FLAGS;
	const remote_addr dict_addr = writer_word(writer, addr + offset);
	remote_addr module_addr;
	struct dict dict;

	if (!writer_failed(writer, dict_open(writer->memory, writer->build, dict_addr, &dict)) &&
	    !writer_failed(writer,
			   dict_find(&dict, NAMES_MAX_KEYS, "__module__", NULL, &module_addr)))
		value_write_checked_chars(writer, module_addr);
	value_text_puts(writer->text, ".");
	if (writer->text->err == -ENOENT)
		writer->text->err = 0;
	(void)clear_unreadable(writer);
}

void value_write_class(struct value_writer *writer, remote_addr addr)
{
	const uint64_t flags = writer_word(writer, addr + writer->offsets->type.flags);
	char name[C_NAME_BYTES];

	if (flags & TYPE_HEAP) {
		const remote_addr name_addr =
			writer_heap_field(writer, addr, TYPE_QUALNAME_BEFORE_CACHED_KEYS);

		if (writer_failed(writer, 0))
			return;
		value_text_puts(writer->text, "<class '");
		write_class_module(writer, addr);
		value_write_checked_chars(writer, name_addr);
	} else if (read_static_name(writer, addr, name)) {
		value_text_puts(writer->text, "<class '");
		write_c_name(writer, name);
	}
	value_text_puts(writer->text, "'>");
}

void value_write_module(struct value_writer *writer, remote_addr addr)
{
	remote_addr name_addr;
	struct dict dict;

	if (writer_failed(writer,
			  dict_open_attributes(writer->memory, writer->build, addr, &dict)) ||
	    writer_failed(writer, dict_find(&dict, NAMES_MAX_KEYS, "__name__", NULL, &name_addr)) ||
	    writer_failed(writer, writer_has_kind(writer, name_addr, VALUE_STR) ? 0 : -EBADMSG))
		return;
	value_text_puts(writer->text, "<module '");
	value_write_chars(writer, name_addr);
	value_text_puts(writer->text, "'>");
}

/* Write the qualified name of the function at addr. */
static void write_qualname(struct value_writer *writer, remote_addr addr)
{
	value_write_checked_chars(
		writer, writer_word(writer, writer_fields(writer, addr) +
						    writer->build->traits.qualname_after_type));
}

void value_write_function(struct value_writer *writer, remote_addr addr)
{
	value_text_puts(writer->text, "<function ");
	write_qualname(writer, addr);
	value_text_printf(writer->text, " at 0x%llx>", (unsigned long long)addr);
}

/* Write the end of a description that refers to another object: "list object at 0x…>". */
static void write_other(struct value_writer *writer, remote_addr addr)
{
	struct value_type type;

	if (writer_failed(writer, value_type_of(writer->memory, writer->build, addr, &type)))
		return;
	value_write_type_name(writer, &type);
	value_text_printf(writer->text, " object at 0x%llx>", (unsigned long long)addr);
}

void value_write_method(struct value_writer *writer, remote_addr addr)
{
	uint8_t fields[METHOD_SELF_AFTER_TYPE + sizeof(remote_addr)];
	remote_addr function_addr;

	writer_read(writer, writer_fields(writer, addr), fields, sizeof(fields));
	function_addr = field_u64(fields, METHOD_FUNCTION_AFTER_TYPE);
	value_text_puts(writer->text, "<bound method ");
	if (writer_has_kind(writer, function_addr, VALUE_FUNCTION))
		write_qualname(writer, function_addr);
	else
		value_text_puts(writer->text, "?");
	value_text_puts(writer->text, " of ");
	if (!writer_failed(writer, 0))
		write_other(writer, field_u64(fields, METHOD_SELF_AFTER_TYPE));
}

/*
 * The name is a constant of a file; it is left out if it cannot be read.
 *
 * Source: meth_repr() of CPython Objects/methodobject.c.
 */
void value_write_builtin(struct value_writer *writer, remote_addr addr)
{
	uint8_t fields[BUILTIN_SELF_AFTER_TYPE + sizeof(remote_addr)];
	remote_addr self_addr, name_addr;
	char name[C_NAME_BYTES];
	bool has_self;

	writer_read(writer, writer_fields(writer, addr), fields, sizeof(fields));
	if (writer_failed(writer, 0))
		return;
	self_addr = field_u64(fields, BUILTIN_SELF_AFTER_TYPE);
	has_self = self_addr && !writer_has_kind(writer, self_addr, VALUE_MODULE);
	value_text_puts(writer->text, has_self ? "<built-in method" : "<built-in function");
	name_addr = writer_word(writer, field_u64(fields, BUILTIN_ML_AFTER_TYPE) + METHOD_DEF_NAME);
	if (!writer_failed(writer, 0) &&
	    !writer_failed(writer, c_string_read(writer->memory, name_addr, name, sizeof(name)))) {
		value_text_puts(writer->text, " ");
		write_c_name(writer, name);
	}
	(void)clear_unreadable(writer);
	value_text_puts(writer->text, has_self ? " of " : ">");
	if (has_self && !writer_failed(writer, 0))
		write_other(writer, self_addr);
}
