/* SPDX-License-Identifier: MIT */
/*
 * Only the fields needed are read, never a whole header: a small object may be the last thing in a
 * mapping.
 */
#include "sampler/cpython/objects/object.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/layout/object_offsets.h"

#define REPLACEMENT	  0xfffdu /* U+FFFD, for a number that is no code point */
#define CODE_POINT_MAX	  0x10ffffu
#define ENCODED_MAX_BYTES 6 /* of one code point: "\udc80" */

/*
 * Bits of the state word, from state_kind_shift on. The kind is the number of bytes per character.
 * 0 (3.11 and older) is a legacy string whose characters are still wchar_t; no name or path of a
 * code object is one.
 */
#define STATE_KIND_MASK 7u
#define STATE_COMPACT	(1u << 3) /* the characters follow the struct */
#define STATE_ASCII	(1u << 4) /* and the struct is the shorter one */
#define STATE_LAST_BIT	4

int string_find(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		struct remote_text *ret_text)
{
	uint64_t length = 0, size_bytes;
	uint32_t state = 0, flags, kind;
	struct remote_range header[] = {
		{.addr = addr + offsets->unicode.length, .buffer = &length, .size = sizeof(length)},
		{.addr = addr + offsets->unicode.state, .buffer = &state, .size = sizeof(state)},
	};
	remote_addr chars_addr, end;
	int err;

	assert(offsets->unicode.state_kind_shift < 32 - STATE_LAST_BIT);
	/* No object wraps around the end of the address space. */
	if (__builtin_add_overflow(addr, offsets->unicode.data, &end))
		return -EFAULT;
	err = remote_memory_read_all(memory, header, 2);
	if (err)
		return err;
	flags = state >> offsets->unicode.state_kind_shift;
	kind = flags & STATE_KIND_MASK;
	if ((kind != 1 && kind != 2 && kind != 4) || (flags & STATE_ASCII && kind != 1))
		return -EBADMSG;
	/* PyUnicode_New() counts the bytes in a Py_ssize_t as well. */
	if (__builtin_mul_overflow(length, kind, &size_bytes) || size_bytes > INT64_MAX)
		return -EBADMSG;
	/* The characters follow the struct, or are at data.any (a subclass of str). */
	chars_addr = addr + ((flags & STATE_ASCII) ? offsets->unicode.ascii_data
						   : offsets->unicode.compact_data);
	if (!(flags & STATE_COMPACT))
		err = remote_memory_read_u64(memory, addr + offsets->unicode.data, &chars_addr);
	if (err)
		return err;
	if (__builtin_add_overflow(chars_addr, size_bytes, &end))
		return -EBADMSG;

	*ret_text = (struct remote_text){
		.addr = chars_addr,
		.nr_chars = length,
		.char_bytes = kind,
	};
	return 0;
}

static uint32_t char_at(const uint8_t *chars, size_t char_bytes, size_t index)
{
	if (char_bytes == 1)
		return chars[index];
	if (char_bytes == 2)
		return field_u16(chars, index * 2);
	return field_u32(chars, index * 4);
}

int string_chars(struct remote_memory *memory, const struct remote_text *text, uint64_t first,
		 size_t nr, uint32_t ret_chars[STRING_PIECE_CHARS])
{
	uint8_t chars[STRING_PIECE_CHARS * 4];
	int err;

	assert(nr <= STRING_PIECE_CHARS && first + nr <= text->nr_chars);
	err = remote_memory_read(memory, text->addr + first * text->char_bytes, chars,
				 nr * text->char_bytes);
	for (size_t i = 0; !err && i < nr; i++)
		ret_chars[i] = char_at(chars, text->char_bytes, i);
	return err;
}

/*
 * Write one character as UTF-8, or as an escape: a str may hold characters that UTF-8 may not
 * (single surrogates), and NULs, which would end a C string. Returns the number of bytes.
 */
static size_t encode_char(uint32_t c, char out[ENCODED_MAX_BYTES])
{
	static const char nul[] = {'\\', 'x', '0', '0'};
	static const char hex[] = "0123456789abcdef";

	if (c == 0) {
		memcpy(out, nul, sizeof(nul));
		return sizeof(nul);
	}
	if (c < 0xd800 || c > 0xdfff)
		return utf8_encode(c > CODE_POINT_MAX ? REPLACEMENT : c, out);
	out[0] = '\\';
	out[1] = 'u';
	for (size_t i = 0; i < 4; i++)
		out[2 + i] = hex[c >> (12 - 4 * i) & 15];
	return 6;
}

