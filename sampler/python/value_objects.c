/* SPDX-License-Identifier: MIT */
/* Types, what is called by a name, and instances with their attributes. */
#include <errno.h>
#include <string.h>

#include "sampler/python/dict.h"
#include "sampler/python/executable_offsets.h"
#include "sampler/python/strings.h"
#include "sampler/python/type_flags.h"
#include "sampler/python/value_offsets.h"
#include "sampler/python/value_parts.h"

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
static int write_name(struct value_writer *writer, remote_addr addr)
{
	if (!value_has_kind(writer, addr, VALUE_STR))
		return -EBADMSG;
	return value_write_name(writer->memory, writer->build, addr, writer->text);
}

/* A field of a type made at run time, in front of its cached keys. */
static int read_heap_field(struct value_writer *writer, remote_addr type_addr, uint32_t before,
			   remote_addr *ret_addr)
{
	return remote_memory_read_u64(writer->memory,
				      type_addr + writer->build->offsets.type.cached_keys - before,
				      ret_addr);
}

/* An error that lets a name be left out; 0 for those. */
static int name_error(int err)
{
	return err == -EBADMSG || err == -EFAULT ? 0 : err;
}

int value_write_type_name(struct value_writer *writer, const struct value_type *type)
{
	char name[C_NAME_BYTES];
	remote_addr name_addr;
	const char *dot;
	int err;

	if (type->is_heap) {
		err = read_heap_field(writer, type->addr, TYPE_NAME_BEFORE_CACHED_KEYS, &name_addr);
		if (!err)
			err = write_name(writer, name_addr);
	} else {
		err = type_name_read(writer->memory, &writer->build->offsets, type->addr, name,
				     sizeof(name));
		dot = err ? NULL : strrchr(name, '.');
		if (!err)
			write_c_name(writer, dot ? dot + 1 : name);
	}
	if (err == -EBADMSG || err == -EFAULT)
		value_text_puts(writer->text, "object");
	return name_error(err);
}

/* The module of a class, and a dot. */
static int write_class_module(struct value_writer *writer, remote_addr addr)
{
	const struct py_offsets *offsets = &writer->build->offsets;
	remote_addr dict_addr, module_addr;
	struct dict dict;
	int err = remote_memory_read_u64(
		writer->memory, addr + offsets->type.flags + TYPE_DICT_AFTER_FLAGS, &dict_addr);

	if (!err)
		err = dict_open(writer->memory, writer->build, dict_addr, &dict);
	if (!err)
		err = dict_find(writer->memory, writer->build, dict, NAMES_MAX_KEYS, "__module__",
				NULL, &module_addr);
	if (!err)
		err = write_name(writer, module_addr);
	if (!err)
		value_text_puts(writer->text, ".");
	return err == -ENOENT ? 0 : name_error(err);
}

int value_write_class(struct value_writer *writer, remote_addr addr)
{
	const struct py_offsets *offsets = &writer->build->offsets;
	char name[C_NAME_BYTES];
	remote_addr name_addr;
	uint64_t flags;
	int err = remote_memory_read_u64(writer->memory, addr + offsets->type.flags, &flags);

	if (err)
		return err;
	if (!(flags & TYPE_HEAP)) {
		err = type_name_read(writer->memory, offsets, addr, name, sizeof(name));
		if (err)
			return err;
		value_text_puts(writer->text, "<class '");
		write_c_name(writer, name);
	} else {
		err = read_heap_field(writer, addr, TYPE_QUALNAME_BEFORE_CACHED_KEYS, &name_addr);
		if (err)
			return err;
		value_text_puts(writer->text, "<class '");
		err = write_class_module(writer, addr);
		if (!err)
			err = write_name(writer, name_addr);
	}
	if (!err)
		value_text_puts(writer->text, "'>");
	return err;
}

int value_write_module(struct value_writer *writer, remote_addr addr)
{
	remote_addr name_addr;
	struct dict dict;
	int err = dict_open_attributes(writer->memory, writer->build, addr, &dict);

	if (!err)
		err = dict_find(writer->memory, writer->build, dict, NAMES_MAX_KEYS, "__name__",
				NULL, &name_addr);
	if (!err && !value_has_kind(writer, name_addr, VALUE_STR))
		err = -EBADMSG;
	if (err)
		return err;
	value_text_puts(writer->text, "<module '");
	err = write_name(writer, name_addr);
	value_text_puts(writer->text, "'>");
	return err;
}

/* The qualified name of the function at addr. */
static int write_qualname(struct value_writer *writer, remote_addr addr)
{
	remote_addr name_addr;
	int err = value_read_field(writer, addr, writer->build->traits.qualname_after_type,
				   &name_addr);

	return err ? err : write_name(writer, name_addr);
}

int value_write_function(struct value_writer *writer, remote_addr addr)
{
	int err;

	value_text_puts(writer->text, "<function ");
	err = write_qualname(writer, addr);
	if (!err)
		value_text_printf(writer->text, " at 0x%llx>", (unsigned long long)addr);
	return err;
}

/* The end of what tells of another object: "list object at 0x…>". */
static int write_other(struct value_writer *writer, remote_addr addr)
{
	struct value_type type;
	int err = value_type_of(writer->memory, writer->build, addr, &type);

	if (err)
		return err;
	err = value_write_type_name(writer, &type);
	value_text_printf(writer->text, " object at 0x%llx>", (unsigned long long)addr);
	return err;
}

