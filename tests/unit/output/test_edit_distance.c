/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "output/text/edit_distance.h"

#define LONG_64 "aaaaaaaabbbbbbbbccccccccddddddddeeeeeeeeffffffffgggggggghhhhhhhh"

Test(edit_distance, counts_edits)
{
	static const struct {
		const char *left, *right;
		unsigned distance;
	} cases[] = {
		{"", "", 0},
		{"", "abc", 3},
		{"parse", "parse", 0},
		{"Parse", "pARSE", 0},
		{"work", "wrok", 1},
		{"work", "worker", 2},
		{"parse", "prase_", 2},
		{"kitten", "sitting", 3},
		{"ca", "abc", 3},
		{"\xc3\xa9t", "et", 2},
		{LONG_64, LONG_64, 0},
		{LONG_64, "", 64},
		{LONG_64 "i", LONG_64, EDIT_DISTANCE_NONE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cr_expect(eq(uint, edit_distance(cases[i].left, cases[i].right), cases[i].distance),
			  "%s %s", cases[i].left, cases[i].right);
		cr_expect(eq(uint, edit_distance(cases[i].right, cases[i].left), cases[i].distance),
			  "%s %s", cases[i].right, cases[i].left);
	}
}
