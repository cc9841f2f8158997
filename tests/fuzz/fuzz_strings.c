/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the memory around a str and a bytes object. The first byte chooses the layout; the
 * rest is mapped at INPUT_ADDR, where both objects are.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/objects/object.h"
#include "tests/support/fake_memory.h"

#define INPUT_ADDR 0x10000
#define MAX_BYTES  1000
#define NR_LAYOUTS 3

/* The longest result: only surrogates ("\udcXX"), truncated ("…"). */
#define TEXT_MAX_BYTES (STRING_MAX_CHARS * 6 + 3)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 3.11, 3.12 and newer, free-threaded 3.14 and newer */
static const struct py_offsets layouts[NR_LAYOUTS] = {
	{.unicode = {.length = 16,
		     .state = 32,
		     .state_kind_shift = 2,
		     .ascii_data = 48,
		     .compact_data = 72,
		     .data = 72},
	 .bytes = {.ob_size = 16, .ob_sval = 32}},
	{.unicode = {.length = 16,
		     .state = 32,
		     .state_kind_shift = 2,
		     .ascii_data = 40,
		     .compact_data = 56,
		     .data = 56},
	 .bytes = {.ob_size = 16, .ob_sval = 32}},
	{.unicode = {.length = 32,
		     .state = 48,
		     .state_kind_shift = 8,
		     .ascii_data = 56,
		     .compact_data = 72,
		     .data = 72},
	 .bytes = {.ob_size = 32, .ob_sval = 48}},
};

/* The length of the sequence text starts with; 0 if it is not UTF-8 (Unicode 15, table 3-7). */
static size_t utf8_length(const unsigned char *text)
{
	static const struct {
		unsigned char first_min, first_max, second_min, second_max;
		size_t length;
	} forms[] = {
		{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
		{0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
		{0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	if (*text < 0x80)
		return 1;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (text[0] < forms[i].first_min || text[0] > forms[i].first_max)
			continue;
		if (text[1] < forms[i].second_min || text[1] > forms[i].second_max)
			return 0;
		for (size_t j = 2; j < forms[i].length; j++)
			if (text[j] < 0x80 || text[j] > 0xbf)
				return 0;
		return forms[i].length;
	}
	return 0;
}

static void check_text(const char *text)
{
	const unsigned char *next = (const unsigned char *)text;

	if (strlen(text) > TEXT_MAX_BYTES)
		abort();
	while (*next) {
		size_t length = utf8_length(next);

		if (!length)
			abort();
		next += length;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake_memory fake;
	cleanup_free char *text = NULL;
	cleanup_free uint8_t *bytes = NULL;
	size_t size_bytes;

	if (size < 2)
		return 0;
	const struct py_offsets *offsets = &layouts[data[0] % NR_LAYOUTS];
	fake_memory_init(&fake);
	fake_memory_map_bytes(&fake, INPUT_ADDR, data + 1, size - 1);
	if (string_read(&fake.memory, offsets, INPUT_ADDR, &text) == 0)
		check_text(text);
	else if (text)
		abort();
	if (bytes_read(&fake.memory, offsets, INPUT_ADDR, MAX_BYTES, &bytes, &size_bytes) == 0 &&
	    (size_bytes > MAX_BYTES || size_bytes > size))
		abort();
	if (string_valid_bytes(offsets, data + 1, size - 1) > size - 1)
		abort();
	fake_memory_done(&fake);
	return 0;
}
