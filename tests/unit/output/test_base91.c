/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/encoding/base91.h"
#include "procmem/cleanup.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static char *encode(const char *bytes, size_t length, size_t piece)
{
	char *text = NULL;
	size_t text_length;
	FILE *out = open_memstream(&text, &text_length);
	FILE *stream;

	cr_assert(eq(int, base91_open(out, &stream), 0));
	setbuf(stream, NULL); /* pass each piece on at once */
	for (size_t i = 0; i < length; i += piece) {
		size_t step = length - i < piece ? length - i : piece;

		cr_assert(eq(sz, fwrite(bytes + i, 1, step, stream), step));
	}
	cr_assert(eq(int, base91_close(stream), 0));
	cr_assert(eq(int, fclose(out), 0));
	return text;
}

/*
 * Thirteen bits are two digits, the lower one first; digits start at '#', so 8191 = 1 + 91 * 90
 * is "$}". Up to six remaining bits are one digit, up to twelve are two.
 */
Test(base91, encodes_thirteen_bits_as_two_digits)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *text;
	} cases[] = {
		{"", 0, ""},
		{"\0", 1, "##"},
		{"\x01", 1, "$#"},
		{"\xff", 1, "l%"},		  /* 73 + 91 * 2 */
		{"\xff\x1f", 2, "$}#"},		  /* then three bits */
		{"\xff\xff", 2, "$}*"},		  /* then 7 */
		{"\x19\x00", 2, "~##"},		  /* 25, skipping '<' */
		{"\xff\xff\xff", 3, "$}P9"},	  /* 45 + 91 * 22 */
		{"\xff\xff\xff\xff", 4, "$}$}b"}, /* then 63 */
		{"\xff\xff\xff\xff\xff", 5, "$}$}$}$"},
	};

	for (size_t i = 0; i < NR(cases); i++)
		for (size_t piece = 1; piece < 5; piece++) {
			cleanup_free char *text = encode(cases[i].bytes, cases[i].length, piece);

			cr_expect(eq(str, text, (char *)cases[i].text));
		}
}

/* Random bytes use the whole alphabet, which lacks '<'. */
Test(base91, encodes_more_than_its_buffer)
{
	enum { LENGTH = 100001 };
	cleanup_free char *bytes = calloc(LENGTH, 1);
	bool seen[128] = {false};
	cleanup_free char *text = NULL;
	uint32_t random = 1;

	for (size_t i = 0; i < LENGTH; i++) {
		random = random * 1664525 + 1013904223;
		bytes[i] = (char)(random >> 24);
	}
	text = encode(bytes, LENGTH, 7777);
	/* 800008 bits: 61539 pairs and one more bit. */
	cr_assert(eq(sz, strlen(text), 61539 * 2 + 1));
	for (const char *next = text; *next; next++)
		seen[*next & 0x7f] = true;
	for (int character = 0; character < 128; character++)
		cr_expect(eq(int, seen[character],
			     character >= '#' && character <= '~' && character != '<'),
			  "%d", character);
}

Test(base91, reports_a_write_error)
{
	FILE *full = fopen("/dev/full", "w");
	FILE *stream;

	setbuf(full, NULL);
	cr_assert(eq(int, base91_open(full, &stream), 0));
	cr_expect(eq(int, fputs("spam", stream) < 0, 0));
	cr_expect(eq(int, base91_close(stream), -ENOSPC));
	cr_expect(eq(int, base91_close(NULL), 0));
	(void)fclose(full);
}
