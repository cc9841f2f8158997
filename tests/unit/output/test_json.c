/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/text/json.h"
#include "procmem/cleanup.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* The JSON written by a test. */
struct json_text {
	struct json json;
	FILE *out;
	char *text;
	size_t size;
};

static void json_text_open(struct json_text *written, unsigned indent)
{
	written->out = open_memstream(&written->text, &written->size);
	cr_assert(written->out != NULL);
	json_init(&written->json, written->out, indent);
}

static void json_text_expect(struct json_text *written, const char *expected)
{
	cr_expect(eq(int, json_finish(&written->json), 0));
	cr_assert(eq(int, fclose(written->out), 0));
	cr_expect(eq(str, written->text, (char *)expected));
	free(written->text);
}

static void write_sample(struct json *json)
{
	json_object_begin(json);
	json_key(json, "empty");
	json_array_begin(json);
	json_array_end(json);
	json_key(json, "list");
	json_array_begin(json);
	json_u64(json, UINT64_MAX);
	json_i64(json, INT64_MIN);
	json_object_begin(json);
	json_object_end(json);
	json_array_begin(json);
	json_bool(json, true);
	json_bool(json, false);
	json_null(json);
	json_array_end(json);
	json_string(json, NULL);
	json_array_end(json);
	json_key(json, "a\"b");
	json_string(json, "x");
	json_object_end(json);
}

/* The documents of JSON Lines are independent. */
Test(json, lines_are_independent_documents)
{
	struct json_text written;

	json_text_open(&written, 0);
	json_u64(&written.json, 1);
	json_next(&written.json);
	json_object_begin(&written.json);
	json_object_end(&written.json);
	json_next(&written.json);
	json_null(&written.json);
	json_text_expect(&written, "1\n{}\nnull\n");
}

Test(json, separates_values_with_commas)
{
	struct json_text written;

	json_text_open(&written, 0);
	write_sample(&written.json);
	json_text_expect(&written,
			 "{\"empty\":[],\"list\":[18446744073709551615,"
			 "-9223372036854775808,{},[true,false,null],null],\"a\\\"b\":\"x\"}\n");
}

Test(json, indents_nested_values)
{
	struct json_text written;

	json_text_open(&written, 2);
	write_sample(&written.json);
	json_text_expect(&written, "{\n"
				   "  \"empty\": [],\n"
				   "  \"list\": [\n"
				   "    18446744073709551615,\n"
				   "    -9223372036854775808,\n"
				   "    {},\n"
				   "    [\n"
				   "      true,\n"
				   "      false,\n"
				   "      null\n"
				   "    ],\n"
				   "    null\n"
				   "  ],\n"
				   "  \"a\\\"b\": \"x\"\n"
				   "}\n");
}

