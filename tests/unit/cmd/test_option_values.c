/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "cmd/option_values.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

Test(option_values, parses_moments)
{
	static const struct {
		const char *text;
		bool is_one;
		int64_t ns;
	} cases[] = {
		{"0", true, 0},
		{"1.5s", true, 1500000000},
		{"90s", true, 90000000000},
		{"2m", true, 120000000000},
		{"-2s", true, -2000000000},
		{"-500ms", true, -500000000},
		{"-0", false, 0},
		{"--1", false, 0},
		{"-", false, 0},
		{"", false, 0},
		{"x", false, 0},
		{"1e400", false, 0},
		{"-1x", false, 0},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		int64_t ns = 0;

		cr_expect(eq(int, parse_moment(cases[i].text, &ns), cases[i].is_one), "%s",
			  cases[i].text);
		cr_expect(eq(i64, ns, cases[i].ns), "%s", cases[i].text);
	}
}

Test(option_values, parses_percents)
{
	static const struct {
		const char *text;
		bool is_one;
		double percent;
	} cases[] = {
		{"5", true, 5},	    {"2.5", true, 2.5}, {"5%", true, 5},   {"0", true, 0},
		{"100", true, 100}, {"101", false, 0},	{"-1", false, 0},  {"", false, 0},
		{"5%%", false, 0},  {"inf", false, 0},	{"5 %", false, 0},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		double percent = 0;

		cr_expect(eq(int, parse_percent(cases[i].text, &percent), cases[i].is_one), "%s",
			  cases[i].text);
		cr_expect(eq(dbl, percent, cases[i].percent), "%s", cases[i].text);
	}
}

Test(option_values, parses_counts)
{
	static const struct {
		const char *text;
		bool is_one;
		uint32_t count;
	} cases[] = {
		{"0", true, 0},	      {"30", true, 30},
		{"1000", true, 1000}, {"1001", false, 0},
		{"-1", false, 0},     {"", false, 0},
		{"3x", false, 0},     {" 3", false, 0},
		{"0x3", false, 0},    {"99999999999999999999", false, 0},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		uint32_t count = 0;

		cr_expect(eq(int, parse_count(cases[i].text, 1000, &count), cases[i].is_one), "%s",
			  cases[i].text);
		cr_expect(eq(u32, count, cases[i].count), "%s", cases[i].text);
	}
}