int string_read(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		char **ret_text)
{
	uint8_t chars[STRING_MAX_CHARS * 4];
	char utf8[(size_t)STRING_MAX_CHARS * ENCODED_MAX_BYTES + sizeof(ELLIPSIS_UTF8)];
	char *end = utf8;
	struct remote_text text;
	size_t nr_chars;
	int err = string_find(memory, offsets, addr, &text);

	if (err)
		return err;
	nr_chars = text.nr_chars < STRING_MAX_CHARS ? (size_t)text.nr_chars : STRING_MAX_CHARS;
	err = remote_memory_read(memory, text.addr, chars, nr_chars * text.char_bytes);
	if (err)
		return err;
	for (size_t i = 0; i < nr_chars; i++)
		end += encode_char(char_at(chars, text.char_bytes, i), end);
	(void)stpcpy(end, nr_chars < text.nr_chars ? ELLIPSIS_UTF8 : "");
	/* Of its exact size, because it is kept as long as its code object. */
	end = strdup(utf8);
	if (!end)
		return -ENOMEM;
	*ret_text = end;
	return 0;
}

int bytes_read(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
	       size_t max_bytes, uint8_t **ret_data, size_t *ret_size_bytes)
{
	remote_addr data_addr, end;
	uint64_t size_bytes;
	int err;

	if (__builtin_add_overflow(addr, offsets->bytes.ob_sval, &data_addr))
		return -EFAULT;
	err = remote_memory_read_u64(memory, addr + offsets->bytes.ob_size, &size_bytes);
	if (err)
		return err;
	if (size_bytes > INT64_MAX || __builtin_add_overflow(data_addr, size_bytes, &end))
		return -EBADMSG;
	if (size_bytes > max_bytes)
		return -E2BIG;

	/* malloc(0) may return NULL, which would look like -ENOMEM. */
	cleanup_free uint8_t *data = malloc(size_bytes ? size_bytes : 1);
	if (!data)
		return -ENOMEM;
	err = remote_memory_read(memory, data_addr, data, size_bytes);
	if (err)
		return err;
	*ret_data = take_ptr(data);
	*ret_size_bytes = size_bytes;
	return 0;
}

/* The kind, compact and ASCII bits of a str that was read from its length on. */
static uint32_t state_of(const struct py_offsets *offsets, const uint8_t *bytes, size_t size_bytes)
{
	const uint32_t state_offset = offsets->unicode.state - offsets->unicode.length;

	return size_bytes < state_offset + sizeof(uint32_t)
		       ? STATE_ASCII
		       : field_u32(bytes, state_offset) >> offsets->unicode.state_kind_shift;
}

uint32_t string_content_offset(const struct py_offsets *offsets, const uint8_t *bytes,
			       size_t size_bytes)
{
	const bool is_ascii = state_of(offsets, bytes, size_bytes) & STATE_ASCII;

	return (is_ascii ? offsets->unicode.ascii_data : offsets->unicode.compact_data) -
	       offsets->unicode.length;
}

size_t string_valid_bytes(const struct py_offsets *offsets, const uint8_t *bytes, size_t size_bytes)
{
	const uint32_t flags = state_of(offsets, bytes, size_bytes);
	const uint32_t data_offset = string_content_offset(offsets, bytes, size_bytes);
	uint64_t chars_bytes;

	if (size_bytes <= data_offset || !(flags & STATE_COMPACT))
		return size_bytes < data_offset ? size_bytes : data_offset;
	if (__builtin_mul_overflow(field_u64(bytes, 0), flags & STATE_KIND_MASK, &chars_bytes) ||
	    chars_bytes > size_bytes - data_offset)
		return size_bytes;
	return data_offset + (size_t)chars_bytes;
}

size_t string_compare_bytes(const struct py_offsets *offsets, size_t nr_chars)
{
	return offsets->unicode.ascii_data - offsets->unicode.length + nr_chars;
}

