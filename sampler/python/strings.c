/* SPDX-License-Identifier: MIT */
/*
 * Copies str and bytes objects out of the target. Only the fields that are
 * needed are read, never a whole header: a small object may be the last thing in
 * a mapping.
 */
#include "sampler/python/strings.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"

/* Appended to a text that was cut: "…", U+2026. */
#define ELLIPSIS	  "\xe2\x80\xa6"
#define REPLACEMENT	  0xfffdu /* U+FFFD, for a number that is no code point */
#define CODE_POINT_MAX	  0x10ffffu
#define ENCODED_MAX_BYTES 6 /* of one code point: "\udc80" */

/*
 * In the state word, from state_kind_shift upwards. The kind is the bytes a
 * character has; 0 is (in 3.11 and older) that of a legacy string whose characters
 * are still wchar_t, which no name or path of a code object is.
 */
#define STATE_KIND_MASK 7u
#define STATE_COMPACT	(1u << 3) /* the characters follow the struct */
#define STATE_ASCII	(1u << 4) /* and the struct is the short one */
#define STATE_LAST_BIT	4

/* An address in an object. No object wraps around the end of the address space. */
static int field_addr(remote_addr object, uint64_t offset, remote_addr *ret_addr)
{
	return __builtin_add_overflow(object, offset, ret_addr) ? -EFAULT : 0;
}

/* The length and the state word of the str object at addr, read at one go. */
static int read_header(struct remote_memory *memory, const struct py_offsets *offsets,
		       remote_addr addr, uint64_t *ret_length, uint32_t *ret_state)
{
	uint64_t length = 0;
	uint32_t state = 0;
	struct remote_range fields[2] = {
		{.buffer = &length, .size = sizeof(length)},
		{.buffer = &state, .size = sizeof(state)},
	};
	int err = field_addr(addr, offsets->unicode.length, &fields[0].addr);

	if (!err)
		err = field_addr(addr, offsets->unicode.state, &fields[1].addr);
	if (!err)
		err = remote_memory_read_all(memory, fields, 2);
	if (err)
		return err;
	*ret_length = length;
	*ret_state = state;
	return 0;
}

/* Where the characters start: behind the struct, or at data.any (a subclass of str). */
static int find_chars(struct remote_memory *memory, const struct py_offsets *offsets,
		      remote_addr addr, uint32_t flags, remote_addr *ret_addr)
{
	remote_addr data_addr;
	int err;

	if (flags & STATE_COMPACT && flags & STATE_ASCII)
		return field_addr(addr, offsets->unicode.ascii_data, ret_addr);
	if (flags & STATE_COMPACT)
		return field_addr(addr, offsets->unicode.compact_data, ret_addr);
	err = field_addr(addr, offsets->unicode.data, &data_addr);
	if (err)
		return err;
	return remote_memory_read_u64(memory, data_addr, ret_addr);
}

int string_find(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
		struct remote_text *ret_text)
{
	uint64_t length;
	uint64_t size_bytes;
	remote_addr chars_addr;
	remote_addr end;
	uint32_t state;
	int err;

	assert(offsets->unicode.state_kind_shift < 32 - STATE_LAST_BIT);
	err = read_header(memory, offsets, addr, &length, &state);
	if (err)
		return err;
	uint32_t flags = state >> offsets->unicode.state_kind_shift;
	uint32_t kind = flags & STATE_KIND_MASK;
	if (kind != 1 && kind != 2 && kind != 4)
		return -EBADMSG;
	if (flags & STATE_ASCII && kind != 1)
		return -EBADMSG;
	/* A Py_ssize_t counts the bytes, too (PyUnicode_New). */
	if (__builtin_mul_overflow(length, kind, &size_bytes) || size_bytes > INT64_MAX)
		return -EBADMSG;
	err = find_chars(memory, offsets, addr, flags, &chars_addr);
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

static char continuation(uint32_t bits)
{
	return (char)(0x80 | (bits & 0x3f));
}

size_t utf8_encode(uint32_t code_point, char ret_bytes[UTF8_MAX_BYTES])
{
	if (code_point < 0x80) {
		ret_bytes[0] = (char)code_point;
		return 1;
	}
	if (code_point < 0x800) {
		ret_bytes[0] = (char)(0xc0 | code_point >> 6);
		ret_bytes[1] = continuation(code_point);
		return 2;
	}
	if (code_point < 0x10000) {
		ret_bytes[0] = (char)(0xe0 | code_point >> 12);
		ret_bytes[1] = continuation(code_point >> 6);
		ret_bytes[2] = continuation(code_point);
		return 3;
	}
	ret_bytes[0] = (char)(0xf0 | code_point >> 18);
	ret_bytes[1] = continuation(code_point >> 12);
	ret_bytes[2] = continuation(code_point >> 6);
	ret_bytes[3] = continuation(code_point);
	return 4;
}

/*
 * One character as UTF-8, or as the text that stands for it: str may hold what
 * UTF-8 may not (surrogates, each on its own) and what ends a C string. Returns
 * how many bytes were written.
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
	char utf8[STRING_MAX_CHARS * ENCODED_MAX_BYTES + sizeof(ELLIPSIS)];
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
	(void)stpcpy(end, nr_chars < text.nr_chars ? ELLIPSIS : "");
	/* Of its exact size: it is kept as long as its code object. */
	end = strdup(utf8);
	if (!end)
		return -ENOMEM;
	*ret_text = end;
	return 0;
}

int bytes_read(struct remote_memory *memory, const struct py_offsets *offsets, remote_addr addr,
	       size_t max_bytes, uint8_t **ret_data, size_t *ret_size_bytes)
{
	remote_addr size_addr;
	remote_addr data_addr;
	remote_addr end;
	uint64_t size_bytes;
	int err = field_addr(addr, offsets->bytes.ob_size, &size_addr);

	if (!err)
		err = field_addr(addr, offsets->bytes.ob_sval, &data_addr);
	if (!err)
		err = remote_memory_read_u64(memory, size_addr, &size_bytes);
	if (err)
		return err;
	if (size_bytes > INT64_MAX || __builtin_add_overflow(data_addr, size_bytes, &end))
		return -EBADMSG;
	if (size_bytes > max_bytes)
		return -E2BIG;

	/* malloc(0) may give NULL, which would look like a lack of memory. */
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

/* The kind, and whether it is compact and ASCII, of a str that was read from its length on. */
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

size_t string_own_bytes(const struct py_offsets *offsets, const uint8_t *bytes, size_t size_bytes)
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

size_t string_head_bytes(const struct py_offsets *offsets, size_t nr_chars)
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
	       memcmp(bytes + string_head_bytes(offsets, 0), text, nr_chars) == 0;
}