Test(json, escapes_strings)
{
	static const struct {
		const char *bytes, *expected;
	} cases[] = {
		{"", "\"\"\n"},
		{"a/b", "\"a/b\"\n"},
		{"\"\\", "\"\\\"\\\\\"\n"},
		{"a\n\t\033", "\"a\\u000a\\u0009\\u001b\"\n"},
		{"\x7f\xc2\x85", "\"\\u007f\\u0085\"\n"},
		{"\xe2\x80\xa8", "\"\\u2028\"\n"},
		{"\xe4\xb8\xad\xf0\x9f\x90\x8d", "\"\xe4\xb8\xad\xf0\x9f\x90\x8d\"\n"},
		{"a\xff\xe2\x80z", "\"a\\ufffd\\ufffd\\ufffdz\"\n"},
		{"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"\n"},
	};
	struct json_text written;

	for (size_t i = 0; i < NR(cases); i++) {
		json_text_open(&written, 0);
		json_string(&written.json, cases[i].bytes);
		json_text_expect(&written, cases[i].expected);
	}
	json_text_open(&written, 0);
	json_string_n(&written.json, "a\0b", 3);
	json_text_expect(&written, "\"a\\u0000b\"\n");
}

Test(json, writes_doubles_exactly)
{
	static const struct {
		double value;
		const char *expected;
	} cases[] = {
		{0, "0\n"},	      {-0.0, "-0\n"},
		{0.1, "0.1\n"},	      {1.0 / 3, "0.3333333333333333\n"},
		{1e300, "1e+300\n"},  {-2.5, "-2.5\n"},
		{1000, "1000\n"},     {999.5, "999.5\n"},
		{HUGE_VAL, "null\n"}, {-HUGE_VAL, "null\n"},
		{NAN, "null\n"},
	};
	static const double exact[] = {DBL_MAX, DBL_MIN, DBL_TRUE_MIN, 0.1 + 0.2,
				       12345.678901234567};
	struct json_text written;

	for (size_t i = 0; i < NR(cases); i++) {
		json_text_open(&written, 0);
		json_double(&written.json, cases[i].value);
		json_text_expect(&written, cases[i].expected);
	}
	for (size_t i = 0; i < NR(exact); i++) {
		json_text_open(&written, 0);
		json_double(&written.json, exact[i]);
		cr_assert(eq(int, json_finish(&written.json), 0));
		cr_assert(eq(int, fclose(written.out), 0));
		cr_expect(strtod(written.text, NULL) == exact[i], "%s", written.text);
		free(written.text);
	}
}

Test(json, writes_whole_numbers)
{
	static const struct {
		int64_t value;
		const char *expected;
	} cases[] = {
		{0, "0\n"},
		{-1, "-1\n"},
		{1000, "1000\n"},
		{INT64_MAX, "9223372036854775807\n"},
		{INT64_MIN, "-9223372036854775808\n"},
	};
	struct json_text written;

	for (size_t i = 0; i < NR(cases); i++) {
		json_text_open(&written, 0);
		json_i64(&written.json, cases[i].value);
		json_text_expect(&written, cases[i].expected);
	}
	json_text_open(&written, 0);
	json_u64(&written.json, UINT64_MAX);
	json_text_expect(&written, "18446744073709551615\n");
}

Test(json, writes_fixed_point_numbers)
{
	static const struct {
		uint64_t value;
		unsigned decimals;
		const char *expected;
	} cases[] = {
		{0, 0, "0\n"},
		{0, 6, "0\n"},
		{1500, 3, "1.5\n"},
		{1500, 0, "1500\n"},
		{1000000, 6, "1\n"},
		{7, 6, "0.000007\n"},
		{10203040, 6, "10.20304\n"},
		{1, JSON_MAX_DECIMALS, "0.000000000000000001\n"},
		{UINT64_MAX, JSON_MAX_DECIMALS, "18.446744073709551615\n"},
	};
	struct json_text written;

	for (size_t i = 0; i < NR(cases); i++) {
		json_text_open(&written, 0);
		json_fixed(&written.json, cases[i].value, cases[i].decimals);
		json_text_expect(&written, cases[i].expected);
	}
}

/* Every byte and every pair of bytes, read back by Python's parser. */
Test(json, python_can_read_it)
{
	FILE *out;
	struct json json;

	if (system("python3 -c 0 >/dev/null 2>&1") != 0)
		cr_skip("no python3");
	out = popen(
		"python3 -c 'import json, sys; d = json.load(sys.stdin.buffer);"
		"sys.exit(not (len(d) == 65536 and d[0x4142] == \"AB\" and d[0x0a22] == \"\\n\\\"\""
		" and d[0xc3a9] == \"\\u00e9\" and d[0xff41] == \"\\ufffdA\"))'",
		"w");
	cr_assert(out != NULL);
	json_init(&json, out, 1);
	json_array_begin(&json);
	for (unsigned i = 0; i < 65536; i++) {
		const char bytes[2] = {(char)(i >> 8), (char)i};

		json_string_n(&json, bytes, sizeof(bytes));
	}
	json_array_end(&json);
	cr_expect(eq(int, json_finish(&json), 0));
	cr_expect(eq(int, pclose(out), 0));
}

Test(json, keeps_the_first_error)
{
	FILE *out = fopen("/dev/full", "w");
	struct json json;

	if (!out)
		cr_skip("no /dev/full");
	json_init(&json, out, 0);
	json_array_begin(&json);
	for (int i = 0; i < 10000; i++)
		json_i64(&json, i);
	cr_expect(eq(int, json.error, -ENOSPC));
	json_array_end(&json);
	cr_expect(eq(int, json_finish(&json), -ENOSPC));
	(void)fclose(out);
}

Test(json, reports_a_write_error_at_the_end)
{
	FILE *out = fopen("/dev/full", "w");
	struct json json;

	if (!out)
		cr_skip("no /dev/full");
	json_init(&json, out, 0);
	json_null(&json);
	cr_expect(eq(int, json.error, 0));
	cr_expect(eq(int, json_finish(&json), -ENOSPC));
	(void)fclose(out);
}
