/* SPDX-License-Identifier: MIT */
#include "sampler/python/value.h"

#include <errno.h>
#include <string.h>

#include "sampler/python/dict.h"
#include "sampler/python/floating.h"
#include "sampler/python/integer.h"
#include "sampler/python/set.h"
#include "sampler/python/strings.h"
#include "sampler/python/value_offsets.h"
#include "sampler/python/value_parts.h"

/* So many items of a list or tuple are read at a time. */
enum { PIECE_ITEMS = 64 };

/* Quotes are looked for among so many characters; repr() looks at all, be they millions. */
enum { QUOTES_MAX_CHARS = 4096 };

int value_read_fields(struct value_writer *writer, remote_addr addr, uint32_t after_type,
		      void *ret_fields, size_t size)
{
	const uint64_t type_end = writer->build->offsets.object.ob_type + sizeof(remote_addr);

	return remote_memory_read(writer->memory, addr + type_end + after_type, ret_fields, size);
}

int value_read_field(struct value_writer *writer, remote_addr addr, uint32_t after_type,
		     uint64_t *ret_value)
{
	return value_read_fields(writer, addr, after_type, ret_value, sizeof(*ret_value));
}

bool value_has_kind(struct value_writer *writer, remote_addr addr, enum value_kind kind)
{
	struct value_type type;

	return addr && value_type_of(writer->memory, writer->build, addr, &type) == 0 &&
	       type.kind == kind;
}

void value_write_unreadable(struct value_writer *writer, remote_addr addr)
{
	value_text_printf(writer->text, "<not readable at 0x%llx>", (unsigned long long)addr);
}

/* What an error means that came of the part at addr: written, and 0, or one to hand on. */
static int write_error(struct value_writer *writer, int err, remote_addr addr)
{
	switch (err) {
	case -E2BIG:
		value_text_cut(writer->text);
		return 0;
	case -EFAULT:
	case -EBADMSG:
	case -ENOENT:
		value_write_unreadable(writer, addr);
		return 0;
	default:
		return err;
	}
}

static int write_bool(struct value_writer *writer, remote_addr addr)
{
	uint64_t value;
	int err = integer_read(writer->memory, &writer->build->offsets, addr, &value);

	if (!err && value > 1)
		err = -EBADMSG;
	if (!err)
		value_text_puts(writer->text, value ? "True" : "False");
	return err;
}

static int write_int(struct value_writer *writer, remote_addr addr)
{
	return integer_write(writer->memory, &writer->build->offsets, addr, writer->text);
}

static int write_float(struct value_writer *writer, remote_addr addr)
{
	char number[FLOAT_TEXT_BYTES];
	double value;
	int err = value_read_fields(writer, addr, FLOAT_AFTER_TYPE, &value, sizeof(value));

	if (err)
		return err;
	float_format(value, ".0", number);
	value_text_puts(writer->text, number);
	return 0;
}

/* Source: complex_repr() of CPython Objects/complexobject.c. */
static int write_complex(struct value_writer *writer, remote_addr addr)
{
	char real[FLOAT_TEXT_BYTES], imaginary[FLOAT_TEXT_BYTES];
	double parts[2];
	int err = value_read_fields(writer, addr, FLOAT_AFTER_TYPE, parts, sizeof(parts));

	if (err)
		return err;
	float_format(parts[0], "", real);
	float_format(parts[1], "", imaginary);
	if (strcmp(real, "0") == 0)
		value_text_printf(writer->text, "%sj", imaginary);
	else
		value_text_printf(writer->text, "(%s%s%sj)", real, imaginary[0] == '-' ? "" : "+",
				  imaginary);
	return 0;
}

/* How many characters or bytes come next. */
static size_t piece_of(uint64_t from, uint64_t end, size_t max)
{
	return end - from < max ? (size_t)(end - from) : max;
}

/*
 * The quotes that repr() would put around the first characters of a text, which string_chars() reads
 * of bytes as well.
 */
static int find_quote(struct value_writer *writer, const struct remote_text *text, char *ret_quote)
{
	const uint64_t end = piece_of(0, text->nr_chars, QUOTES_MAX_CHARS);
	uint32_t chars[STRING_PIECE_CHARS];
	bool has_single = false, has_double = false;
	size_t nr;

	for (uint64_t i = 0; i < end; i += nr) {
		int err;

		nr = piece_of(i, end, STRING_PIECE_CHARS);
		err = string_chars(writer->memory, text, i, nr, chars);
		if (err)
			return err;
		for (size_t k = 0; k < nr; k++) {
			has_single |= chars[k] == '\'';
			has_double |= chars[k] == '"';
		}
	}
	*ret_quote = has_single && !has_double ? '"' : '\'';
	return 0;
}

