/* SPDX-License-Identifier: MIT */
/* str and bytes objects of every width, in memory that ends where they end. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/objects/object.h"
#include "tests/support/fake_memory.h"

#define OBJECT_ADDR 0x7f0000001000
#define CHARS_ADDR  0x7f0000802000 /* characters of a non-compact str */

/* Numbers of CPython's headers, x86-64. */
static const struct py_offsets offsets_311 = {
	.unicode = {.length = 16,
		    .state = 32,
		    .state_kind_shift = 2,
		    .ascii_data = 48,
		    .compact_data = 72,
		    .data = 72},
	.bytes = {.ob_size = 16, .ob_sval = 32},
};
static const struct py_offsets offsets_312 = {
	.unicode = {.length = 16,
		    .state = 32,
		    .state_kind_shift = 2,
		    .ascii_data = 40,
		    .compact_data = 56,
		    .data = 56},
	.bytes = {.ob_size = 16, .ob_sval = 32},
};
static const struct py_offsets offsets_314t = {
	.unicode = {.length = 32,
		    .state = 48,
		    .state_kind_shift = 8,
		    .ascii_data = 56,
		    .compact_data = 72,
		    .data = 72},
	.bytes = {.ob_size = 32, .ob_sval = 48},
};
static const struct {
	const char *name;
	const struct py_offsets *offsets;
} layouts[] = {{"3.11", &offsets_311}, {"3.12", &offsets_312}, {"3.14t", &offsets_314t}};

#define NR_LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

enum form {
	ASCII,
	COMPACT,
	NOT_COMPACT, /* an instance of a str subclass */
	NOT_COMPACT_ASCII,
};

/* The header of a str object, right or wrong. */
struct str_header {
	uint64_t length;
	uint32_t kind;
	enum form form;
};

static uint32_t state_word(const struct py_offsets *offsets, const struct str_header *header)
{
	bool compact = header->form == ASCII || header->form == COMPACT;
	bool ascii = header->form == ASCII || header->form == NOT_COMPACT_ASCII;
	uint32_t flags = header->kind | (uint32_t)compact << 3 | (uint32_t)ascii << 4;

	/* Set all other bits: interned and those above must not matter. */
	return ~(31u << offsets->unicode.state_kind_shift) |
	       flags << offsets->unicode.state_kind_shift;
}

/* Map a str object with nothing mapped after its characters. */
static void map_str(struct fake_memory *fake, const struct py_offsets *offsets,
		    const struct str_header *header, const void *chars, size_t chars_bytes)
{
	remote_addr chars_addr = CHARS_ADDR;
	size_t size_bytes = offsets->unicode.data + 8;

	if (header->form == ASCII)
		size_bytes = offsets->unicode.ascii_data + chars_bytes;
	if (header->form == COMPACT)
		size_bytes = offsets->unicode.compact_data + chars_bytes;
	fake_memory_map(fake, OBJECT_ADDR, size_bytes);
	fake_memory_write_u64(fake, OBJECT_ADDR + offsets->unicode.length, header->length);
	fake_memory_write_u32(fake, OBJECT_ADDR + offsets->unicode.state,
			      state_word(offsets, header));
	if (header->form == ASCII || header->form == COMPACT) {
		fake_memory_write(fake, OBJECT_ADDR + size_bytes - chars_bytes, chars, chars_bytes);
		return;
	}
	fake_memory_write_u64(fake, OBJECT_ADDR + offsets->unicode.data, chars_addr);
	if (chars_bytes)
		fake_memory_map_bytes(fake, chars_addr, chars, chars_bytes);
}

/* Read the object. Check the text (NULL: none expected), the error and the number of calls. */
static void expect_read(struct fake_memory *fake, const struct py_offsets *offsets,
			const char *name, int expected_err, const char *expected)
{
	static char untouched[] = "untouched";
	char *text = untouched;
	int err = string_read(&fake->memory, offsets, OBJECT_ADDR, &text);

	cr_expect(eq(int, err, expected_err), "%s", name);
	if (err) {
		cr_expect(eq(ptr, text, untouched), "%s: written on failure", name);
		return;
	}
	if (expected)
		cr_expect(strcmp(text, expected) == 0, "%s: \"%.60s\", not \"%.60s\"", name, text,
			  expected);
	cr_expect(le(u64, fake->nr_calls, 3), "%s: %lu reads", name, fake->nr_calls);
	free(text);
}

static void expect_str(const char *name, const struct str_header *header, const void *chars,
		       size_t chars_bytes, int expected_err, const char *expected)
{
	for (size_t i = 0; i < NR_LAYOUTS; i++) {
		struct fake_memory fake;

		fake_memory_init(&fake);
		map_str(&fake, layouts[i].offsets, header, chars, chars_bytes);
		expect_read(&fake, layouts[i].offsets, name, expected_err, expected);
		fake_memory_done(&fake);
	}
}

