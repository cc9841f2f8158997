/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/objects/value.h"

#include <errno.h>

#include "sampler/cpython/objects/dict.h"
#include "sampler/cpython/objects/value_writer.h"

enum {
	PIECE_ITEMS = 64, /* items of a list or tuple read at a time */
	/* Characters searched for quotes; repr() searches all, even millions. */
	QUOTES_MAX_CHARS = 4096,
	/* Limit on base classes whose slots are written. */
	SLOT_CLASSES_MAX = 16,
	SLOTS_MAX = 256,
};

void value_write_unreadable(struct value_writer *writer, remote_addr addr)
{
	value_text_printf(writer->text, "<unreadable at 0x%llx>", (unsigned long long)addr);
}

/* End the part at addr: write what stopped it, unless the error ends everything. */
static void end_part(struct value_writer *writer, remote_addr addr)
{
	const int err = writer->text->err;

	if (err != -E2BIG && err != -EFAULT && err != -EBADMSG && err != -ENOENT)
		return;
	writer->text->err = 0;
	if (err == -E2BIG)
		value_text_cut(writer->text);
	else
		value_write_unreadable(writer, addr);
}

static void write_bool(struct value_writer *writer, remote_addr addr)
{
	uint64_t value;
	int err = integer_read(writer->memory, writer->offsets, addr, &value);

	if (!writer_failed(writer, !err && value > 1 ? -EBADMSG : err))
		value_text_puts(writer->text, value ? "True" : "False");
}

static void write_int(struct value_writer *writer, remote_addr addr)
{
	(void)writer_failed(writer,
			    integer_write(writer->memory, writer->offsets, addr, writer->text));
}

static void write_float(struct value_writer *writer, remote_addr addr)
{
	char number[FLOAT_TEXT_BYTES];
	double value;

	writer_read(writer, writer_fields(writer, addr) + FLOAT_AFTER_TYPE, &value, sizeof(value));
	float_format(value, ".0", number);
	value_text_puts(writer->text, number);
}

/* Source: complex_repr() of CPython Objects/complexobject.c. */
static void write_complex(struct value_writer *writer, remote_addr addr)
{
	char real[FLOAT_TEXT_BYTES], imaginary[FLOAT_TEXT_BYTES];
	double parts[2];

	writer_read(writer, writer_fields(writer, addr) + FLOAT_AFTER_TYPE, parts, sizeof(parts));
	float_format(parts[0], "", real);
	float_format(parts[1], "", imaginary);
	if (strcmp(real, "0") == 0)
		value_text_printf(writer->text, "%sj", imaginary);
	else
		value_text_printf(writer->text, "(%s%s%sj)", real, imaginary[0] == '-' ? "" : "+",
				  imaginary);
}

/* How many characters or bytes to read next. */
static size_t piece_of(uint64_t from, uint64_t end, size_t max)
{
	return end - from < max ? (size_t)(end - from) : max;
}

/*
 * The quote that repr() would use, judging by the first characters of text. string_chars() reads
 * bytes as well.
 */
static char find_quote(struct value_writer *writer, const struct remote_text *text)
{
	const uint64_t end = piece_of(0, text->nr_chars, QUOTES_MAX_CHARS);
	uint32_t chars[STRING_PIECE_CHARS];
	bool has_single = false, has_double = false;
	size_t nr;

	for (uint64_t i = 0; i < end; i += nr) {
		nr = piece_of(i, end, STRING_PIECE_CHARS);
		if (writer_failed(writer, string_chars(writer->memory, text, i, nr, chars)))
			break;
		for (size_t k = 0; k < nr; k++) {
			has_single |= chars[k] == '\'';
			has_double |= chars[k] == '"';
		}
	}
	return has_single && !has_double ? '"' : '\'';
}