/* The characters of a text, or its bytes, in quotes of that kind or none (0). */
static int write_chars(struct remote_memory *memory, const struct remote_text *from, char quote,
		       bool is_bytes, struct value_text *text)
{
	uint32_t chars[STRING_PIECE_CHARS];
	size_t nr;

	for (uint64_t i = 0; i < from->nr_chars && !text->is_full; i += nr) {
		int err;

		nr = piece_of(i, from->nr_chars, STRING_PIECE_CHARS);
		err = string_chars(memory, from, i, nr, chars);
		if (err)
			return err;
		for (size_t k = 0; k < nr; k++)
			if (is_bytes)
				value_text_byte(text, (uint8_t)chars[k], quote);
			else
				value_text_escaped(text, chars[k], quote);
	}
	return 0;
}

/* The repr() of a str, or of bytes. */
static int write_quoted(struct value_writer *writer, const struct remote_text *from, bool is_bytes)
{
	char quote;
	int err = find_quote(writer, from, &quote);

	if (err)
		return err;
	value_text_printf(writer->text, is_bytes ? "b%c" : "%c", quote);
	err = write_chars(writer->memory, from, quote, is_bytes, writer->text);
	if (!err)
		value_text_char(writer->text, (uint8_t)quote);
	return err;
}

int value_write_name(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		     struct value_text *text)
{
	struct remote_text chars;
	int err = string_find(memory, &build->offsets, addr, &chars);

	return err ? err : write_chars(memory, &chars, 0, false, text);
}

static int write_str(struct value_writer *writer, remote_addr addr)
{
	struct remote_text chars;
	int err = string_find(writer->memory, &writer->build->offsets, addr, &chars);

	return err ? err : write_quoted(writer, &chars, false);
}

/* Bytes that lie at addr; so many as no memory can hold are damage. */
static int find_bytes(remote_addr addr, uint64_t nr_bytes, struct remote_text *ret_bytes)
{
	remote_addr end;

	if (nr_bytes > INT64_MAX || __builtin_add_overflow(addr, nr_bytes, &end))
		return -EBADMSG;
	*ret_bytes = (struct remote_text){.addr = addr, .nr_chars = nr_bytes, .char_bytes = 1};
	return 0;
}

static int write_bytes(struct value_writer *writer, remote_addr addr)
{
	struct remote_text bytes;
	uint64_t nr_bytes;
	int err = value_read_field(writer, addr, SIZE_AFTER_TYPE, &nr_bytes);

	if (!err)
		err = find_bytes(addr + writer->build->offsets.bytes.ob_sval, nr_bytes, &bytes);
	return err ? err : write_quoted(writer, &bytes, true);
}

static int write_bytearray(struct value_writer *writer, remote_addr addr)
{
	uint8_t fields[BYTEARRAY_START_AFTER_TYPE + sizeof(remote_addr)];
	struct remote_text bytes;
	int err = value_read_fields(writer, addr, 0, fields, sizeof(fields));

	if (!err)
		err = find_bytes(field_u64(fields, BYTEARRAY_START_AFTER_TYPE),
				 field_u64(fields, SIZE_AFTER_TYPE), &bytes);
	if (err)
		return err;
	value_text_puts(writer->text, "bytearray(");
	err = write_quoted(writer, &bytes, true);
	if (!err)
		value_text_puts(writer->text, ")");
	return err;
}

/* What stands around what is in a container, or for it where it is in itself or too deep. */
struct brackets {
	const char *opening, *closing, *instead;
};

/* Begin the container at addr; false if it is not to be looked into. */
static bool enter(struct value_writer *writer, remote_addr addr, const struct brackets *brackets)
{
	bool is_open = writer->depth == VALUE_MAX_DEPTH;

	for (unsigned int i = 0; i < writer->depth; i++)
		is_open |= writer->open[i] == addr;
	value_text_puts(writer->text, is_open ? brackets->instead : brackets->opening);
	if (!is_open)
		writer->open[writer->depth++] = addr;
	return !is_open;
}

