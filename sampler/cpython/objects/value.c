/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/objects/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/objects/dict.h"
#include "sampler/cpython/objects/object.h"

enum {
	PIECE_ITEMS = 64, /* items of a list or tuple read at a time */
	/* Characters searched for quotes; repr() searches all, even millions. */
	QUOTES_MAX_CHARS = 4096,
	/* Limit on nesting of containers: 100 characters hardly show more. */
	MAX_DEPTH = 8,
	/* Longer C strings are cut; names of static types have at most 60 bytes. */
	C_NAME_BYTES = 128,
	/* Keys of a class or module that are searched; both have these names early. */
	NAMES_MAX_KEYS = 256,
	/* Limit on base classes whose slots are written. */
	SLOT_CLASSES_MAX = 16,
	SLOTS_MAX = 256,
	/* Limit on base classes of exceptions; a longer chain is a cycle. */
	BASES_MAX = 64,
};

/*
 * The writing of one value. Each function writes its part as far as it can be read. The first error
 * ends the part that it occurs in. The text holds the error, and until write_part() handles it
 * nothing more is read or written.
 */
struct writer {
	struct remote_memory *memory; /* borrowed, like everything here */
	const struct py_build *build;
	const struct py_offsets *offsets; /* the build's */
	struct value_text *text;
	remote_addr open[MAX_DEPTH]; /* the containers around the current part */
	unsigned int depth;
	bool in_object; /* inside an object's attributes: write only the type of other objects */
};

/*
 * Write the object at addr, marking what cannot be read. Afterwards the text has no error but
 * -ESRCH or -EPERM. When the memory's budget is used up (-E2BIG), the text is full.
 */
static void write_part(struct writer *writer, remote_addr addr);

/* Whether the current part has failed, earlier or now with err (if not 0). */
static bool failed(struct writer *writer, int err)
{
	if (!writer->text->err)
		writer->text->err = err;
	return writer->text->err;
}

/* The base of offsets that count from the end of an object's ob_type. */
static remote_addr fields_of(const struct writer *writer, remote_addr addr)
{
	return addr + writer->offsets->object.ob_type + sizeof(remote_addr);
}

/* Read size bytes at addr. They are 0 if the part fails or has failed. */
static void read_at(struct writer *writer, remote_addr addr, void *ret_bytes, size_t size)
{
	if (failed(writer, 0) ||
	    failed(writer, remote_memory_read(writer->memory, addr, ret_bytes, size)))
		memset(ret_bytes, 0, size);
}

/* The same for a word. */
static uint64_t read_word(struct writer *writer, remote_addr addr)
{
	uint64_t word;

	read_at(writer, addr, &word, sizeof(word));
	return word;
}

/* Whether addr is the address of an object of that kind, or of a derived one. */
static bool has_kind(struct writer *writer, remote_addr addr, enum value_kind kind)
{
	struct value_type type;

	return addr && value_type_of(writer->memory, writer->build, addr, &type) == 0 &&
	       type.kind == kind;
}

static void write_unreadable(struct writer *writer, remote_addr addr)
{
	value_text_printf(writer->text, "<unreadable at 0x%llx>", (unsigned long long)addr);
}

/* End the part at addr: write what stopped it, unless the error ends everything. */
static void end_part(struct writer *writer, remote_addr addr)
{
	const int err = writer->text->err;

	if (err != -E2BIG && err != -EFAULT && err != -EBADMSG && err != -ENOENT)
		return;
	writer->text->err = 0;
	if (err == -E2BIG)
		value_text_cut(writer->text);
	else
		write_unreadable(writer, addr);
}

static void write_bool(struct writer *writer, remote_addr addr)
{
	uint64_t value;
	int err = integer_read(writer->memory, writer->offsets, addr, &value);

	if (!failed(writer, !err && value > 1 ? -EBADMSG : err))
		value_text_puts(writer->text, value ? "True" : "False");
}

