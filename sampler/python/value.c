/* SPDX-License-Identifier: MIT */
#include "sampler/python/value.h"

#include <errno.h>
#include <string.h>

#include "sampler/python/floating.h"
#include "sampler/python/integer.h"
#include "sampler/python/strings.h"
#include "sampler/python/value_offsets.h"
#include "sampler/python/value_parts.h"

/* So many bytes of a bytes object are read at a time. */
enum { PIECE_BYTES = 256 };

/* Quotes are looked for among so many characters; repr() looks at all, be they millions. */
enum { QUOTES_MAX_CHARS = 4096 };

int value_read_field(struct value_writer *writer, remote_addr addr, uint32_t after_type,
		     uint64_t *ret_value)
{
	const uint64_t type_end = writer->build->offsets.object.ob_type + sizeof(remote_addr);

	return remote_memory_read_u64(writer->memory, addr + type_end + after_type, ret_value);
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

int value_write_error(struct value_writer *writer, int err, remote_addr addr)
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

/* The double so many bytes behind the type of an object. */
static int read_double(struct value_writer *writer, remote_addr addr, uint32_t after_type,
		       double *ret_value)
{
	uint64_t bits;
	int err = value_read_field(writer, addr, after_type, &bits);

	if (!err)
		memcpy(ret_value, &bits, sizeof(bits));
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
	int err = read_double(writer, addr, FLOAT_AFTER_TYPE, &value);

	if (err)
		return err;
	float_format(value, number);
	value_text_puts(writer->text, number);
	return 0;
}

/* Source: complex_repr() of CPython Objects/complexobject.c. */
static int write_complex(struct value_writer *writer, remote_addr addr)
{
	char real[FLOAT_TEXT_BYTES], imaginary[FLOAT_TEXT_BYTES];
	double x, y;
	int err = read_double(writer, addr, FLOAT_AFTER_TYPE, &x);

	if (!err)
		err = read_double(writer, addr, FLOAT_AFTER_TYPE + sizeof(x), &y);
	if (err)
		return err;
	float_format_short(x, real);
	float_format_short(y, imaginary);
	if (strcmp(real, "0") == 0)
		value_text_printf(writer->text, "%sj", imaginary);
	else
		value_text_printf(writer->text, "(%s%s%sj)", real, imaginary[0] == '-' ? "" : "+",
				  imaginary);
	return 0;
}

/* What is known of the quotes among some characters. */
struct quotes {
	bool has_single, has_double;
};

static char quote_for(struct quotes quotes)
{
	return quotes.has_single && !quotes.has_double ? '"' : '\'';
}

/* How many characters come next. */
static size_t piece_of(uint64_t from, uint64_t end, size_t max)
{
	return end - from < max ? (size_t)(end - from) : max;
}

/* The quotes among the first characters of a str. */
static int find_quotes(struct value_writer *writer, const struct remote_text *text,
		       struct quotes *ret_quotes)
{
	const uint64_t end = piece_of(0, text->nr_chars, QUOTES_MAX_CHARS);
	uint32_t chars[STRING_PIECE_CHARS];
	struct quotes quotes = {0};

	for (uint64_t i = 0; i < end;) {
		const size_t nr = piece_of(i, end, STRING_PIECE_CHARS);
		int err = string_chars(writer->memory, text, i, nr, chars);

		if (err)
			return err;
		for (size_t k = 0; k < nr; k++) {
			quotes.has_single |= chars[k] == '\'';
			quotes.has_double |= chars[k] == '"';
		}
		i += nr;
	}
	*ret_quotes = quotes;
	return 0;
}

/* The characters of a str, in quotes of that kind or none (0). */
static int write_chars(struct remote_memory *memory, const struct remote_text *from, char quote,
		       struct value_text *text)
{
	uint32_t chars[STRING_PIECE_CHARS];

	for (uint64_t i = 0; i < from->nr_chars && !text->is_full;) {
		const size_t nr = piece_of(i, from->nr_chars, STRING_PIECE_CHARS);
		int err = string_chars(memory, from, i, nr, chars);

		if (err)
			return err;
		for (size_t k = 0; k < nr; k++)
			value_text_escaped(text, chars[k], quote);
		i += nr;
	}
	return 0;
}

int value_write_name(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		     struct value_text *text)
{
	struct remote_text chars;
	int err = string_find(memory, &build->offsets, addr, &chars);

	return err ? err : write_chars(memory, &chars, 0, text);
}

static int write_str(struct value_writer *writer, remote_addr addr)
{
	struct remote_text chars;
	struct quotes quotes;
	int err = string_find(writer->memory, &writer->build->offsets, addr, &chars);

	if (!err)
		err = find_quotes(writer, &chars, &quotes);
	if (err)
		return err;
	value_text_char(writer->text, (uint8_t)quote_for(quotes));
	err = write_chars(writer->memory, &chars, quote_for(quotes), writer->text);
	if (!err)
		value_text_char(writer->text, (uint8_t)quote_for(quotes));
	return err;
}

/* nr_bytes bytes at addr, as the repr() of bytes. */
static int write_byte_string(struct value_writer *writer, remote_addr addr, uint64_t nr_bytes)
{
	const uint64_t looked_at = piece_of(0, nr_bytes, QUOTES_MAX_CHARS);
	struct quotes quotes = {0};
	uint8_t bytes[PIECE_BYTES];
	int err = 0;

	for (uint64_t i = 0; !err && i < looked_at; i += PIECE_BYTES) {
		const size_t nr = piece_of(i, looked_at, PIECE_BYTES);

		err = remote_memory_read(writer->memory, addr + i, bytes, nr);
		quotes.has_single |= !err && memchr(bytes, '\'', nr);
		quotes.has_double |= !err && memchr(bytes, '"', nr);
	}
	if (err)
		return err;
	value_text_printf(writer->text, "b%c", quote_for(quotes));
	for (uint64_t i = 0; !err && i < nr_bytes && !writer->text->is_full; i += PIECE_BYTES) {
		const size_t nr = piece_of(i, nr_bytes, PIECE_BYTES);

		err = remote_memory_read(writer->memory, addr + i, bytes, nr);
		for (size_t k = 0; !err && k < nr; k++)
			value_text_byte(writer->text, bytes[k], quote_for(quotes));
	}
	if (!err)
		value_text_char(writer->text, (uint8_t)quote_for(quotes));
	return err;
}

/* A number of bytes, which lie at addr: what no memory can hold is damage. */
static int check_bytes(remote_addr addr, uint64_t nr_bytes)
{
	remote_addr end;

	return nr_bytes > INT64_MAX || __builtin_add_overflow(addr, nr_bytes, &end) ? -EBADMSG : 0;
}

static int write_bytes(struct value_writer *writer, remote_addr addr)
{
	const remote_addr start_addr = addr + writer->build->offsets.bytes.ob_sval;
	uint64_t nr_bytes;
	int err = value_read_field(writer, addr, SIZE_AFTER_TYPE, &nr_bytes);

	if (!err)
		err = check_bytes(start_addr, nr_bytes);
	return err ? err : write_byte_string(writer, start_addr, nr_bytes);
}

static int write_bytearray(struct value_writer *writer, remote_addr addr)
{
	remote_addr start_addr;
	uint64_t nr_bytes;
	int err = value_read_field(writer, addr, SIZE_AFTER_TYPE, &nr_bytes);

	if (!err)
		err = value_read_field(writer, addr, BYTEARRAY_START_AFTER_TYPE, &start_addr);
	if (!err)
		err = check_bytes(start_addr, nr_bytes);
	if (err)
		return err;
	value_text_puts(writer->text, "bytearray(");
	err = write_byte_string(writer, start_addr, nr_bytes);
	if (!err)
		value_text_puts(writer->text, ")");
	return err;
}

static int write_frozenset(struct value_writer *writer, remote_addr addr)
{
	uint64_t nr_used;
	int err = value_read_field(writer, addr, SET_USED_AFTER_TYPE, &nr_used);

	if (err)
		return err;
	value_text_puts(writer->text, "frozenset(");
	err = nr_used ? value_write_set(writer, addr) : 0;
	if (!err)
		value_text_puts(writer->text, ")");
	return err;
}

/* How the kinds are written that do not depend on their type: by a word, or by a function. */
static const struct {
	const char *word;
	int (*write)(struct value_writer *writer, remote_addr addr);
} forms[NR_VALUE_KINDS] = {
	[VALUE_NONE] = {.word = "None"},
	[VALUE_ELLIPSIS] = {.word = "Ellipsis"},
	[VALUE_NOT_IMPLEMENTED] = {.word = "NotImplemented"},
	[VALUE_BOOL] = {.write = write_bool},
	[VALUE_INT] = {.write = write_int},
	[VALUE_FLOAT] = {.write = write_float},
	[VALUE_COMPLEX] = {.write = write_complex},
	[VALUE_STR] = {.write = write_str},
	[VALUE_BYTES] = {.write = write_bytes},
	[VALUE_BYTEARRAY] = {.write = write_bytearray},
	[VALUE_LIST] = {.write = value_write_list},
	[VALUE_TUPLE] = {.write = value_write_tuple},
	[VALUE_SET] = {.write = value_write_set},
	[VALUE_FROZENSET] = {.write = write_frozenset},
	[VALUE_DICT] = {.write = value_write_dict},
	[VALUE_TYPE] = {.write = value_write_class},
	[VALUE_MODULE] = {.write = value_write_module},
	[VALUE_BUILTIN] = {.write = value_write_builtin},
	[VALUE_FUNCTION] = {.write = value_write_function},
	[VALUE_METHOD] = {.write = value_write_method},
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
	remote_addr args_addr;
	int err = value_read_field(writer, addr, EXCEPTION_ARGS_AFTER_TYPE, &args_addr);

	if (!err)
		err = value_write_type_name(writer, type);
	return err ? err : value_write_arguments(writer, args_addr);
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
	return value_write_error(writer, err, addr);
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
