/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/objects/exception.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/cpython/layout/value_offsets.h"
#include "sampler/cpython/objects/strings.h"
#include "sampler/cpython/objects/value_parts.h"

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

static struct arguments read_arguments(struct value_writer *writer, remote_addr addr)
{
	struct arguments arguments = {0};
	remote_addr fields_addr;

	arguments.tuple_addr = value_read_word(writer, value_fields_addr(writer, addr) +
							       EXCEPTION_ARGS_AFTER_TYPE);
	fields_addr = value_fields_addr(writer, arguments.tuple_addr);
	arguments.nr_items = value_read_word(writer, fields_addr + SIZE_AFTER_TYPE);
	if (arguments.nr_items == 1)
		arguments.only_addr = value_read_word(
			writer, fields_addr + writer->build->traits.tuple_items_after_type);
	return arguments;
}

/* Write what str() gives of an object, if it is a str; of others what repr() does. */
static void write_str(struct value_writer *writer, remote_addr addr)
{
	if (value_has_kind(writer, addr, VALUE_STR))
		(void)value_failed(writer, value_write_name(writer->memory, writer->build, addr,
							    writer->text));
	else
		value_write_part(writer, addr);
}

/* Write lead and the path at addr. False if there is none. */
static bool write_path(struct value_writer *writer, const char *lead, remote_addr addr)
{
	if (!addr || value_has_kind(writer, addr, VALUE_NONE))
		return false;
	value_text_puts(writer->text, lead);
	value_write_part(writer, addr);
	return true;
}

/* "[Errno 2] No such file or directory: 'x' -> 'y'"; false if it has no such fields. */
static bool write_os_error(struct value_writer *writer, remote_addr addr)
{
	enum { NUMBER, TEXT, PATH, SECOND_PATH, NR_FIELDS };
	remote_addr fields[NR_FIELDS];

	value_read(writer,
		   value_fields_addr(writer, addr) + writer->build->traits.oserror_errno_after_type,
		   fields, sizeof(fields));
	if (value_failed(writer, 0))
		return true;
	if (!fields[NUMBER] || !fields[TEXT])
		return false;
	value_text_puts(writer->text, "[Errno ");
	write_str(writer, fields[NUMBER]);
	value_text_puts(writer->text, "] ");
	write_str(writer, fields[TEXT]);
	if (write_path(writer, ": ", fields[PATH]))
		(void)write_path(writer, " -> ", fields[SECOND_PATH]);
	return true;
}

static int read_type_name(struct value_writer writer, const struct value_type *type,
			  char **ret_name)
{
	char room[4 * EXCEPTION_TYPE_MAX_CHARS + 1];
	struct value_text text;

	value_text_init(&text, room, EXCEPTION_TYPE_MAX_CHARS);
	writer.text = &text;
	value_write_type_name(&writer, type);
	if (text.err)
		return text.err;
	*ret_name = strdup(room);
	return *ret_name ? 0 : -ENOMEM;
}

static int read_message(struct value_writer writer, const struct value_type *type, remote_addr addr,
			char **ret_message)
{
	char room[4 * EXCEPTION_MESSAGE_MAX_CHARS + 1];
	struct arguments arguments;
	struct value_text text;

	value_text_init(&text, room, EXCEPTION_MESSAGE_MAX_CHARS);
	writer.text = &text;
	arguments = read_arguments(&writer, addr);
	if (arguments.nr_items == 1 && value_has_kind(&writer, arguments.only_addr, VALUE_STR) &&
	    !is_derived(&writer, type->addr, "KeyError"))
		return string_read(writer.memory, &writer.build->offsets, arguments.only_addr,
				   ret_message);
	if ((text.err || !is_derived(&writer, type->addr, "OSError") ||
	     !write_os_error(&writer, addr)) &&
	    arguments.nr_items)
		value_write_part(&writer, arguments.nr_items == 1 ? arguments.only_addr
								  : arguments.tuple_addr);
	if (text.err == -EFAULT || text.err == -EBADMSG) {
		text.err = 0;
		value_write_unreadable(&writer, addr);
	}
	if (text.err)
		return text.err;
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