bool string_is(const struct py_offsets *offsets, const uint8_t *bytes, const char *text)
{
	const uint32_t wanted = 1u | STATE_COMPACT | STATE_ASCII;
	const size_t nr_chars = strlen(text);
	uint32_t flags = field_u32(bytes, offsets->unicode.state - offsets->unicode.length) >>
			 offsets->unicode.state_kind_shift;

	return field_u64(bytes, 0) == nr_chars &&
	       (flags & (STATE_KIND_MASK | STATE_COMPACT | STATE_ASCII)) == wanted &&
	       memcmp(bytes + string_compare_bytes(offsets, 0), text, nr_chars) == 0;
}

enum { PAGE_BYTES = 4096 };

int c_string_read(struct remote_memory *memory, remote_addr addr, char *ret_text, size_t size)
{
	const size_t max_bytes = size - 1;
	size_t nr_bytes = 0, end = PAGE_BYTES - addr % PAGE_BYTES;

	assert(size >= 2 && size <= C_STRING_MAX_BYTES);
	/* Page by page, so that a look caches both pages (sampler/look_memory.h). */
	for (; nr_bytes < max_bytes; end = max_bytes) {
		struct remote_range range = {.addr = addr + nr_bytes,
					     .buffer = ret_text + nr_bytes};
		int err;

		range.size = (end < max_bytes ? end : max_bytes) - nr_bytes;
		err = remote_memory_read_ranges(memory, &range, 1);
		if (err)
			return err;
		if (memchr(range.buffer, '\0', range.done_bytes))
			return 0;
		if (range.done_bytes < range.size)
			return -EFAULT;
		nr_bytes += range.size;
	}
	ret_text[max_bytes] = '\0';
	return 0;
}

int type_name_read(struct remote_memory *memory, const struct py_offsets *offsets,
		   remote_addr type_addr, char *ret_text, size_t size)
{
	remote_addr name_addr;
	int err = remote_memory_read_u64(memory, type_addr + offsets->object.tp_name, &name_addr);

	return err ? err : c_string_read(memory, name_addr, ret_text, size);
}

/* Ints. */

/* A digit of an int, and the sign bits. */
enum { DIGIT_BITS = 30, SIGN_BITS = 3, SIGN_NEGATIVE = 2 };
#define DIGIT_END (1u << DIGIT_BITS)

/* The digits of an int object, least significant first. */
struct integer {
	remote_addr digits_addr;
	uint64_t nr_digits;
	bool is_negative;
};

static int open_integer(struct remote_memory *memory, const struct py_offsets *offsets,
			remote_addr addr, struct integer *ret_integer)
{
	uint64_t size, digits_bytes, end;
	struct integer integer;
	int err = remote_memory_read_u64(memory, addr + offsets->integer.size, &size);

	if (err)
		return err;
	integer.digits_addr = addr + offsets->integer.digits;
	if (!offsets->integer.size_shift) {
		/* Up to 3.11 the count is negative if the int is. */
		integer.is_negative = size > INT64_MAX;
		integer.nr_digits = integer.is_negative ? 0 - size : size;
	} else {
		/*
		 * Below the count are two sign bits (0 positive, 1 zero, 2 negative) and one more
		 * bit.
		 */
		integer.is_negative = (size & SIGN_BITS) == SIGN_NEGATIVE;
		integer.nr_digits = size >> offsets->integer.size_shift;
		if ((size & SIGN_BITS) == SIGN_BITS ||
		    ((size & SIGN_BITS) == 1) != !integer.nr_digits)
			return -EBADMSG;
	}
	if (__builtin_mul_overflow(integer.nr_digits, sizeof(uint32_t), &digits_bytes) ||
	    __builtin_add_overflow(integer.digits_addr, digits_bytes, &end))
		return -EBADMSG;
	*ret_integer = integer;
	return 0;
}

/* Read nr digits from first on. Returns 0, -EBADMSG if one is out of range, … */
static int read_digits(struct remote_memory *memory, const struct integer *integer, uint64_t first,
		       size_t nr, uint32_t *ret_digits)
{
	int err = remote_memory_read(memory, integer->digits_addr + first * sizeof(*ret_digits),
				     ret_digits, nr * sizeof(*ret_digits));

	for (size_t i = 0; !err && i < nr; i++)
		if (ret_digits[i] >= DIGIT_END)
			err = -EBADMSG;
	return err;
}