/* A valid object and its text. chars are u"" or U"" literals for widths of 2 and 4 bytes. */
struct good_str {
	const char *name;
	struct str_header header;
	const void *chars;
	const char *expected;
};

static void expect_good(const struct good_str *cases, size_t nr_cases)
{
	for (size_t i = 0; i < nr_cases; i++)
		expect_str(cases[i].name, &cases[i].header, cases[i].chars,
			   cases[i].header.length * cases[i].header.kind, 0, cases[i].expected);
}

Test(strings, converts_each_width)
{
	static const struct good_str cases[] = {
		{"empty", {0, 1, ASCII}, "", ""},
		{"ASCII", {5, 1, ASCII}, "spam\n", "spam\n"},
		{"Latin-1 is not UTF-8", {3, 1, COMPACT}, "a\x80\xff", "a\xc2\x80\xc3\xbf"},
		{"Latin-1 that looks like UTF-8", {2, 1, COMPACT}, "\xc3\xa4", "\xc3\x83\xc2\xa4"},
		{"2 bytes", {4, 2, COMPACT}, u"a\xe4\x7ff\x4e2d", "a\xc3\xa4\xdf\xbf\xe4\xb8\xad"},
		{"2 bytes, edges",
		 {4, 2, COMPACT},
		 u"\x7f\x80\x800\xffff",
		 "\x7f\xc2\x80\xe0\xa0\x80\xef\xbf\xbf"},
		{"4 bytes",
		 {3, 4, COMPACT},
		 U"a\x1f600\x10ffff",
		 "a\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf"},
		{"4 bytes, first", {1, 4, COMPACT}, U"\x10000", "\xf0\x90\x80\x80"},
		{"subclass, ASCII", {4, 1, NOT_COMPACT_ASCII}, "spam", "spam"},
		{"subclass, Latin-1", {1, 1, NOT_COMPACT}, "\xe4", "\xc3\xa4"},
		{"subclass, 2 bytes", {1, 2, NOT_COMPACT}, u"\x4e2d", "\xe4\xb8\xad"},
		{"subclass, 4 bytes", {1, 4, NOT_COMPACT}, U"\x1f600", "\xf0\x9f\x98\x80"},
	};

	expect_good(cases, sizeof(cases) / sizeof(cases[0]));
}

Test(strings, escapes_what_utf8_cannot_encode)
{
	static const struct good_str cases[] = {
		{"NUL", {3, 1, ASCII}, "a\0b", "a\\x00b"},
		{"only NUL", {1, 4, COMPACT}, U"", "\\x00"},
		{"other control characters", {3, 1, ASCII}, "\x01\x1b\x7f", "\x01\x1b\x7f"},
		{"surrogateescape", {3, 2, COMPACT}, u"x\xdc80\xdcff", "x\\udc80\\udcff"},
		{"a pair is two", {2, 2, COMPACT}, u"\xd83d\xde00", "\\ud83d\\ude00"},
		{"edges of the surrogates",
		 {4, 4, COMPACT},
		 U"\xd7ff\xd800\xdfff\xe000",
		 "\xed\x9f\xbf\\ud800\\udfff\xee\x80\x80"},
		{"no code points",
		 {3, 4, COMPACT},
		 U"\x110000\x80000000\xffffffff",
		 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"ASCII that is not", {2, 1, ASCII}, "a\xe4", "a\xc3\xa4"},
	};

	expect_good(cases, sizeof(cases) / sizeof(cases[0]));
}

/* Objects with invalid fields or pointers to unmapped memory. */
Test(strings, invalid_objects_are_refused)
{
	static const struct {
		const char *name;
		struct str_header header;
		size_t chars_bytes;
		int expected_err;
	} cases[] = {
		{"kind 0: wchar_t", {4, 0, NOT_COMPACT}, 4, -EBADMSG},
		{"kind 3", {4, 3, COMPACT}, 16, -EBADMSG},
		{"kind 5", {4, 5, COMPACT}, 16, -EBADMSG},
		{"kind 7", {4, 7, COMPACT}, 16, -EBADMSG},
		{"ASCII of 2 bytes", {4, 2, ASCII}, 16, -EBADMSG},
		{"ASCII of 4 bytes, not compact", {4, 4, NOT_COMPACT_ASCII}, 16, -EBADMSG},
		{"length -1", {UINT64_MAX, 1, ASCII}, 16, -EBADMSG},
		{"length below 0", {1ull << 63, 1, ASCII}, 16, -EBADMSG},
		{"length * 4 wraps to 4", {(1ull << 62) + 1, 4, COMPACT}, 16, -EBADMSG},
		{"length * 2 is below 0", {1ull << 62, 2, COMPACT}, 16, -EBADMSG},
		{"a character too few", {5, 1, ASCII}, 4, -EFAULT},
		{"a byte too few", {4, 4, COMPACT}, 15, -EFAULT},
		{"longer than the memory", {INT64_MAX, 1, ASCII}, STRING_MAX_CHARS - 1, -EFAULT},
		{"no characters at data.any", {4, 1, NOT_COMPACT}, 0, -EFAULT},
	};
	static const char chars[STRING_MAX_CHARS];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_str(cases[i].name, &cases[i].header, chars, cases[i].chars_bytes,
			   cases[i].expected_err, NULL);
}

