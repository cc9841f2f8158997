/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/base64.h"
#include "procmem/cleanup.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static char *encode(const char *bytes, size_t length, size_t piece)
{
	char *text = NULL;
	size_t text_length;
	FILE *out = open_memstream(&text, &text_length);
	FILE *stream;

	cr_assert(eq(int, base64_open(out, &stream), 0));
	setbuf(stream, NULL); /* so that each piece arrives by itself */
	for (size_t i = 0; i < length; i += piece) {
		size_t step = length - i < piece ? length - i : piece;

		cr_assert(eq(sz, fwrite(bytes + i, 1, step, stream), step));
	}
	cr_assert(eq(int, base64_close(stream), 0));
	cr_assert(eq(int, fclose(out), 0));
	return text;
}

/* RFC 4648, section 10, and bytes that need all of the alphabet. */
Test(base64, encodes_as_the_standard_says)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *text;
	} cases[] = {
		{"", 0, ""},
		{"f", 1, "Zg=="},
		{"fo", 2, "Zm8="},
		{"foo", 3, "Zm9v"},
		{"foob", 4, "Zm9vYg=="},
		{"fooba", 5, "Zm9vYmE="},
		{"foobar", 6, "Zm9vYmFy"},
		{"\xfb\xff\x00", 3, "+/8A"},
		{"\0", 1, "AA=="},
	};

	for (size_t i = 0; i < NR(cases); i++)
		for (size_t piece = 1; piece < 8; piece++) {
			cleanup_free char *text = encode(cases[i].bytes, cases[i].length, piece);

			cr_expect(eq(str, text, (char *)cases[i].text));
		}
}

Test(base64, encodes_more_than_its_buffer)
{
	enum { LENGTH = 100001 };
	cleanup_free char *bytes = calloc(LENGTH, 1);
	cleanup_free char *text = encode(bytes, LENGTH, 7777);

	cr_assert(eq(sz, strlen(text), (LENGTH + 2) / 3 * 4));
	cr_expect(eq(sz, strspn(text, "A"), strlen(text) - 1));
	cr_expect(eq(chr, text[strlen(text) - 1], '='));
}

Test(base64, tells_that_its_file_failed)
{
	FILE *full = fopen("/dev/full", "w");
	FILE *stream;

	setbuf(full, NULL);
	cr_assert(eq(int, base64_open(full, &stream), 0));
	cr_expect(eq(int, fputs("spam", stream) < 0, 0));
	cr_expect(eq(int, base64_close(stream), -ENOSPC));
	cr_expect(eq(int, base64_close(NULL), 0));
	(void)fclose(full);
}