int integer_read(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		 uint64_t *ret_value)
{
	enum { MAX_DIGITS = 3, TOP_DIGIT_END = 1 << 3 };
	uint32_t digits[MAX_DIGITS] = {0};
	struct integer integer;
	int err = open_integer(memory, offsets, addr, &integer);

	if (!err && (integer.is_negative || integer.nr_digits > MAX_DIGITS))
		err = -EBADMSG;
	/* An int may be the last thing in a mapping: read no more digits than it has. */
	if (!err)
		err = read_digits(memory, &integer, 0, integer.nr_digits, digits);
	if (err)
		return err;
	if (digits[2] >= TOP_DIGIT_END)
		return -EBADMSG;
	*ret_value = digits[0] | (uint64_t)digits[1] << DIGIT_BITS |
		     (uint64_t)digits[2] << (2 * DIGIT_BITS);
	return 0;
}

/* The decimal as numbers below 10^9, least significant first. */
enum { GROUP_DIGITS = 9, GROUP_END = 1000000000 };

/* 30 bits are 9.03 decimal digits. */
enum { MAX_GROUPS = INTEGER_MAX_DECIMAL_DIGITS + INTEGER_MAX_DECIMAL_DIGITS / 256 + 1 };

/* Append digits to text as a decimal number. */
static void write_decimal(const uint32_t *digits, size_t nr_digits, struct value_text *text)
{
	uint32_t groups[MAX_GROUPS];
	size_t nr_groups = 0;

	/* groups = groups × 2^30 + digit. */
	for (size_t i = nr_digits; i > 0; i--) {
		uint64_t carry = digits[i - 1];

		for (size_t k = 0; k < nr_groups; k++) {
			carry += (uint64_t)groups[k] << DIGIT_BITS;
			groups[k] = (uint32_t)(carry % GROUP_END);
			carry /= GROUP_END;
		}
		for (; carry; carry /= GROUP_END)
			groups[nr_groups++] = (uint32_t)(carry % GROUP_END);
	}
	value_text_printf(text, "%u", nr_groups ? groups[nr_groups - 1] : 0);
	for (size_t i = nr_groups; i > 1 && !text->is_full; i--)
		value_text_printf(text, "%0*u", GROUP_DIGITS, groups[i - 2]);
}

/*
 * Append the int to text in hexadecimal, as much as fits. Two of its digits make 15 hexadecimal
 * ones; the most significant come first.
 */
static int write_hexadecimal(struct remote_memory *memory, const struct integer *integer,
			     struct value_text *text)
{
	value_text_puts(text, "0x");
	for (uint64_t end = integer->nr_digits; end > 0 && !text->is_full;) {
		const bool is_first = end == integer->nr_digits;
		const size_t nr = end % 2 ? 1 : 2;
		uint32_t digits[2] = {0};
		int err = read_digits(memory, integer, end - nr, nr, digits);

		if (!err && is_first && !digits[nr - 1])
			err = -EBADMSG;
		if (err)
			return err;
		value_text_printf(text, "%0*llx", is_first ? 1 : 15,
				  digits[0] | (unsigned long long)digits[1] << DIGIT_BITS);
		end -= nr;
	}
	return 0;
}

int integer_write(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		  struct value_text *text)
{
	uint32_t digits[INTEGER_MAX_DECIMAL_DIGITS];
	struct integer integer;
	int err = open_integer(memory, offsets, addr, &integer);
	const bool is_decimal = !err && integer.nr_digits <= INTEGER_MAX_DECIMAL_DIGITS;

	if (is_decimal)
		err = read_digits(memory, &integer, 0, integer.nr_digits, digits);
	if (err)
		return err;
	if (integer.is_negative)
		value_text_puts(text, "-");
	if (!is_decimal)
		return write_hexadecimal(memory, &integer, text);
	write_decimal(digits, integer.nr_digits, text);
	return 0;
}

/* Types. */

/* The flag of each kind, or 0. */
static const uint64_t flag_of_kind[NR_VALUE_KINDS] = {
#define KIND(kind, flag, form) [VALUE_##kind] = (flag),
#include "sampler/cpython/objects/value_kinds.def"
};

static const struct {
	const char *name;
	enum value_kind kind;
} static_types[] = {
#define TYPE(kind, name) {name, VALUE_##kind},
#include "sampler/cpython/objects/value_kinds.def"
};

/* Room for the longest of these names, its NUL and one more byte; longer names are cut there. */
enum { NAME_BYTES = sizeof("builtin_function_or_method") + 1 };

/* Limit on base classes; a longer chain is a cycle, or damaged. */
enum { BASES_MAX = 64 };

