/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/objects/exception_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/cpython/objects/value_writer.h"

/* Limit on base classes of exceptions; a longer chain is a cycle. */
enum { BASES_MAX = 64 };

/* Whether the type at addr is called name, or derives from one that is. */
static bool is_derived(struct value_writer *writer, remote_addr addr, const char *name)
{
	const uint32_t base_offset = writer->offsets->type.flags + TYPE_BASE_AFTER_FLAGS;
	char text[16];

	for (int i = 0; i < BASES_MAX && addr; i++) {
		if (!type_name_read(writer->memory, writer->offsets, addr, text, sizeof(text)) &&
		    strcmp(text, name) == 0)
			return true;
		if (remote_memory_read_u64(writer->memory, addr + base_offset, &addr) != 0)
			return false;
	}
	return false;
}

/* Write a str as str() does, other objects as repr() does. */
static void write_as_str(struct value_writer *writer, remote_addr addr)
{
	if (writer_has_kind(writer, addr, VALUE_STR))
		value_write_chars(writer, addr);
	else
		value_write_part(writer, addr);
}

/* Write lead and the path at addr. Returns false if there is none. */
static bool write_path(struct value_writer *writer, const char *lead, remote_addr addr)
{
	if (!addr || writer_has_kind(writer, addr, VALUE_NONE))
		return false;
	value_text_puts(writer->text, lead);
	value_write_part(writer, addr);
	return true;
}

/*
 * Write "[Errno 2] No such file or directory: 'x' -> 'y'". Returns false if it lacks those fields.
 */
static bool write_os_error(struct value_writer *writer, remote_addr addr)
{
	enum { NUMBER, TEXT, PATH, SECOND_PATH, NR_FIELDS };
	remote_addr fields[NR_FIELDS];

	writer_read(writer,
		    writer_fields(writer, addr) + writer->build->traits.oserror_errno_after_type,
		    fields, sizeof(fields));
	if (writer_failed(writer, 0))
		return true;
	if (!fields[NUMBER] || !fields[TEXT])
		return false;
	value_text_puts(writer->text, "[Errno ");
	write_as_str(writer, fields[NUMBER]);
	value_text_puts(writer->text, "] ");
	write_as_str(writer, fields[TEXT]);
	if (write_path(writer, ": ", fields[PATH]))
		(void)write_path(writer, " -> ", fields[SECOND_PATH]);
	return true;
}

/* Copy a finished text. Returns 0, -ENOMEM, or the error of the text. */
static int keep_text(const struct value_text *text, char **ret_text)
{
	if (text->err)
		return text->err;
	*ret_text = strdup(text->bytes);
	return *ret_text ? 0 : -ENOMEM;
}

static int read_message(struct value_writer *writer, const struct value_type *type,
			remote_addr addr, char **ret_message)
{
	char room[4 * EXCEPTION_MESSAGE_MAX_CHARS + 1];
	struct value_text *text = writer->text;
	remote_addr args_addr, fields_addr;
	uint64_t nr_items;

	value_text_init(text, room, EXCEPTION_MESSAGE_MAX_CHARS);
	args_addr = writer_word(writer, writer_fields(writer, addr) + EXCEPTION_ARGS_AFTER_TYPE);
	fields_addr = writer_fields(writer, args_addr);
	nr_items = writer_word(writer, fields_addr + SIZE_AFTER_TYPE);
	if (nr_items == 1)
		args_addr = writer_word(writer,
					fields_addr + writer->build->traits.tuple_items_after_type);
	if (nr_items == 1 && writer_has_kind(writer, args_addr, VALUE_STR) &&
	    !is_derived(writer, type->addr, "KeyError"))
		return string_read(writer->memory, writer->offsets, args_addr, ret_message);
	if ((text->err || !is_derived(writer, type->addr, "OSError") ||
	     !write_os_error(writer, addr)) &&
	    nr_items)
		value_write_part(writer, args_addr);
	if (text->err == -EFAULT || text->err == -EBADMSG) {
		text->err = 0;
		value_write_unreadable(writer, addr);
	}
	return keep_text(text, ret_message);
}

int exception_text_read(struct remote_memory *memory, const struct py_build *build,
			remote_addr addr, struct exception_text *ret_text)
{
	struct value_text written;
	/*
	 * A message is shown without being requested, so it does not reveal attributes: other
	 * objects are written by type alone.
	 */
	struct value_writer writer = {
		.memory = memory,
		.build = build,
		.offsets = &build->offsets,
		.text = &written,
		.in_object = true,
	};
	char room[4 * EXCEPTION_TYPE_MAX_CHARS + 1];
	struct exception_text text = {0};
	struct value_type type;
	int err = value_type_of(memory, build, addr, &type);

	if (!err && type.kind != VALUE_EXCEPTION)
		err = -EBADMSG;
	if (err)
		return err;
	value_text_init(&written, room, EXCEPTION_TYPE_MAX_CHARS);
	value_write_type_name(&writer, &type);
	err = keep_text(&written, &text.type_name);
	if (!err)
		err = read_message(&writer, &type, addr, &text.message);
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