Test(strings, long_text_is_cut)
{
	static const struct {
		const char *name;
		uint64_t length;
		bool cut;
	} cases[] = {
		{"one less", STRING_MAX_CHARS - 1, false},
		{"just fits", STRING_MAX_CHARS, false},
		{"one more", STRING_MAX_CHARS + 1, true},
		{"absurd, but possible", INT64_MAX / 4, true},
	};
	static uint32_t chars[STRING_MAX_CHARS];
	static char expected[STRING_MAX_CHARS * 4 + sizeof("…")];

	for (size_t i = 0; i < STRING_MAX_CHARS; i++)
		chars[i] = 0x1f600;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct str_header header = {cases[i].length, 4, COMPACT};
		size_t nr_chars = cases[i].cut ? STRING_MAX_CHARS : cases[i].length;

		for (size_t j = 0; j < nr_chars; j++)
			memcpy(expected + 4 * j, "\xf0\x9f\x98\x80", 4);
		strcpy(expected + 4 * nr_chars, cases[i].cut ? "…" : "");
		expect_str(cases[i].name, &header, chars, 4 * nr_chars, 0, expected);
	}
}

/* The longest text: only surrogates, truncated. */
Test(strings, longest_text_fits_its_buffer)
{
	static uint16_t chars[STRING_MAX_CHARS];
	static char expected[STRING_MAX_CHARS * 6 + sizeof("…")];
	const struct str_header header = {STRING_MAX_CHARS + 1, 2, COMPACT};

	for (size_t i = 0; i < STRING_MAX_CHARS; i++) {
		chars[i] = 0xdcab;
		memcpy(expected + 6 * i, "\\udcab", 6);
	}
	strcpy(expected + STRING_MAX_CHARS * 6, "…");
	expect_str("surrogates", &header, chars, sizeof(chars), 0, expected);
}

Test(strings, compact_str_costs_two_reads)
{
	struct fake_memory fake;
	const struct str_header header = {4, 1, ASCII};

	fake_memory_init(&fake);
	map_str(&fake, &offsets_312, &header, "spam", 4);
	expect_read(&fake, &offsets_312, "compact", 0, "spam");
	cr_expect(eq(u64, fake.nr_calls, 2));
	fake_memory_done(&fake);
}

Test(strings, unreadable_str_is_reported)
{
	const struct str_header header = {4, 1, ASCII};
	struct fake_memory fake;

	fake_memory_init(&fake);
	expect_read(&fake, &offsets_312, "nothing is mapped", -EFAULT, NULL);
	fake_memory_map(&fake, OBJECT_ADDR, offsets_312.unicode.state + 2);
	expect_read(&fake, &offsets_312, "half a state word", -EFAULT, NULL);
	fake_memory_unmap(&fake, OBJECT_ADDR);
	fake_memory_map(&fake, OBJECT_ADDR + offsets_312.unicode.state, 64);
	expect_read(&fake, &offsets_312, "no length", -EFAULT, NULL);
	fake_memory_unmap(&fake, OBJECT_ADDR + offsets_312.unicode.state);

	map_str(&fake, &offsets_312, &header, "spam", 4);
	fake.error = -ESRCH;
	expect_read(&fake, &offsets_312, "the target is gone", -ESRCH, NULL);
	fake.error = -EPERM;
	expect_read(&fake, &offsets_312, "not allowed", -EPERM, NULL);
	fake_memory_done(&fake);
}

/* The target ends, or the object is freed, before the second read. */
static void fail_second_call(struct fake_memory *fake, size_t range_index)
{
	if (fake->nr_calls == 1 && range_index == 1)
		fake->error = -ESRCH;
}

static void unmap_before_second_call(struct fake_memory *fake, size_t range_index)
{
	(void)range_index;
	if (fake->nr_calls == 2)
		fake_memory_unmap(fake, OBJECT_ADDR);
}

