/* SPDX-License-Identifier: MIT */
/* Types, what is called by a name, and instances with their attributes. */
#include <errno.h>
#include <string.h>

#include "sampler/cpython/layout/executable_offsets.h"
#include "sampler/cpython/layout/type_flags.h"
#include "sampler/cpython/layout/value_offsets.h"
#include "sampler/cpython/objects/dict.h"
#include "sampler/cpython/objects/strings.h"
#include "sampler/cpython/objects/value_parts.h"

/* A longer C string is cut: the names of static types have 60 bytes at most. */
enum { C_NAME_BYTES = 128 };

/* So many keys of a class, or a module, are looked at: both have these names early. */
enum { NAMES_MAX_KEYS = 256 };

/* Classes with slots that derive from each other deeper are not followed. */
enum { SLOT_CLASSES_MAX = 16, SLOTS_MAX = 256 };

static void write_c_name(struct value_writer *writer, const char *name)
{
	for (; *name; name++)
		value_text_byte(writer->text, (uint8_t)*name, 0);
}

/* The str at addr as it is, or -EBADMSG if that is none. */
static void write_name(struct value_writer *writer, remote_addr addr)
{
	int err = -EBADMSG;

	if (value_has_kind(writer, addr, VALUE_STR))
		err = value_write_name(writer->memory, writer->build, addr, writer->text);
	(void)value_failed(writer, err);
}

/* A field of a type made at run time, in front of its cached keys. */
static remote_addr read_heap_field(struct value_writer *writer, remote_addr type_addr,
				   uint32_t before)
{
	return value_read_word(writer,
			       type_addr + writer->build->offsets.type.cached_keys - before);
}

/* Have what could not be read be left out. Whether there is such. */
static bool leave_out(struct value_writer *writer)
{
	const int err = writer->text->err;

	if (err != -EBADMSG && err != -EFAULT)
		return false;
	writer->text->err = 0;
	return true;
}

/* Read the name of a static type. False if that fails. */
static bool read_static_name(struct value_writer *writer, remote_addr addr, char name[C_NAME_BYTES])
{
	return !value_failed(writer, type_name_read(writer->memory, &writer->build->offsets, addr,
						    name, C_NAME_BYTES));
}

void value_write_type_name(struct value_writer *writer, const struct value_type *type)
{
	char name[C_NAME_BYTES];

	if (type->is_heap) {
		write_name(writer,
			   read_heap_field(writer, type->addr, TYPE_NAME_BEFORE_CACHED_KEYS));
	} else if (read_static_name(writer, type->addr, name)) {
		const char *dot = strrchr(name, '.');

		write_c_name(writer, dot ? dot + 1 : name);
	}
	if (leave_out(writer))
		value_text_puts(writer->text, "object");
}

/* Find what a class or module calls something. */
static remote_addr find_name(struct value_writer *writer, const struct dict *dict, const char *name)
{
	remote_addr addr = 0;

	(void)value_failed(writer, dict_find(dict, NAMES_MAX_KEYS, name, NULL, &addr));
	return addr;
}

/* The module of a class, and a dot. */
static void write_class_module(struct value_writer *writer, remote_addr addr)
{
	const uint32_t offset = writer->build->offsets.type.flags + TYPE_DICT_AFTER_FLAGS;
	const remote_addr dict_addr = value_read_word(writer, addr + offset);
	struct dict dict;

	if (!value_failed(writer, dict_open(writer->memory, writer->build, dict_addr, &dict))) {
		const remote_addr module_addr = find_name(writer, &dict, "__module__");

		if (!value_failed(writer, 0))
			write_name(writer, module_addr);
	}
	value_text_puts(writer->text, ".");
	if (writer->text->err == -ENOENT)
		writer->text->err = 0;
	(void)leave_out(writer);
}