int value_write_method(struct value_writer *writer, remote_addr addr)
{
	uint8_t fields[METHOD_SELF_AFTER_TYPE + sizeof(remote_addr)];
	remote_addr function_addr;
	int err = value_read_fields(writer, addr, 0, fields, sizeof(fields));

	if (err)
		return err;
	function_addr = field_u64(fields, METHOD_FUNCTION_AFTER_TYPE);
	value_text_puts(writer->text, "<bound method ");
	if (value_has_kind(writer, function_addr, VALUE_FUNCTION))
		err = write_qualname(writer, function_addr);
	else
		value_text_puts(writer->text, "?");
	value_text_puts(writer->text, " of ");
	return err ? err : write_other(writer, field_u64(fields, METHOD_SELF_AFTER_TYPE));
}

/* A space and the name of a builtin, but where that is a constant that cannot be read. */
static int write_builtin_name(struct value_writer *writer, remote_addr ml_addr)
{
	char name[C_NAME_BYTES] = "";
	remote_addr name_addr;
	int err = remote_memory_read_u64(writer->memory, ml_addr + METHOD_DEF_NAME, &name_addr);

	if (!err)
		err = c_string_read(writer->memory, name_addr, name, sizeof(name));
	if (err)
		return name_error(err);
	value_text_puts(writer->text, " ");
	write_c_name(writer, name);
	return 0;
}

/* Source: meth_repr() of CPython Objects/methodobject.c. */
int value_write_builtin(struct value_writer *writer, remote_addr addr)
{
	uint8_t fields[BUILTIN_SELF_AFTER_TYPE + sizeof(remote_addr)];
	remote_addr self_addr;
	bool has_self;
	int err = value_read_fields(writer, addr, 0, fields, sizeof(fields));

	if (err)
		return err;
	self_addr = field_u64(fields, BUILTIN_SELF_AFTER_TYPE);
	has_self = self_addr && !value_has_kind(writer, self_addr, VALUE_MODULE);
	value_text_puts(writer->text, has_self ? "<built-in method" : "<built-in function");
	err = write_builtin_name(writer, field_u64(fields, BUILTIN_ML_AFTER_TYPE));
	value_text_puts(writer->text, has_self ? " of " : ">");
	return has_self && !err ? write_other(writer, self_addr) : err;
}

/* " name=value". What is no name is left out. */
static int write_attribute(struct value_writer *writer, remote_addr name_addr,
			   remote_addr value_addr)
{
	int err;

	if (!value_has_kind(writer, name_addr, VALUE_STR))
		return 0;
	value_text_puts(writer->text, " ");
	err = write_name(writer, name_addr);
	value_text_puts(writer->text, "=");
	return err ? err : value_write_part(writer, value_addr);
}

/* The attributes that an instance has in a dict, or in values of its own. */
static int write_dict_attributes(struct value_writer *writer, remote_addr addr)
{
	struct dict_walk walk = {.memory = writer->memory, .build = writer->build};
	struct dict_entry entry;
	int err = dict_open_attributes(writer->memory, writer->build, addr, &walk.dict);

	while (!err && !writer->text->is_full) {
		err = dict_next(&walk, &entry);
		if (!err)
			err = write_attribute(writer, entry.key_addr, entry.value_addr);
	}
	return err == -ENOENT ? 0 : err;
}

/* Those slots that are set, of a class whose __slots__ is the tuple at names_addr. */
static int write_slots(struct value_writer *writer, remote_addr first_addr, remote_addr names_addr)
{
	remote_addr names[SLOTS_MAX], values[SLOTS_MAX];
	uint64_t nr_slots;
	int err = value_read_field(writer, names_addr, SIZE_AFTER_TYPE, &nr_slots);

	if (!err && nr_slots > SLOTS_MAX)
		err = -EBADMSG;
	if (!err)
		err = value_read_fields(writer, names_addr,
					writer->build->traits.tuple_items_after_type, names,
					nr_slots * sizeof(*names));
	if (!err)
		err = remote_memory_read(writer->memory, first_addr, values,
					 nr_slots * sizeof(*values));
	for (uint32_t i = 0; !err && i < nr_slots; i++)
		if (values[i])
			err = write_attribute(writer, names[i], values[i]);
	return err;
}

/*
 * The attributes that the class of an instance, and its bases, have slots for: they lie behind what
 * an instance of the base has, in their order.
 */
static int write_slot_attributes(struct value_writer *writer, remote_addr addr,
				 remote_addr type_addr)
{
	const struct py_offsets *offsets = &writer->build->offsets;
	int err = 0;

	for (int i = 0; !err && i < SLOT_CLASSES_MAX; i++) {
		remote_addr names_addr, base_addr = 0;
		uint64_t flags, offset;

		err = remote_memory_read_u64(writer->memory, type_addr + offsets->type.flags,
					     &flags);
		if (err || !(flags & TYPE_HEAP))
			break;
		err = read_heap_field(writer, type_addr, TYPE_SLOTS_BEFORE_CACHED_KEYS,
				      &names_addr);
		if (!err)
			err = remote_memory_read_u64(writer->memory,
						     type_addr + offsets->type.flags +
							     TYPE_BASE_AFTER_FLAGS,
						     &base_addr);
		if (!err)
			err = remote_memory_read_u64(writer->memory,
						     base_addr + offsets->type.basicsize, &offset);
		if (!err && offset > STRUCT_MAX_BYTES)
			err = -EBADMSG;
		if (!err && value_has_kind(writer, names_addr, VALUE_TUPLE))
			err = write_slots(writer, addr + offset, names_addr);
		type_addr = base_addr;
	}
	return err;
}

int value_write_attributes(struct value_writer *writer, remote_addr addr,
			   const struct value_type *type)
{
	int err = write_dict_attributes(writer, addr);

	return err || !type->is_heap ? err : write_slot_attributes(writer, addr, type->addr);
}