Test(strings, str_freed_between_reads_is_reported)
{
	const struct str_header header = {4, 1, ASCII};
	struct fake_memory fake;

	fake_memory_init(&fake);
	map_str(&fake, &offsets_312, &header, "spam", 4);
	fake.before_range = fail_second_call;
	expect_read(&fake, &offsets_312, "gone after the header", -ESRCH, NULL);
	fake.error = 0;
	fake.nr_calls = 0;
	fake.before_range = unmap_before_second_call;
	expect_read(&fake, &offsets_312, "freed after the header", -EFAULT, NULL);
	fake_memory_done(&fake);
}

/* Addresses come from the target, so sums that wrap around must not lead elsewhere. */
Test(strings, addresses_do_not_wrap_around)
{
	struct fake_memory fake;
	const struct str_header header = {4, 1, NOT_COMPACT};
	char *text;
	uint8_t *data;
	size_t size_bytes;

	fake_memory_init(&fake);
	fake_memory_map(&fake, 0, 4096);
	cr_expect(eq(int, string_read(&fake.memory, &offsets_312, UINT64_MAX - 7, &text), -EFAULT));
	cr_expect(eq(int,
		     bytes_read(&fake.memory, &offsets_312, UINT64_MAX - 7, 9, &data, &size_bytes),
		     -EFAULT));
	fake_memory_map(&fake, UINT64_MAX - 31, 32);
	cr_expect(eq(int, string_read(&fake.memory, &offsets_312, UINT64_MAX - 31, &text), -EFAULT),
		  "a length, but no state word");
	map_str(&fake, &offsets_312, &header, "spam", 4);
	fake_memory_write_u64(&fake, OBJECT_ADDR + offsets_312.unicode.data, UINT64_MAX - 1);
	expect_read(&fake, &offsets_312, "characters wrap around", -EBADMSG, NULL);
	fake_memory_done(&fake);
}

Test(strings, reads_bytes_up_to_the_limit)
{
	static const struct {
		const char *name;
		uint64_t ob_size;
		size_t mapped_bytes;
		size_t max_bytes;
		int expected_err;
	} cases[] = {
		{"some", 5, 5, 100, 0},
		{"none", 0, 0, 100, 0},
		{"as many as may be", 5, 5, 5, 0},
		{"one too many", 6, 6, 5, -E2BIG},
		{"absurdly many", INT64_MAX, 6, 5, -E2BIG},
		{"below 0", UINT64_MAX, 6, 100, -EBADMSG},
		{"below 0, any number allowed", 1ull << 63, 6, SIZE_MAX, -EBADMSG},
		{"one that is not mapped", 6, 5, 100, -EFAULT},
	};
	static const uint8_t content[] = {'a', 0, 0xff, 'b', 0x80, 'c'};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t j = 0; j < NR_LAYOUTS; j++) {
			const struct py_offsets *offsets = layouts[j].offsets;
			cleanup_free uint8_t *data = NULL;
			size_t size_bytes = 0;
			struct fake_memory fake;

			fake_memory_init(&fake);
			fake_memory_map(&fake, OBJECT_ADDR,
					offsets->bytes.ob_sval + cases[i].mapped_bytes);
			fake_memory_write_u64(&fake, OBJECT_ADDR + offsets->bytes.ob_size,
					      cases[i].ob_size);
			fake_memory_write(&fake, OBJECT_ADDR + offsets->bytes.ob_sval, content,
					  cases[i].mapped_bytes);
			int err = bytes_read(&fake.memory, offsets, OBJECT_ADDR, cases[i].max_bytes,
					     &data, &size_bytes);
			fake_memory_done(&fake);
			cr_expect(eq(int, err, cases[i].expected_err), "%s", cases[i].name);
			if (err)
				cr_expect(eq(ptr, data, NULL), "%s", cases[i].name);
			else
				cr_expect(size_bytes == cases[i].ob_size &&
						  !memcmp(data, content, size_bytes),
					  "%s", cases[i].name);
		}
	}
}

/* A read may cross pieces that touch, as it may cross pages in a process. */
Test(strings, reads_across_adjacent_segments)
{
	const uint32_t state = (1 | 1 << 3 | 1 << 4) << 2;
	struct fake_memory fake;

	fake_memory_init(&fake);
	fake_memory_map(&fake, OBJECT_ADDR + 42, 2);
	fake_memory_map(&fake, OBJECT_ADDR, 20);
	fake_memory_map(&fake, OBJECT_ADDR + 20, 22);
	fake_memory_write_u64(&fake, OBJECT_ADDR + offsets_312.unicode.length, 4);
	fake_memory_write_u32(&fake, OBJECT_ADDR + offsets_312.unicode.state, state);
	fake_memory_write(&fake, OBJECT_ADDR + offsets_312.unicode.ascii_data, "spam", 4);
	expect_read(&fake, &offsets_312, "seams", 0, "spam");
	fake_memory_done(&fake);
}
