/* SPDX-License-Identifier: MIT */
/*
 * Copies str and bytes objects out of the target. Only the fields that are
 * needed are read, never a whole header: a small object may be the last thing in
 * a mapping.
 */
#include "sampler/cpython/objects/strings.h"

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
	/* A Py_ssize_t counts the bytes, too (PyUnicode_New). */
	if (__builtin_mul_overflow(length, kind, &size_bytes) || size_bytes > INT64_MAX)
		return -EBADMSG;
	/* They are behind the struct, or at data.any (a subclass of str). */
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

size_t utf8_encode(uint32_t code_point, char ret_bytes[UTF8_MAX_BYTES])
{
	const size_t nr_bytes = code_point < 0x80      ? 1
				: code_point < 0x800   ? 2
				: code_point < 0x10000 ? 3
						       : 4;
	/* Of the first one: as many bits as there are bytes. */
	static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = nr_bytes - 1; i > 0; i--) {
		ret_bytes[i] = (char)(0x80 | (code_point & 0x3f));
		code_point >>= 6;
	}
	ret_bytes[0] = (char)(marks[nr_bytes] | code_point);
	return nr_bytes;
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
	char utf8[(size_t)STRING_MAX_CHARS * ENCODED_MAX_BYTES + sizeof(ELLIPSIS)];
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

enum { PAGE_BYTES = 4096 };

int c_string_read(struct remote_memory *memory, remote_addr addr, char *ret_text, size_t size)
{
	const size_t max_bytes = size - 1;
	size_t nr_bytes = 0, end = PAGE_BYTES - addr % PAGE_BYTES;

	assert(size >= 2 && size <= C_STRING_MAX_BYTES);
	/* One page after the other, so that a look keeps both (sampler/look_memory.h). */
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