void value_write_class(struct value_writer *writer, remote_addr addr)
{
	const uint64_t flags = value_read_word(writer, addr + writer->build->offsets.type.flags);
	char name[C_NAME_BYTES];

	if (flags & TYPE_HEAP) {
		const remote_addr name_addr =
			read_heap_field(writer, addr, TYPE_QUALNAME_BEFORE_CACHED_KEYS);

		if (value_failed(writer, 0))
			return;
		value_text_puts(writer->text, "<class '");
		write_class_module(writer, addr);
		write_name(writer, name_addr);
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

	if (value_failed(writer, dict_open_attributes(writer->memory, writer->build, addr, &dict)))
		return;
	name_addr = find_name(writer, &dict, "__name__");
	if (value_failed(writer, value_has_kind(writer, name_addr, VALUE_STR) ? 0 : -EBADMSG))
		return;
	value_text_puts(writer->text, "<module '");
	write_name(writer, name_addr);
	value_text_puts(writer->text, "'>");
}

/* The qualified name of the function at addr. */
static void write_qualname(struct value_writer *writer, remote_addr addr)
{
	write_name(writer,
		   value_read_word(writer, value_fields_addr(writer, addr) +
						   writer->build->traits.qualname_after_type));
}

void value_write_function(struct value_writer *writer, remote_addr addr)
{
	value_text_puts(writer->text, "<function ");
	write_qualname(writer, addr);
	value_text_printf(writer->text, " at 0x%llx>", (unsigned long long)addr);
}

/* The end of what tells of another object: "list object at 0x…>". */
static void write_other(struct value_writer *writer, remote_addr addr)
{
	struct value_type type;

	if (value_failed(writer, value_type_of(writer->memory, writer->build, addr, &type)))
		return;
	value_write_type_name(writer, &type);
	value_text_printf(writer->text, " object at 0x%llx>", (unsigned long long)addr);
}

void value_write_method(struct value_writer *writer, remote_addr addr)
{
	uint8_t fields[METHOD_SELF_AFTER_TYPE + sizeof(remote_addr)];
	remote_addr function_addr;

	value_read(writer, value_fields_addr(writer, addr), fields, sizeof(fields));
	function_addr = field_u64(fields, METHOD_FUNCTION_AFTER_TYPE);
	value_text_puts(writer->text, "<bound method ");
	if (value_has_kind(writer, function_addr, VALUE_FUNCTION))
		write_qualname(writer, function_addr);
	else
		value_text_puts(writer->text, "?");
	value_text_puts(writer->text, " of ");
	if (!value_failed(writer, 0))
		write_other(writer, field_u64(fields, METHOD_SELF_AFTER_TYPE));
}

/* A space and the name of a builtin, but where that is a constant that cannot be read. */
static void write_builtin_name(struct value_writer *writer, remote_addr ml_addr)
{
	const remote_addr name_addr = value_read_word(writer, ml_addr + METHOD_DEF_NAME);
	char name[C_NAME_BYTES] = "";

	if (!value_failed(writer, 0) &&
	    !value_failed(writer, c_string_read(writer->memory, name_addr, name, sizeof(name)))) {
		value_text_puts(writer->text, " ");
		write_c_name(writer, name);
	}
	(void)leave_out(writer);
}

/* Source: meth_repr() of CPython Objects/methodobject.c. */
void value_write_builtin(struct value_writer *writer, remote_addr addr)
{
	uint8_t fields[BUILTIN_SELF_AFTER_TYPE + sizeof(remote_addr)];
	remote_addr self_addr;
	bool has_self;

	value_read(writer, value_fields_addr(writer, addr), fields, sizeof(fields));
	if (value_failed(writer, 0))
		return;
	self_addr = field_u64(fields, BUILTIN_SELF_AFTER_TYPE);
	has_self = self_addr && !value_has_kind(writer, self_addr, VALUE_MODULE);
	value_text_puts(writer->text, has_self ? "<built-in method" : "<built-in function");
	write_builtin_name(writer, field_u64(fields, BUILTIN_ML_AFTER_TYPE));
	value_text_puts(writer->text, has_self ? " of " : ">");
	if (has_self && !value_failed(writer, 0))
		write_other(writer, self_addr);
}

/* " name=value". What is no name is left out. */
static void write_attribute(struct value_writer *writer, remote_addr name_addr,
			    remote_addr value_addr)
{
	if (!value_has_kind(writer, name_addr, VALUE_STR))
		return;
	value_text_puts(writer->text, " ");
	write_name(writer, name_addr);
	value_text_puts(writer->text, "=");
	value_write_part(writer, value_addr);
}

/* The attributes that an instance has in a dict, or in values of its own. */
static void write_dict_attributes(struct value_writer *writer, remote_addr addr)
{
	struct dict_walk walk = {0};
	struct dict_entry entry;
	int err = dict_open_attributes(writer->memory, writer->build, addr, &walk.dict);

	while (!err && !value_text_ended(writer->text)) {
		err = dict_next(&walk, &entry);
		if (!err)
			write_attribute(writer, entry.key_addr, entry.value_addr);
	}
	(void)value_failed(writer, err == -ENOENT ? 0 : err);
}

/* Those slots that are set, of a class whose __slots__ is the tuple at names_addr. */
static void write_slots(struct value_writer *writer, remote_addr first_addr, remote_addr names_addr)
{
	const remote_addr fields_addr = value_fields_addr(writer, names_addr);
	const uint64_t nr_slots = value_read_word(writer, fields_addr + SIZE_AFTER_TYPE);
	remote_addr names[SLOTS_MAX], values[SLOTS_MAX];

	if (value_failed(writer, nr_slots > SLOTS_MAX ? -EBADMSG : 0))
		return;
	value_read(writer, fields_addr + writer->build->traits.tuple_items_after_type, names,
		   nr_slots * sizeof(*names));
	value_read(writer, first_addr, values, nr_slots * sizeof(*values));
	for (uint32_t i = 0; i < nr_slots; i++)
		if (values[i] && !value_failed(writer, 0))
			write_attribute(writer, names[i], values[i]);
}

/*
 * The attributes that the class of an instance, and its bases, have slots for: they lie behind what
 * an instance of the base has, in their order.
 */
static void write_slot_attributes(struct value_writer *writer, remote_addr addr,
				  remote_addr type_addr)
{
	const struct py_offsets *offsets = &writer->build->offsets;

	for (int i = 0; !value_failed(writer, 0) && i < SLOT_CLASSES_MAX; i++) {
		const remote_addr flags_addr = type_addr + offsets->type.flags;
		remote_addr names_addr, base_addr;
		uint64_t offset;

		if (!(value_read_word(writer, flags_addr) & TYPE_HEAP))
			break;
		names_addr = read_heap_field(writer, type_addr, TYPE_SLOTS_BEFORE_CACHED_KEYS);
		base_addr = value_read_word(writer, flags_addr + TYPE_BASE_AFTER_FLAGS);
		offset = value_read_word(writer, base_addr + offsets->type.basicsize);
		if (value_failed(writer, offset > STRUCT_MAX_BYTES ? -EBADMSG : 0))
			break;
		if (value_has_kind(writer, names_addr, VALUE_TUPLE))
			write_slots(writer, addr + offset, names_addr);
		type_addr = base_addr;
	}
}

void value_write_attributes(struct value_writer *writer, remote_addr addr,
			    const struct value_type *type)
{
	write_dict_attributes(writer, addr);
	if (type->is_heap)
		write_slot_attributes(writer, addr, type->addr);
}
