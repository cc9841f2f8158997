/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "output/text/text_width.h"

/* Characters of one column (a), two (中) and none (a combining accent). */
static const struct {
	const char *string;
	size_t max_width;
	size_t width; /* of string */
	const char *head, *tail;
} cases[] = {
	{"", 1, 0, "", ""},
	{"abc", 3, 3, "abc", "abc"},
	{"abcd", 3, 4, "ab…", "…cd"},
	{"abcd", 1, 4, "…", "…"},
	{"中文名", 6, 6, "中文名", "中文名"},
	{"中文名", 5, 6, "中文…", "…文名"},
	{"中文名", 4, 6, "中…", "…名"},
	{"中文名", 2, 6, "…", "…"},
	{"e\xcc\x81"
	 "abc",
	 4, 4,
	 "e\xcc\x81"
	 "abc",
	 "e\xcc\x81"
	 "abc"},
	{"e\xcc\x81"
	 "abc",
	 3, 4,
	 "e\xcc\x81"
	 "a…",
	 "…bc"},
};

Test(text_width, cuts_to_a_width)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct text head = {0};
		struct text tail = {0};
		size_t used;

		cr_expect(eq(sz, text_width(cases[i].string), cases[i].width));
		text_append_head(&head, cases[i].string, cases[i].max_width);
		used = text_append_tail(&tail, cases[i].string, cases[i].max_width);
		cr_expect(eq(str, (char *)text_string(&head), (char *)cases[i].head));
		cr_expect(eq(str, (char *)text_string(&tail), (char *)cases[i].tail));
		cr_expect(eq(sz, used, text_width(text_string(&tail))));
		text_done(&head);
		text_done(&tail);
	}
}