static void leave(struct value_writer *writer, const struct brackets *brackets)
{
	value_text_puts(writer->text, brackets->closing);
	writer->depth--;
}

/* What comes before an item, of which so many have been written. */
static void write_comma(struct value_writer *writer, uint64_t nr_written)
{
	if (nr_written)
		value_text_puts(writer->text, ", ");
}

/* Say that the container at addr, of which so many items were written, has more or others. */
static int write_lack(struct value_writer *writer, int err, uint64_t nr_written, remote_addr addr)
{
	if (err != -E2BIG)
		write_comma(writer, nr_written);
	return write_error(writer, err, addr);
}

/* The list or tuple at addr: nr objects, whose addresses lie at items_addr. */
static int write_items(struct value_writer *writer, remote_addr addr, remote_addr items_addr,
		       uint64_t nr_items, const struct brackets *brackets)
{
	remote_addr items[PIECE_ITEMS], end;
	size_t nr;
	int err = 0;

	if (nr_items > INT64_MAX / sizeof(remote_addr) ||
	    __builtin_add_overflow(items_addr, nr_items * sizeof(remote_addr), &end))
		return -EBADMSG;
	if (!enter(writer, addr, brackets))
		return 0;
	for (uint64_t i = 0; !err && i < nr_items && !writer->text->is_full; i += nr) {
		const remote_addr piece_addr = items_addr + i * sizeof(*items);

		nr = piece_of(i, nr_items, PIECE_ITEMS);
		err = remote_memory_read(writer->memory, piece_addr, items, nr * sizeof(*items));
		if (err) {
			err = write_lack(writer, err, i, piece_addr);
			break;
		}
		for (size_t k = 0; !err && k < nr; k++) {
			write_comma(writer, i + k);
			err = value_write_part(writer, items[k]);
		}
	}
	leave(writer, brackets);
	return err;
}

static int write_list(struct value_writer *writer, remote_addr addr)
{
	static const struct brackets brackets = {"[", "]", "[...]"};
	uint8_t fields[LIST_ITEMS_AFTER_TYPE + sizeof(remote_addr)];
	int err = value_read_fields(writer, addr, 0, fields, sizeof(fields));

	return err ? err
		   : write_items(writer, addr, field_u64(fields, LIST_ITEMS_AFTER_TYPE),
				 field_u64(fields, SIZE_AFTER_TYPE), &brackets);
}

/* as_arguments: no comma tells one from an expression in parentheses. */
static int write_tuple_items(struct value_writer *writer, remote_addr addr, bool as_arguments)
{
	const remote_addr items_addr = addr + writer->build->offsets.object.ob_type +
				       sizeof(remote_addr) +
				       writer->build->traits.tuple_items_after_type;
	struct brackets brackets = {"(", ")", "(...)"};
	uint64_t nr_items;
	int err = value_read_field(writer, addr, SIZE_AFTER_TYPE, &nr_items);

	if (err)
		return err;
	if (nr_items == 1 && !as_arguments)
		brackets.closing = ",)";
	return write_items(writer, addr, items_addr, nr_items, &brackets);
}

static int write_tuple(struct value_writer *writer, remote_addr addr)
{
	return write_tuple_items(writer, addr, false);
}

static const struct brackets braces = {"{", "}", "{...}"};

static int write_set(struct value_writer *writer, remote_addr addr)
{
	remote_addr member_addr;
	uint64_t nr_written = 0;
	struct set set;
	int err = set_open(writer->memory, &writer->build->offsets, addr, &set);

	if (!err && !set.nr_used)
		value_text_puts(writer->text, "set()");
	if (err || !set.nr_used || !enter(writer, addr, &braces))
		return err;
	while (!err && nr_written < set.nr_used && !writer->text->is_full) {
		err = set_next(writer->memory, &set, &member_addr);
		if (err) {
			err = write_lack(writer, err, nr_written, addr);
			break;
		}
		write_comma(writer, nr_written++);
		err = value_write_part(writer, member_addr);
	}
	leave(writer, &braces);
	return err;
}

