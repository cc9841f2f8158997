/* SPDX-License-Identifier: MIT */
#include "sampler/python/exception.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/python/strings.h"
#include "sampler/python/value_offsets.h"
#include "sampler/python/value_parts.h"

/* Exceptions are not derived deeper; what is goes in a circle. */
enum { BASES_MAX = 64 };

/* What it was made with. */
struct arguments {
	remote_addr tuple_addr;
	uint64_t nr_items;
	remote_addr only_addr; /* of the one that there is; else 0 */
};

/* Whether the type at addr is called name, or derived from one that is. */
static bool is_derived(struct value_writer *writer, remote_addr addr, const char *name)
{
	const struct py_offsets *offsets = &writer->build->offsets;
	char text[16];

	for (int i = 0; i < BASES_MAX && addr; i++) {
		if (type_name_read(writer->memory, offsets, addr, text, sizeof(text)) == 0 &&
		    strcmp(text, name) == 0)
			return true;
		if (remote_memory_read_u64(writer->memory,
					   addr + offsets->type.flags + TYPE_BASE_AFTER_FLAGS,
					   &addr) != 0)
			return false;
	}
	return false;
}

static int read_arguments(struct value_writer *writer, remote_addr addr,
			  struct arguments *ret_arguments)
{
	struct arguments arguments = {0};
	int err = value_read_field(writer, addr, EXCEPTION_ARGS_AFTER_TYPE, &arguments.tuple_addr);

	if (!err)
		err = value_read_field(writer, arguments.tuple_addr, SIZE_AFTER_TYPE,
				       &arguments.nr_items);
	if (!err && arguments.nr_items == 1)
		err = value_read_field(writer, arguments.tuple_addr,
				       writer->build->traits.tuple_items_after_type,
				       &arguments.only_addr);
	if (!err)
		*ret_arguments = arguments;
	return err;
}

/* Write what str() gives of an object, if it is a str; of others what repr() does. */
static int write_str(struct value_writer *writer, remote_addr addr)
{
	if (value_has_kind(writer, addr, VALUE_STR))
		return value_write_name(writer->memory, writer->build, addr, writer->text);
	return value_write_part(writer, addr);
}

/* Behind "[Errno …] …": ": 'x'", ": 'x' -> 'y'", or nothing. */
static int write_paths(struct value_writer *writer, remote_addr path_addr, remote_addr second_addr)
{
	int err;

	if (!path_addr || value_has_kind(writer, path_addr, VALUE_NONE))
		return 0;
	value_text_puts(writer->text, ": ");
	err = value_write_part(writer, path_addr);
	if (err || !second_addr || value_has_kind(writer, second_addr, VALUE_NONE))
		return err;
	value_text_puts(writer->text, " -> ");
	return value_write_part(writer, second_addr);
}

/* "[Errno 2] No such file or directory: 'x'"; -ENOENT if it has no such fields. */
static int write_os_error(struct value_writer *writer, remote_addr addr)
{
	enum { NUMBER, TEXT, PATH, SECOND_PATH, NR_FIELDS };
	remote_addr fields[NR_FIELDS];
	int err = value_read_fields(writer, addr, writer->build->traits.oserror_errno_after_type,
				    fields, sizeof(fields));

	if (err || !fields[NUMBER] || !fields[TEXT])
		return err ? err : -ENOENT;
	value_text_puts(writer->text, "[Errno ");
	err = write_str(writer, fields[NUMBER]);
	value_text_puts(writer->text, "] ");
	if (!err)
		err = write_str(writer, fields[TEXT]);
	return err ? err : write_paths(writer, fields[PATH], fields[SECOND_PATH]);
}

/* Write the message of an exception that has not exactly one str as argument. */
static int write_message(struct value_writer *writer, const struct value_type *type,
			 remote_addr addr, const struct arguments *arguments)
{
	int err = -ENOENT;

	if (is_derived(writer, type->addr, "OSError"))
		err = write_os_error(writer, addr);
	if (err != -ENOENT)
		return err;
	if (arguments->nr_items == 0)
		return 0;
	return value_write_part(writer, arguments->nr_items == 1 ? arguments->only_addr
								 : arguments->tuple_addr);
}

static int read_type_name(struct value_writer writer, const struct value_type *type,
			  char **ret_name)
{
	char room[4 * EXCEPTION_TYPE_MAX_CHARS + 1];
	struct value_text text;
	int err;

	value_text_init(&text, room, EXCEPTION_TYPE_MAX_CHARS);
	writer.text = &text;
	err = value_write_type_name(&writer, type);
	if (err)
		return err;
	*ret_name = strdup(room);
	return *ret_name ? 0 : -ENOMEM;
}

static int read_message(struct value_writer writer, const struct value_type *type, remote_addr addr,
			char **ret_message)
{
	char room[4 * EXCEPTION_MESSAGE_MAX_CHARS + 1];
	struct arguments arguments = {0};
	struct value_text text;
	int err = read_arguments(&writer, addr, &arguments);

	if (!err && arguments.nr_items == 1 &&
	    value_has_kind(&writer, arguments.only_addr, VALUE_STR) &&
	    !is_derived(&writer, type->addr, "KeyError"))
		return string_read(writer.memory, &writer.build->offsets, arguments.only_addr,
				   ret_message);
	value_text_init(&text, room, EXCEPTION_MESSAGE_MAX_CHARS);
	writer.text = &text;
	if (!err)
		err = write_message(&writer, type, addr, &arguments);
	if (err == -EFAULT || err == -EBADMSG) {
		value_write_unreadable(&writer, addr);
		err = 0;
	}
	if (err)
		return err;
	*ret_message = strdup(room);
	return *ret_message ? 0 : -ENOMEM;
}

int exception_text_read(struct remote_memory *memory, const struct py_build *build,
			remote_addr addr, struct exception_text *ret_text)
{
	/*
	 * A message is shown unasked: of the objects in it the type alone, as what they have is
	 * not.
	 */
	const struct value_writer writer = {.memory = memory, .build = build, .in_object = true};
	struct exception_text text = {0};
	struct value_type type;
	int err = value_type_of(memory, build, addr, &type);

	if (!err && type.kind != VALUE_EXCEPTION)
		err = -EBADMSG;
	if (!err)
		err = read_type_name(writer, &type, &text.type_name);
	if (!err)
		err = read_message(writer, &type, addr, &text.message);
	if (err) {
		exception_text_done(&text);
		return err;
	}
	*ret_text = text;
	return 0;
}

void exception_text_done(struct exception_text *text)
{
	free(text->type_name);
	free(text->message);
	*text = (struct exception_text){0};
}
