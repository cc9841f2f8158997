/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "output/page/flamegraph_html.h"
#include "procmem/cleanup.h"
#include "tests/support/artefact_text.h"
#include "tests/support/made_sample.h"
#include "tests/support/processes.h"

#define NASTY "</script><img src=x onerror=alert(1)>&\"\n\033[1m\xff"

enum { MAX_DATA_BYTES = 1 << 20 };

static const struct function functions[] = {
	{0, 1, "<module>", "/srv/app.py", FUNCTION_PYTHON},
	{1, 7, NASTY, "/srv/" NASTY ".py", FUNCTION_PYTHON},
};
static const struct frame stack[] = {{&functions[0], 3}, {&functions[1], 9}, {&functions[1], 8}};
static const struct sample_thread thread = {.tid = 42, .name = NASTY};

static struct profile *make_profile(void)
{
	const struct profile_options options = {.by_line = true, .keep_samples = true};
	struct profile *profile = profile_create(&options);

	cr_assert(profile != NULL);
	cr_assert(eq(int, add_process(profile, 42, NASTY), 0));
	for (uint32_t i = 1; i <= 3; i++)
		cr_assert(eq(int, push_sample(profile, &thread, stack, i, 0, 1000000), 0));
	return profile;
}

static char *write_page(const struct profile *profile)
{
	const struct run run = {.info = {.target.command_line = NASTY, .pysample.version = NASTY}};
	const struct artefact artefact = {.profile = profile, .runs = &run, .nr_runs = 1};
	size_t size;
	char *text = artefact_text(flamegraph_html_write, &artefact, &size);

	cr_assert(eq(sz, strlen(text), size));
	return text;
}

static uint32_t base91_digit(char character)
{
	if (character == '<')
		return 0; /* past the end */
	return (uint32_t)((character == '~' ? '<' : character) - '#');
}

/* Decode base 91 up to the end of the element. Returns the number of bytes. */
static size_t decode_base91(const char *text, unsigned char *bytes)
{
	size_t nr_digits = strcspn(text, "<");
	size_t length = (nr_digits / 2 * 13 + nr_digits % 2 * 6) / 8;
	size_t at = 0;
	uint32_t bits = 0;
	unsigned int nr_bits = 0;

	for (size_t i = 0; i < nr_digits; i += 2) {
		bits |= (base91_digit(text[i]) + 91 * base91_digit(text[i + 1])) << nr_bits;
		for (nr_bits += 13; nr_bits > 7; nr_bits -= 8, bits >>= 8)
			if (at < length)
				bytes[at++] = (unsigned char)bits;
	}
	return length;
}

/* The unpacked data of a page, NUL-terminated. */
static char *read_data(const char *page, size_t *ret_length)
{
	static const char start[] = "<script type=\"text/plain\" id=\"pysample-data\">";
	const char *text = strstr(page, start);
	cleanup_free unsigned char *packed = malloc(strlen(page));
	char *data = calloc(MAX_DATA_BYTES, 1);
	z_stream zlib = {.next_out = (Bytef *)data, .avail_out = MAX_DATA_BYTES - 1};

	cr_assert(text != NULL);
	zlib.next_in = packed;
	zlib.avail_in = (uInt)decode_base91(text + sizeof(start) - 1, packed);
	cr_assert(eq(int, inflateInit2(&zlib, 15 + 16), Z_OK));
	cr_assert(eq(int, inflate(&zlib, Z_FINISH), Z_STREAM_END));
	*ret_length = zlib.total_out;
	(void)inflateEnd(&zlib);
	return data;
}

/* The sum of the column sizes given in the header. */
static size_t sum_bytes(const char *meta)
{
	static const char key[] = "\"bytes\":";
	size_t sum = 0;

	for (const char *next = strstr(meta, "\"columns\":"); (next = strstr(next, key)); next++)
		sum += strtoul(next + sizeof(key) - 1, NULL, 10);
	return sum;
}

Test(flamegraph_html, holds_the_complete_data)
{
	struct profile *profile = make_profile();
	cleanup_free char *page = write_page(profile);
	size_t length;
	cleanup_free char *data = read_data(page, &length);
	const unsigned char *size = (const unsigned char *)data;
	size_t meta_bytes = size[0] | size[1] << 8 | size[2] << 16 | (size_t)size[3] << 24;
	cleanup_free char *meta = strndup(data + 4, meta_bytes);

	cr_assert(meta_bytes < length);
	cr_expect(eq(sz, 4 + meta_bytes + sum_bytes(meta), length));
	cr_expect(eq(int, strncmp(meta, "{\"version\":1,\"pysample\":\"", 24), 0));
	cr_expect(strstr(meta, "\"has_base\":false") != NULL);
	cr_expect(strstr(meta, "\"threads\":[{\"process\":0,\"tid\":42,\"name\":") != NULL);
	cr_expect(strstr(meta, "\"kinds\":[\"python\",\"collector\",") != NULL);
	cr_expect(strstr(meta, "{\"name\":\"sample.weight\",\"type\":\"s\",\"count\":3,") != NULL);
	cr_expect(eq(int, meta[meta_bytes - 1], '\n'));
	profile_destroy(profile);
}

/*
 * Outside the data and the viewer's own code, names occur only in the title and the table,
 * escaped.
 */
Test(flamegraph_html, escapes_markup_of_the_target)
{
	struct profile *profile = make_profile();
	cleanup_free char *page = write_page(profile);

	cr_expect(eq(int, strncmp(page, "<!doctype html>\n", 16), 0));
	cr_expect(strstr(page, "<img") == NULL);
	cr_expect(strchr(page, '\033') == NULL);
	cr_expect(strchr(page, '\xff') == NULL);
	cr_expect(strstr(page, "<title>&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&amp;&quot;"
			       "\\x0a\\x1b[1m\\xff - pysample</title>") != NULL);
	cr_expect(strstr(page, "default-src 'none'; script-src 'unsafe-inline';") != NULL);
	profile_destroy(profile);
}

/* The two lines of the recursive function are one row, counted once. */
Test(flamegraph_html, has_a_table_without_script)
{
	struct profile *profile = make_profile();
	cleanup_free char *page = write_page(profile);
	const char *table = strstr(page, "<noscript>");

	cr_assert(table != NULL);
	table = strstr(table, "<tr><td>");
	cr_assert(table != NULL);
	cr_expect(eq(
		int,
		strncmp(table, "<tr><td>0.002 s<td>66.7%<td>0.002 s<td>66.7%<td>&lt;/script", 59),
		0));
	cr_expect(strstr(table, "<tr><td>0.001 s<td>33.3%<td>0.003 s<td>100.0%"
				"<td>&lt;module&gt; (/srv/app.py:1)\n</table>") != NULL);
	profile_destroy(profile);
}

Test(flamegraph_html, reports_a_write_error)
{
	struct profile *profile = make_profile();
	const struct run run = {0};
	const struct artefact artefact = {.profile = profile, .runs = &run, .nr_runs = 1};
	FILE *full = fopen("/dev/full", "w");

	cr_expect(eq(int, flamegraph_html_write(&artefact, full), -ENOSPC));
	(void)fclose(full);
	profile_destroy(profile);
}