static int write_dict(struct value_writer *writer, remote_addr addr)
{
	struct dict_walk walk = {.memory = writer->memory, .build = writer->build};
	uint64_t nr_used, nr_written = 0;
	int err = dict_open(writer->memory, writer->build, addr, &walk.dict);

	if (!err)
		err = value_read_field(writer, addr, DICT_USED_AFTER_TYPE, &nr_used);
	if (err || !enter(writer, addr, &braces))
		return err;
	while (!err && !writer->text->is_full) {
		struct dict_entry entry;

		err = dict_next(&walk, &entry);
		if (err == -ENOENT && nr_written == nr_used)
			break;
		if (err) {
			err = write_lack(writer, err, nr_written, addr);
			break;
		}
		write_comma(writer, nr_written++);
		err = value_write_part(writer, entry.key_addr);
		value_text_puts(writer->text, ": ");
		if (!err)
			err = value_write_part(writer, entry.value_addr);
	}
	leave(writer, &braces);
	return err == -ENOENT ? 0 : err;
}

static int write_frozenset(struct value_writer *writer, remote_addr addr)
{
	uint64_t nr_used;
	int err = value_read_field(writer, addr, SET_USED_AFTER_TYPE, &nr_used);

	if (err)
		return err;
	value_text_puts(writer->text, "frozenset(");
	err = nr_used ? write_set(writer, addr) : 0;
	if (!err)
		value_text_puts(writer->text, ")");
	return err;
}

/* How the kinds are written that do not depend on their type: by a word, or by a function. */
static const struct {
	const char *word;
	int (*write)(struct value_writer *writer, remote_addr addr);
} forms[NR_VALUE_KINDS] = {
#define AS_OBJECT            \
	{                    \
		.word = NULL \
	}
#define WORD(text)             \
	{                      \
		.word = (text) \
	}
#define BY(function)                \
	{                           \
		.write = (function) \
	}
#define KIND(kind, flag, form) [VALUE_##kind] = form,
#include "sampler/python/value_kinds.def"
};

/* Whether objects of that kind, or derived from it, have a form of their own. */
static bool has_form(enum value_kind kind)
{
	return forms[kind].word || forms[kind].write;
}

/* What the object at addr says that is of that kind, or of one derived from it. */
static int write_form(struct value_writer *writer, remote_addr addr, enum value_kind kind)
{
	if (forms[kind].write)
		return forms[kind].write(writer, addr);
	value_text_puts(writer->text, forms[kind].word);
	return 0;
}

static int write_exception(struct value_writer *writer, remote_addr addr,
			   const struct value_type *type)
{
	struct value_type args_type;
	remote_addr args_addr;
	int err = value_read_field(writer, addr, EXCEPTION_ARGS_AFTER_TYPE, &args_addr);

	if (!err)
		err = value_write_type_name(writer, type);
	if (!err)
		err = value_type_of(writer->memory, writer->build, args_addr, &args_type);
	if (!err && args_type.kind != VALUE_TUPLE)
		err = -EBADMSG;
	return err ? err : write_tuple_items(writer, args_addr, true);
}

/* "<", the type, where it is, what is in it, ">". */
static int write_object(struct value_writer *writer, remote_addr addr,
			const struct value_type *type)
{
	const bool in_object = writer->in_object;
	int err;

	value_text_puts(writer->text, "<");
	err = value_write_type_name(writer, type);
	value_text_printf(writer->text, " at 0x%llx", (unsigned long long)addr);
	writer->in_object = true;
	if (!err && has_form(type->kind)) {
		value_text_puts(writer->text, " ");
		err = write_form(writer, addr, type->kind);
	} else if (!err && !in_object) {
		err = value_write_attributes(writer, addr, type);
	}
	writer->in_object = in_object;
	if (!err)
		value_text_puts(writer->text, ">");
	return err;
}

int value_write_part(struct value_writer *writer, remote_addr addr)
{
	struct value_type type;
	int err;

	if (writer->text->is_full)
		return 0;
	err = value_type_of(writer->memory, writer->build, addr, &type);
	if (!err && type.kind == VALUE_EXCEPTION)
		err = write_exception(writer, addr, &type);
	else if (!err && (type.is_exact || type.kind == VALUE_TYPE) && has_form(type.kind))
		err = write_form(writer, addr, type.kind);
	else if (!err)
		err = write_object(writer, addr, &type);
	return write_error(writer, err, addr);
}

int value_write(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		struct value_text *text)
{
	struct value_writer writer = {
		.memory = memory,
		.build = build,
		.text = text,
	};

	return value_write_part(&writer, addr);
}