static void write_int(struct writer *writer, remote_addr addr)
{
	(void)failed(writer, integer_write(writer->memory, writer->offsets, addr, writer->text));
}

static void write_float(struct writer *writer, remote_addr addr)
{
	char number[FLOAT_TEXT_BYTES];
	double value;

	read_at(writer, fields_of(writer, addr) + FLOAT_AFTER_TYPE, &value, sizeof(value));
	float_format(value, ".0", number);
	value_text_puts(writer->text, number);
}

/* Source: complex_repr() of CPython Objects/complexobject.c. */
static void write_complex(struct writer *writer, remote_addr addr)
{
	char real[FLOAT_TEXT_BYTES], imaginary[FLOAT_TEXT_BYTES];
	double parts[2];

	read_at(writer, fields_of(writer, addr) + FLOAT_AFTER_TYPE, parts, sizeof(parts));
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
static char find_quote(struct writer *writer, const struct remote_text *text)
{
	const uint64_t end = piece_of(0, text->nr_chars, QUOTES_MAX_CHARS);
	uint32_t chars[STRING_PIECE_CHARS];
	bool has_single = false, has_double = false;
	size_t nr;

	for (uint64_t i = 0; i < end; i += nr) {
		nr = piece_of(i, end, STRING_PIECE_CHARS);
		if (failed(writer, string_chars(writer->memory, text, i, nr, chars)))
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
static void write_quoted(struct writer *writer, const struct remote_text *from, bool is_bytes)
{
	const char quote = find_quote(writer, from);

	value_text_printf(writer->text, is_bytes ? "b%c" : "%c", quote);
	(void)failed(writer, write_chars(writer->memory, from, quote, is_bytes, writer->text));
	value_text_char(writer->text, (uint8_t)quote);
}

int value_write_name(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		     struct value_text *text)
{
	struct remote_text chars;
	int err = string_find(memory, &build->offsets, addr, &chars);

	return err ? err : write_chars(memory, &chars, 0, false, text);
}

/* Write the characters of a str as they are. */
static void write_unquoted(struct writer *writer, remote_addr addr)
{
	(void)failed(writer, value_write_name(writer->memory, writer->build, addr, writer->text));
}

static void write_str(struct writer *writer, remote_addr addr)
{
	struct remote_text chars;

	if (!failed(writer, string_find(writer->memory, writer->offsets, addr, &chars)))
		write_quoted(writer, &chars, false);
}

/* Write the bytes at addr between two texts. An impossible number of bytes means damage. */
static void write_bytes_at(struct writer *writer, remote_addr addr, uint64_t nr_bytes,
			   const char *opening, const char *closing)
{
	const struct remote_text bytes = {.addr = addr, .nr_chars = nr_bytes, .char_bytes = 1};
	remote_addr end;

	if (failed(writer, nr_bytes > INT64_MAX || __builtin_add_overflow(addr, nr_bytes, &end)
				   ? -EBADMSG
				   : 0))
		return;
	value_text_puts(writer->text, opening);
	write_quoted(writer, &bytes, true);
	value_text_puts(writer->text, closing);
}

static void write_bytes(struct writer *writer, remote_addr addr)
{
	const remote_addr size_addr = fields_of(writer, addr) + SIZE_AFTER_TYPE;

	write_bytes_at(writer, addr + writer->offsets->bytes.ob_sval, read_word(writer, size_addr),
		       "", "");
}

static void write_bytearray(struct writer *writer, remote_addr addr)
{
	uint8_t fields[BYTEARRAY_START_AFTER_TYPE + sizeof(remote_addr)];

	read_at(writer, fields_of(writer, addr), fields, sizeof(fields));
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
static bool enter(struct writer *writer, remote_addr addr, const struct brackets *brackets)
{
	bool is_open = writer->depth == MAX_DEPTH;

	for (unsigned int i = 0; i < writer->depth; i++)
		is_open |= writer->open[i] == addr;
	value_text_puts(writer->text, is_open ? brackets->instead : brackets->opening);
	if (!is_open)
		writer->open[writer->depth++] = addr;
	return !is_open;
}

static void leave(struct writer *writer, const struct brackets *brackets)
{
	value_text_puts(writer->text, brackets->closing);
	writer->depth--;
}

/* Write what precedes an item; nr_written items precede it. */
static void write_comma(struct writer *writer, uint64_t nr_written)
{
	if (nr_written)
		value_text_puts(writer->text, ", ");
}

/*
 * Mark that the container at addr, of which nr_written items were written, has further or different
 * ones.
 */
static void write_incomplete(struct writer *writer, int err, uint64_t nr_written, remote_addr addr)
{
	if (err != -E2BIG)
		write_comma(writer, nr_written);
	if (failed(writer, err))
		end_part(writer, addr);
}

/* Write the list or tuple at addr: nr_items objects, whose addresses are at items_addr. */
static void write_items(struct writer *writer, remote_addr addr, remote_addr items_addr,
			uint64_t nr_items, const struct brackets *brackets)
{
	remote_addr items[PIECE_ITEMS], end;
	size_t nr;
	int err = 0;

	if (nr_items > INT64_MAX / sizeof(remote_addr) ||
	    __builtin_add_overflow(items_addr, nr_items * sizeof(remote_addr), &end))
		err = -EBADMSG;
	if (failed(writer, err) || !enter(writer, addr, brackets))
		return;
	for (uint64_t i = 0; !err && i < nr_items && !value_text_ended(writer->text); i += nr) {
		const remote_addr piece_addr = items_addr + i * sizeof(*items);

		nr = piece_of(i, nr_items, PIECE_ITEMS);
		err = remote_memory_read(writer->memory, piece_addr, items, nr * sizeof(*items));
		if (err)
			write_incomplete(writer, err, i, piece_addr);
		for (size_t k = 0; !err && k < nr; k++) {
			write_comma(writer, i + k);
			write_part(writer, items[k]);
		}
	}
	leave(writer, brackets);
}

static void write_list(struct writer *writer, remote_addr addr)
{
	static const struct brackets brackets = {"[", "]", "[...]"};
	uint8_t fields[LIST_ITEMS_AFTER_TYPE + sizeof(remote_addr)];

	read_at(writer, fields_of(writer, addr), fields, sizeof(fields));
	write_items(writer, addr, field_u64(fields, LIST_ITEMS_AFTER_TYPE),
		    field_u64(fields, SIZE_AFTER_TYPE), &brackets);
}

/* as_arguments: a single item is not followed by a comma. */
static void write_tuple_items(struct writer *writer, remote_addr addr, bool as_arguments)
{
	const remote_addr fields_addr = fields_of(writer, addr);
	const uint64_t nr_items = read_word(writer, fields_addr + SIZE_AFTER_TYPE);
	const struct brackets brackets = {"(", nr_items == 1 && !as_arguments ? ",)" : ")",
					  "(...)"};

	write_items(writer, addr, fields_addr + writer->build->traits.tuple_items_after_type,
		    nr_items, &brackets);
}

static void write_tuple(struct writer *writer, remote_addr addr)
{
	write_tuple_items(writer, addr, false);
}

static const struct brackets braces = {"{", "}", "{...}"};

static void write_set(struct writer *writer, remote_addr addr)
{
	remote_addr member_addr;
	uint64_t nr_written = 0;
	struct set set;

	if (failed(writer, set_open(writer->memory, writer->offsets, addr, &set)))
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
		write_part(writer, member_addr);
	}
	leave(writer, &braces);
}

static void write_dict(struct writer *writer, remote_addr addr)
{
	struct dict_walk walk = {0};
	const uint64_t nr_used = read_word(writer, fields_of(writer, addr) + DICT_USED_AFTER_TYPE);
	uint64_t nr_written = 0;

	if (failed(writer, dict_open(writer->memory, writer->build, addr, &walk.dict)) ||
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
		write_part(writer, entry.key_addr);
		value_text_puts(writer->text, ": ");
		write_part(writer, entry.value_addr);
	}
	leave(writer, &braces);
}

static void write_frozenset(struct writer *writer, remote_addr addr)
{
	const uint64_t nr_used = read_word(writer, fields_of(writer, addr) + SET_USED_AFTER_TYPE);

	value_text_puts(writer->text, "frozenset(");
	if (nr_used)
		write_set(writer, addr);
	value_text_puts(writer->text, ")");
}

/* Objects written by name. */

static void write_c_name(struct writer *writer, const char *name)
{
	for (; *name; name++)
		value_text_byte(writer->text, (uint8_t)*name, 0);
}

/* Write the str at addr as it is; -EBADMSG if it is no str. */
static void write_name(struct writer *writer, remote_addr addr)
{
	if (!failed(writer, has_kind(writer, addr, VALUE_STR) ? 0 : -EBADMSG))
		write_unquoted(writer, addr);
}

/* Read a field of a heap type, at a distance before its cached keys. */
static remote_addr read_heap_field(struct writer *writer, remote_addr type_addr, uint32_t before)
{
	return read_word(writer, type_addr + writer->offsets->type.cached_keys - before);
}

/* Clear the error of a part that could not be read. Returns whether there was one. */
static bool clear_unreadable(struct writer *writer)
{
	const int err = writer->text->err;

	if (err != -EBADMSG && err != -EFAULT)
		return false;
	writer->text->err = 0;
	return true;
}

/* Read the name of a static type. Returns false if that fails. */
static bool read_static_name(struct writer *writer, remote_addr addr, char name[C_NAME_BYTES])
{
	return !failed(writer,
		       type_name_read(writer->memory, writer->offsets, addr, name, C_NAME_BYTES));
}

/* Write the name of a type, without its module; "object" if it cannot be read. */
static void write_type_name(struct writer *writer, const struct value_type *type)
{
	char name[C_NAME_BYTES];

	if (type->is_heap) {
		write_name(writer,
			   read_heap_field(writer, type->addr, TYPE_NAME_BEFORE_CACHED_KEYS));
	} else if (read_static_name(writer, type->addr, name)) {
		const char *dot = strrchr(name, '.');

		write_c_name(writer, dot ? dot + 1 : name);
	}
	if (clear_unreadable(writer))
		value_text_puts(writer->text, "object");
}

/* Write the module of a class, and a dot. */
static void write_class_module(struct writer *writer, remote_addr addr)
{
	const uint32_t offset = writer->offsets->type.flags + TYPE_DICT_AFTER_FLAGS;
	const remote_addr dict_addr = read_word(writer, addr + offset);
	remote_addr module_addr;
	struct dict dict;

	if (!failed(writer, dict_open(writer->memory, writer->build, dict_addr, &dict)) &&
	    !failed(writer, dict_find(&dict, NAMES_MAX_KEYS, "__module__", NULL, &module_addr)))
		write_name(writer, module_addr);
	value_text_puts(writer->text, ".");
	if (writer->text->err == -ENOENT)
		writer->text->err = 0;
	(void)clear_unreadable(writer);
}

static void write_class(struct writer *writer, remote_addr addr)
{
	const uint64_t flags = read_word(writer, addr + writer->offsets->type.flags);
	char name[C_NAME_BYTES];

	if (flags & TYPE_HEAP) {
		const remote_addr name_addr =
			read_heap_field(writer, addr, TYPE_QUALNAME_BEFORE_CACHED_KEYS);

		if (failed(writer, 0))
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

static void write_module(struct writer *writer, remote_addr addr)
{
	remote_addr name_addr;
	struct dict dict;

	if (failed(writer, dict_open_attributes(writer->memory, writer->build, addr, &dict)) ||
	    failed(writer, dict_find(&dict, NAMES_MAX_KEYS, "__name__", NULL, &name_addr)) ||
	    failed(writer, has_kind(writer, name_addr, VALUE_STR) ? 0 : -EBADMSG))
		return;
	value_text_puts(writer->text, "<module '");
	write_unquoted(writer, name_addr);
	value_text_puts(writer->text, "'>");
}

/* Write the qualified name of the function at addr. */
static void write_qualname(struct writer *writer, remote_addr addr)
{
	write_name(writer, read_word(writer, fields_of(writer, addr) +
						     writer->build->traits.qualname_after_type));
}

static void write_function(struct writer *writer, remote_addr addr)
{
	value_text_puts(writer->text, "<function ");
	write_qualname(writer, addr);
	value_text_printf(writer->text, " at 0x%llx>", (unsigned long long)addr);
}

/* Write the end of a description that refers to another object: "list object at 0x…>". */
static void write_other(struct writer *writer, remote_addr addr)
{
	struct value_type type;

	if (failed(writer, value_type_of(writer->memory, writer->build, addr, &type)))
		return;
	write_type_name(writer, &type);
	value_text_printf(writer->text, " object at 0x%llx>", (unsigned long long)addr);
}

static void write_method(struct writer *writer, remote_addr addr)
{
	uint8_t fields[METHOD_SELF_AFTER_TYPE + sizeof(remote_addr)];
	remote_addr function_addr;

	read_at(writer, fields_of(writer, addr), fields, sizeof(fields));
	function_addr = field_u64(fields, METHOD_FUNCTION_AFTER_TYPE);
	value_text_puts(writer->text, "<bound method ");
	if (has_kind(writer, function_addr, VALUE_FUNCTION))
		write_qualname(writer, function_addr);
	else
		value_text_puts(writer->text, "?");
	value_text_puts(writer->text, " of ");
	if (!failed(writer, 0))
		write_other(writer, field_u64(fields, METHOD_SELF_AFTER_TYPE));
}

/*
 * The name is a constant of a file; it is left out if it cannot be read.
 *
 * Source: meth_repr() of CPython Objects/methodobject.c.
 */
static void write_builtin(struct writer *writer, remote_addr addr)
{
	uint8_t fields[BUILTIN_SELF_AFTER_TYPE + sizeof(remote_addr)];
	remote_addr self_addr, name_addr;
	char name[C_NAME_BYTES];
	bool has_self;

	read_at(writer, fields_of(writer, addr), fields, sizeof(fields));
	if (failed(writer, 0))
		return;
	self_addr = field_u64(fields, BUILTIN_SELF_AFTER_TYPE);
	has_self = self_addr && !has_kind(writer, self_addr, VALUE_MODULE);
	value_text_puts(writer->text, has_self ? "<built-in method" : "<built-in function");
	name_addr = read_word(writer, field_u64(fields, BUILTIN_ML_AFTER_TYPE) + METHOD_DEF_NAME);
	if (!failed(writer, 0) &&
	    !failed(writer, c_string_read(writer->memory, name_addr, name, sizeof(name)))) {
		value_text_puts(writer->text, " ");
		write_c_name(writer, name);
	}
	(void)clear_unreadable(writer);
	value_text_puts(writer->text, has_self ? " of " : ">");
	if (has_self && !failed(writer, 0))
		write_other(writer, self_addr);
}

/* Write " name=value". An attribute whose name is no str is left out. */
static void write_attribute(struct writer *writer, remote_addr name_addr, remote_addr value_addr)
{
	if (!has_kind(writer, name_addr, VALUE_STR))
		return;
	value_text_puts(writer->text, " ");
	write_name(writer, name_addr);
	value_text_puts(writer->text, "=");
	write_part(writer, value_addr);
}

/* Write the attributes that an instance has in a dict, or in inline values. */
static void write_dict_attributes(struct writer *writer, remote_addr addr)
{
	struct dict_walk walk = {0};
	struct dict_entry entry;
	int err = dict_open_attributes(writer->memory, writer->build, addr, &walk.dict);

	while (!err && !value_text_ended(writer->text)) {
		err = dict_next(&walk, &entry);
		if (!err)
			write_attribute(writer, entry.key_addr, entry.value_addr);
	}
	(void)failed(writer, err == -ENOENT ? 0 : err);
}

/* Write the slots that are set, of a class whose __slots__ is the tuple at names_addr. */
static void write_slots(struct writer *writer, remote_addr first_addr, remote_addr names_addr)
{
	const remote_addr fields_addr = fields_of(writer, names_addr);
	const uint64_t nr_slots = read_word(writer, fields_addr + SIZE_AFTER_TYPE);
	remote_addr names[SLOTS_MAX], values[SLOTS_MAX];

	if (failed(writer, nr_slots > SLOTS_MAX ? -EBADMSG : 0))
		return;
	read_at(writer, fields_addr + writer->build->traits.tuple_items_after_type, names,
		nr_slots * sizeof(*names));
	read_at(writer, first_addr, values, nr_slots * sizeof(*values));
	for (uint32_t i = 0; i < nr_slots; i++)
		if (values[i] && !failed(writer, 0))
			write_attribute(writer, names[i], values[i]);
}

/*
 * Write the attributes for which the class of an instance, and its bases, have slots. In an
 * instance they follow the part of the base, in the order of __slots__.
 */
static void write_slot_attributes(struct writer *writer, remote_addr addr, remote_addr type_addr)
{
	const struct py_offsets *offsets = writer->offsets;

	for (int i = 0; !failed(writer, 0) && i < SLOT_CLASSES_MAX; i++) {
		const remote_addr flags_addr = type_addr + offsets->type.flags;
		remote_addr names_addr, base_addr;
		uint64_t offset;

		if (!(read_word(writer, flags_addr) & TYPE_HEAP))
			break;
		names_addr = read_heap_field(writer, type_addr, TYPE_SLOTS_BEFORE_CACHED_KEYS);
		base_addr = read_word(writer, flags_addr + TYPE_BASE_AFTER_FLAGS);
		offset = read_word(writer, base_addr + offsets->type.basicsize);
		if (failed(writer, offset > STRUCT_MAX_BYTES ? -EBADMSG : 0))
			break;
		if (has_kind(writer, names_addr, VALUE_TUPLE))
			write_slots(writer, addr + offset, names_addr);
		type_addr = base_addr;
	}
}

/* The form of kinds that do not depend on their type: a word or a function. */
static const struct {
	const char *word;
	void (*write)(struct writer *writer, remote_addr addr);
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
static void write_form(struct writer *writer, remote_addr addr, enum value_kind kind)
{
	if (forms[kind].write)
		forms[kind].write(writer, addr);
	else
		value_text_puts(writer->text, forms[kind].word);
}

static void write_exception(struct writer *writer, remote_addr addr, const struct value_type *type)
{
	const remote_addr args_addr =
		read_word(writer, fields_of(writer, addr) + EXCEPTION_ARGS_AFTER_TYPE);
	struct value_type args_type;

	if (failed(writer, 0))
		return;
	write_type_name(writer, type);
	if (!failed(writer, value_type_of(writer->memory, writer->build, args_addr, &args_type)) &&
	    !failed(writer, args_type.kind == VALUE_TUPLE ? 0 : -EBADMSG))
		write_tuple_items(writer, args_addr, true);
}

/* Write "<", the type, the address, the contents, ">". */
static void write_object(struct writer *writer, remote_addr addr, const struct value_type *type)
{
	const bool in_object = writer->in_object;

	value_text_puts(writer->text, "<");
	write_type_name(writer, type);
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

static void write_part(struct writer *writer, remote_addr addr)
{
	struct value_type type;

	if (value_text_ended(writer->text))
		return;
	if (!failed(writer, value_type_of(writer->memory, writer->build, addr, &type))) {
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
	struct writer writer = {
		.memory = memory, .build = build, .offsets = &build->offsets, .text = text};

	write_part(&writer, addr);
	return text->err;
}

/* Exceptions. */

/* Whether the type at addr is called name, or derives from one that is. */
static bool is_derived(struct writer *writer, remote_addr addr, const char *name)
{
	char text[16];

	for (int i = 0; i < BASES_MAX && addr; i++) {
		if (type_name_read(writer->memory, writer->offsets, addr, text, sizeof(text)) ==
			    0 &&
		    strcmp(text, name) == 0)
			return true;
		if (remote_memory_read_u64(
			    writer->memory,
			    addr + writer->offsets->type.flags + TYPE_BASE_AFTER_FLAGS, &addr) != 0)
			return false;
	}
	return false;
}

/* Write a str as str() does, other objects as repr() does. */
static void write_as_str(struct writer *writer, remote_addr addr)
{
	if (has_kind(writer, addr, VALUE_STR))
		write_unquoted(writer, addr);
	else
		write_part(writer, addr);
}

/* Write lead and the path at addr. Returns false if there is none. */
static bool write_path(struct writer *writer, const char *lead, remote_addr addr)
{
	if (!addr || has_kind(writer, addr, VALUE_NONE))
		return false;
	value_text_puts(writer->text, lead);
	write_part(writer, addr);
	return true;
}

/*
 * Write "[Errno 2] No such file or directory: 'x' -> 'y'". Returns false if it lacks those fields.
 */
static bool write_os_error(struct writer *writer, remote_addr addr)
{
	enum { NUMBER, TEXT, PATH, SECOND_PATH, NR_FIELDS };
	remote_addr fields[NR_FIELDS];

	read_at(writer, fields_of(writer, addr) + writer->build->traits.oserror_errno_after_type,
		fields, sizeof(fields));
	if (failed(writer, 0))
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

static int read_type_name(struct writer *writer, const struct value_type *type, char **ret_name)
{
	char room[4 * EXCEPTION_TYPE_MAX_CHARS + 1];

	value_text_init(writer->text, room, EXCEPTION_TYPE_MAX_CHARS);
	write_type_name(writer, type);
	return keep_text(writer->text, ret_name);
}

static int read_message(struct writer *writer, const struct value_type *type, remote_addr addr,
			char **ret_message)
{
	char room[4 * EXCEPTION_MESSAGE_MAX_CHARS + 1];
	struct value_text *text = writer->text;
	remote_addr args_addr, fields_addr;
	uint64_t nr_items;

	value_text_init(text, room, EXCEPTION_MESSAGE_MAX_CHARS);
	args_addr = read_word(writer, fields_of(writer, addr) + EXCEPTION_ARGS_AFTER_TYPE);
	fields_addr = fields_of(writer, args_addr);
	nr_items = read_word(writer, fields_addr + SIZE_AFTER_TYPE);
	if (nr_items == 1)
		args_addr = read_word(writer,
				      fields_addr + writer->build->traits.tuple_items_after_type);
	if (nr_items == 1 && has_kind(writer, args_addr, VALUE_STR) &&
	    !is_derived(writer, type->addr, "KeyError"))
		return string_read(writer->memory, writer->offsets, args_addr, ret_message);
	if ((text->err || !is_derived(writer, type->addr, "OSError") ||
	     !write_os_error(writer, addr)) &&
	    nr_items)
		write_part(writer, args_addr);
	if (text->err == -EFAULT || text->err == -EBADMSG) {
		text->err = 0;
		write_unreadable(writer, addr);
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
	struct writer writer = {
		.memory = memory,
		.build = build,
		.offsets = &build->offsets,
		.text = &written,
		.in_object = true,
	};
	struct exception_text text = {0};
	struct value_type type;
	int err = value_type_of(memory, build, addr, &type);

	if (!err && type.kind != VALUE_EXCEPTION)
		err = -EBADMSG;
	if (!err)
		err = read_type_name(&writer, &type, &text.type_name);
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