/* Append the characters of a text, or its bytes, for quotes of that kind or none (0). */
static int write_chars(struct remote_memory *memory, const struct remote_text *from, char quote,
		       bool is_bytes, struct value_text *text)
{
	uint32_t chars[STRING_PIECE_CHARS];
	size_t nr;

	for (uint64_t i = 0; i < from->nr_chars && !value_text_ended(text); i += nr) {
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

/* Write the repr() of a str, or of bytes. */
static void write_quoted(struct value_writer *writer, const struct remote_text *from, bool is_bytes)
{
	const char quote = find_quote(writer, from);

	value_text_printf(writer->text, is_bytes ? "b%c" : "%c", quote);
	(void)writer_failed(writer,
			    write_chars(writer->memory, from, quote, is_bytes, writer->text));
	value_text_char(writer->text, (uint8_t)quote);
}

int value_write_name(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		     struct value_text *text)
{
	struct remote_text chars;
	int err = string_find(memory, &build->offsets, addr, &chars);

	return err ? err : write_chars(memory, &chars, 0, false, text);
}

void value_write_chars(struct value_writer *writer, remote_addr addr)
{
	(void)writer_failed(writer,
			    value_write_name(writer->memory, writer->build, addr, writer->text));
}

static void write_str(struct value_writer *writer, remote_addr addr)
{
	struct remote_text chars;

	if (!writer_failed(writer, string_find(writer->memory, writer->offsets, addr, &chars)))
		write_quoted(writer, &chars, false);
}

/* Write the bytes at addr between two texts. An impossible number of bytes means damage. */
static void write_bytes_at(struct value_writer *writer, remote_addr addr, uint64_t nr_bytes,
			   const char *opening, const char *closing)
{
	const struct remote_text bytes = {.addr = addr, .nr_chars = nr_bytes, .char_bytes = 1};
	remote_addr end;

	if (writer_failed(writer,
			  nr_bytes > INT64_MAX || __builtin_add_overflow(addr, nr_bytes, &end)
				  ? -EBADMSG
				  : 0))
		return;
	value_text_puts(writer->text, opening);
	write_quoted(writer, &bytes, true);
	value_text_puts(writer->text, closing);
}

static void write_bytes(struct value_writer *writer, remote_addr addr)
{
	const remote_addr size_addr = writer_fields(writer, addr) + SIZE_AFTER_TYPE;

	write_bytes_at(writer, addr + writer->offsets->bytes.ob_sval,
		       writer_word(writer, size_addr), "", "");
}

static void write_bytearray(struct value_writer *writer, remote_addr addr)
{
	uint8_t fields[BYTEARRAY_START_AFTER_TYPE + sizeof(remote_addr)];

	writer_read(writer, writer_fields(writer, addr), fields, sizeof(fields));
	write_bytes_at(writer, field_u64(fields, BYTEARRAY_START_AFTER_TYPE),
		       field_u64(fields, SIZE_AFTER_TYPE), "bytearray(", ")");
}

/*
 * What encloses the items of a container, and what replaces them if it is inside itself or too
 * deep.
 */
struct brackets {
	const char *opening, *closing, *instead;
};

/* Begin the container at addr. Returns false if its contents are not to be written. */
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

/* Write what precedes an item; nr_written items precede it. */
static void write_comma(struct value_writer *writer, uint64_t nr_written)
{
	if (nr_written)
		value_text_puts(writer->text, ", ");
}

/*
 * Mark that the container at addr, of which nr_written items were written, has further or different
 * ones.
 */
static void write_incomplete(struct value_writer *writer, int err, uint64_t nr_written,
			     remote_addr addr)
{
	if (err != -E2BIG)
		write_comma(writer, nr_written);
	if (writer_failed(writer, err))
		end_part(writer, addr);
}

/* Write the list or tuple at addr: nr_items objects, whose addresses are at items_addr. */
static void write_items(struct value_writer *writer, remote_addr addr, remote_addr items_addr,
			uint64_t nr_items, const struct brackets *brackets)
{
	remote_addr items[PIECE_ITEMS], end;
	size_t nr;
	int err = 0;

	if (nr_items > INT64_MAX / sizeof(remote_addr) ||
	    __builtin_add_overflow(items_addr, nr_items * sizeof(remote_addr), &end))
		err = -EBADMSG;
	if (writer_failed(writer, err) || !enter(writer, addr, brackets))
		return;
	for (uint64_t i = 0; !err && i < nr_items && !value_text_ended(writer->text); i += nr) {
		const remote_addr piece_addr = items_addr + i * sizeof(*items);

		nr = piece_of(i, nr_items, PIECE_ITEMS);
		err = remote_memory_read(writer->memory, piece_addr, items, nr * sizeof(*items));
		if (err)
			write_incomplete(writer, err, i, piece_addr);
		for (size_t k = 0; !err && k < nr; k++) {
			write_comma(writer, i + k);
			value_write_part(writer, items[k]);
		}
	}
	leave(writer, brackets);
}

static void write_list(struct value_writer *writer, remote_addr addr)
{
	static const struct brackets brackets = {"[", "]", "[...]"};
	uint8_t fields[LIST_ITEMS_AFTER_TYPE + sizeof(remote_addr)];

	writer_read(writer, writer_fields(writer, addr), fields, sizeof(fields));
	write_items(writer, addr, field_u64(fields, LIST_ITEMS_AFTER_TYPE),
		    field_u64(fields, SIZE_AFTER_TYPE), &brackets);
}

/* as_arguments: a single item is not followed by a comma. */
static void write_tuple_items(struct value_writer *writer, remote_addr addr, bool as_arguments)
{
	const remote_addr fields_addr = writer_fields(writer, addr);
	const uint64_t nr_items = writer_word(writer, fields_addr + SIZE_AFTER_TYPE);
	const struct brackets brackets = {"(", nr_items == 1 && !as_arguments ? ",)" : ")",
					  "(...)"};

	write_items(writer, addr, fields_addr + writer->build->traits.tuple_items_after_type,
		    nr_items, &brackets);
}

static void write_tuple(struct value_writer *writer, remote_addr addr)
{
	write_tuple_items(writer, addr, false);
}

static const struct brackets braces = {"{", "}", "{...}"};

static void write_set(struct value_writer *writer, remote_addr addr)
{
	remote_addr member_addr;
	uint64_t nr_written = 0;
	struct set set;

	if (writer_failed(writer, set_open(writer->memory, writer->offsets, addr, &set)))
		return;
	if (!set.nr_used)
		value_text_puts(writer->text, "set()");
	if (!set.nr_used || !enter(writer, addr, &braces))
		return;
	while (nr_written < set.nr_used && !value_text_ended(writer->text)) {
		int err = set_next(&set, &member_addr);

		if (err) {
			write_incomplete(writer, err, nr_written, addr);
			break;
		}
		write_comma(writer, nr_written++);
		value_write_part(writer, member_addr);
	}
	leave(writer, &braces);
}

static void write_dict(struct value_writer *writer, remote_addr addr)
{
	struct dict_walk walk = {0};
	const uint64_t nr_used =
		writer_word(writer, writer_fields(writer, addr) + DICT_USED_AFTER_TYPE);
	uint64_t nr_written = 0;

	if (writer_failed(writer, dict_open(writer->memory, writer->build, addr, &walk.dict)) ||
	    !enter(writer, addr, &braces))
		return;
	while (!value_text_ended(writer->text)) {
		struct dict_entry entry;
		int err = dict_next(&walk, &entry);

		if (err) {
			if (err != -ENOENT || nr_written != nr_used)
				write_incomplete(writer, err, nr_written, addr);
			break;
		}
		write_comma(writer, nr_written++);
		value_write_part(writer, entry.key_addr);
		value_text_puts(writer->text, ": ");
		value_write_part(writer, entry.value_addr);
	}
	leave(writer, &braces);
}

static void write_frozenset(struct value_writer *writer, remote_addr addr)
{
	const uint64_t nr_used =
		writer_word(writer, writer_fields(writer, addr) + SET_USED_AFTER_TYPE);

	value_text_puts(writer->text, "frozenset(");
	if (nr_used)
		write_set(writer, addr);
	value_text_puts(writer->text, ")");
}

/* Write " name=value". An attribute whose name is no str is left out. */
static void write_attribute(struct value_writer *writer, remote_addr name_addr,
			    remote_addr value_addr)
{
	if (!writer_has_kind(writer, name_addr, VALUE_STR))
		return;
	value_text_puts(writer->text, " ");
	value_write_checked_chars(writer, name_addr);
	value_text_puts(writer->text, "=");
	value_write_part(writer, value_addr);
}

/* Write the attributes that an instance has in a dict, or in inline values. */
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
	(void)writer_failed(writer, err == -ENOENT ? 0 : err);
}

/* Write the slots that are set, of a class whose __slots__ is the tuple at names_addr. */
static void write_slots(struct value_writer *writer, remote_addr first_addr, remote_addr names_addr)
{
	const remote_addr fields_addr = writer_fields(writer, names_addr);
	const uint64_t nr_slots = writer_word(writer, fields_addr + SIZE_AFTER_TYPE);
	remote_addr names[SLOTS_MAX], values[SLOTS_MAX];

	if (writer_failed(writer, nr_slots > SLOTS_MAX ? -EBADMSG : 0))
		return;
	writer_read(writer, fields_addr + writer->build->traits.tuple_items_after_type, names,
		    nr_slots * sizeof(*names));
	writer_read(writer, first_addr, values, nr_slots * sizeof(*values));
	for (uint32_t i = 0; i < nr_slots; i++)
		if (values[i] && !writer_failed(writer, 0))
			write_attribute(writer, names[i], values[i]);
}

/*
 * Write the attributes for which the class of an instance, and its bases, have slots. In an
 * instance they follow the part of the base, in the order of __slots__.
 */
static void write_slot_attributes(struct value_writer *writer, remote_addr addr,
				  remote_addr type_addr)
{
	const struct py_offsets *offsets = writer->offsets;

	for (int i = 0; !writer_failed(writer, 0) && i < SLOT_CLASSES_MAX; i++) {
		const remote_addr flags_addr = type_addr + offsets->type.flags;
		remote_addr names_addr, base_addr;
		uint64_t offset;

		if (!(writer_word(writer, flags_addr) & TYPE_HEAP))
			break;
		names_addr = writer_heap_field(writer, type_addr, TYPE_SLOTS_BEFORE_CACHED_KEYS);
		base_addr = writer_word(writer, flags_addr + TYPE_BASE_AFTER_FLAGS);
		offset = writer_word(writer, base_addr + offsets->type.basicsize);
		if (writer_failed(writer, offset > STRUCT_MAX_BYTES ? -EBADMSG : 0))
			break;
		if (writer_has_kind(writer, names_addr, VALUE_TUPLE))
			write_slots(writer, addr + offset, names_addr);
		type_addr = base_addr;
	}
}

/* The form of kinds that do not depend on their type: a word or a function. */
static const struct {
	const char *word;
	void (*write)(struct value_writer *writer, remote_addr addr);
} forms[NR_VALUE_KINDS] = {
#define AS_OBJECT	       .word = NULL
#define WORD(text)	       .word = (text)
#define BY(function)	       .write = (function)
#define KIND(kind, flag, form) [VALUE_##kind] = {form},
#include "sampler/cpython/objects/value_kinds.def"
};

/* Whether objects of that kind, or of a derived one, have such a form. */
static bool has_form(enum value_kind kind)
{
	return forms[kind].word || forms[kind].write;
}

/* Write that form of the object at addr, whose kind is kind, or derived from it. */
static void write_form(struct value_writer *writer, remote_addr addr, enum value_kind kind)
{
	if (forms[kind].write)
		forms[kind].write(writer, addr);
	else
		value_text_puts(writer->text, forms[kind].word);
}

static void write_exception(struct value_writer *writer, remote_addr addr,
			    const struct value_type *type)
{
	const remote_addr args_addr =
		writer_word(writer, writer_fields(writer, addr) + EXCEPTION_ARGS_AFTER_TYPE);
	struct value_type args_type;

	if (writer_failed(writer, 0))
		return;
	value_write_type_name(writer, type);
	if (!writer_failed(writer,
			   value_type_of(writer->memory, writer->build, args_addr, &args_type)) &&
	    !writer_failed(writer, args_type.kind == VALUE_TUPLE ? 0 : -EBADMSG))
		write_tuple_items(writer, args_addr, true);
}

/* Write "<", the type, the address, the contents, ">". */
static void write_object(struct value_writer *writer, remote_addr addr,
			 const struct value_type *type)
{
	const bool in_object = writer->in_object;

	value_text_puts(writer->text, "<");
	value_write_type_name(writer, type);
	value_text_printf(writer->text, " at 0x%llx", (unsigned long long)addr);
	writer->in_object = true;
	if (has_form(type->kind)) {
		value_text_puts(writer->text, " ");
		write_form(writer, addr, type->kind);
	} else if (!in_object) {
		write_dict_attributes(writer, addr);
		if (type->is_heap)
			write_slot_attributes(writer, addr, type->addr);
	}
	writer->in_object = in_object;
	value_text_puts(writer->text, ">");
}

void value_write_part(struct value_writer *writer, remote_addr addr)
{
	struct value_type type;

	if (value_text_ended(writer->text))
		return;
	if (!writer_failed(writer, value_type_of(writer->memory, writer->build, addr, &type))) {
		if (type.kind == VALUE_EXCEPTION)
			write_exception(writer, addr, &type);
		else if ((type.is_exact || type.kind == VALUE_TYPE) && has_form(type.kind))
			write_form(writer, addr, type.kind);
		else
			write_object(writer, addr, &type);
	}
	end_part(writer, addr);
}

int value_write(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		struct value_text *text)
{
	struct value_writer writer = {
		.memory = memory, .build = build, .offsets = &build->offsets, .text = text};

	value_write_part(&writer, addr);
	return text->err;
}