struct type_head {
	remote_addr addr;
	uint64_t flags;
	remote_addr name_addr;
};

bool value_types_are_known(const struct py_offsets *offsets)
{
	return offsets->type.flags != OFFSET_ABSENT && offsets->code.names != OFFSET_ABSENT;
}

static int read_type_head(struct remote_memory *memory, const struct py_offsets *offsets,
			  remote_addr addr, struct type_head *ret_head)
{
	int err = (addr % sizeof(uint64_t)) ? -EBADMSG : 0;

	*ret_head = (struct type_head){.addr = addr};
	if (!err && offsets->type.flags != OFFSET_ABSENT)
		err = remote_memory_read_u64(memory, addr + offsets->type.flags, &ret_head->flags);
	if (!err)
		err = remote_memory_read_u64(memory, addr + offsets->object.tp_name,
					     &ret_head->name_addr);
	return err;
}

/*
 * Get the kind by a static type's name; VALUE_OBJECT if no kind has that name. Returns false if the
 * name cannot be read.
 */
static bool kind_by_name(struct remote_memory *memory, const struct type_head *head,
			 enum value_kind *ret_kind)
{
	char name[NAME_BYTES];

	*ret_kind = VALUE_OBJECT;
	if (c_string_read(memory, head->name_addr, name, sizeof(name)) != 0)
		return false;
	for (size_t i = 0; i < sizeof(static_types) / sizeof(*static_types); i++)
		if (strcmp(name, static_types[i].name) == 0)
			*ret_kind = static_types[i].kind;
	return true;
}

/* The kind of a type that derives from a static type with a known name. */
static enum value_kind kind_by_bases(struct remote_memory *memory, const struct py_offsets *offsets,
				     struct type_head head)
{
	enum value_kind kind = VALUE_OBJECT;
	remote_addr base_addr;

	if (offsets->type.flags == OFFSET_ABSENT)
		return kind;
	for (int i = 0; i < BASES_MAX && kind == VALUE_OBJECT; i++) {
		if (remote_memory_read_u64(memory,
					   head.addr + offsets->type.flags + TYPE_BASE_AFTER_FLAGS,
					   &base_addr) != 0 ||
		    !base_addr || read_type_head(memory, offsets, base_addr, &head) != 0)
			break;
		if (!(head.flags & TYPE_HEAP))
			(void)kind_by_name(memory, &head, &kind);
	}
	return kind;
}

static int read_type(struct remote_memory *memory, const struct py_offsets *offsets,
		     remote_addr addr, struct value_type *ret_type)
{
	struct value_type type = {.addr = addr, .kind = VALUE_OBJECT, .has_name = true};
	struct type_head head;
	int err = read_type_head(memory, offsets, addr, &head);

	if (err)
		return err;
	type.is_heap = head.flags & TYPE_HEAP;
	type.is_ready = head.flags & TYPE_READY;
	if (!type.is_heap)
		type.has_name = kind_by_name(memory, &head, &type.kind);
	type.is_exact = type.kind != VALUE_OBJECT || !type.has_name;
	for (size_t i = 0; type.kind == VALUE_OBJECT && i < NR_VALUE_KINDS; i++)
		if (head.flags & flag_of_kind[i])
			type.kind = (enum value_kind)i;
	if (type.kind == VALUE_OBJECT)
		type.kind = kind_by_bases(memory, offsets, head);
	*ret_type = type;
	return 0;
}

int value_type_of(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		  struct value_type *ret_type)
{
	remote_addr type_addr;
	int err = (addr % sizeof(uint64_t)) ? -EBADMSG : 0;

	if (!err)
		err = remote_memory_read_u64(memory, addr + build->offsets.object.ob_type,
					     &type_addr);
	return err ? err : read_type(memory, &build->offsets, type_addr, ret_type);
}

int type_cache_get(struct type_cache *cache, struct remote_memory *memory,
		   const struct py_offsets *offsets, remote_addr addr, struct value_type *ret_type)
{
	/* Types are at least 16 bytes apart. */
	struct value_type *cached = &cache->types[(addr >> 4) % NR_CACHED_TYPES];
	struct value_type type;
	int err;

	if (!addr || cached->addr != addr) {
		err = read_type(memory, offsets, addr, &type);
		if (err)
			return err;
		*cached = type;
	}
	*ret_type = *cached;
	return 0;
}
