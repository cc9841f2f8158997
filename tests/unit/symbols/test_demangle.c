/* SPDX-License-Identifier: MIT */
#include "symbols/elf/demangle.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

Test(demangle, demangles_names)
{
	static const struct {
		const char *symbol;
		const char *name; /* NULL: not a C++ symbol */
	} cases[] = {
		{"_ZN3foo3barEi", "foo::bar(int)"},
		{"_ZNSt6vectorIiSaIiEE9push_backEOi",
		 "std::vector<int, std::allocator<int> >::push_back(int&&)"},
		{"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
		{"_RNvCskwGfYPst2Cb_3foo3bar", "foo::bar"},
		{"_PyEval_EvalFrameDefault", NULL},
		{"main", NULL},
		{"_Z", NULL},
		{"_ZN", NULL},
		{"", NULL},
	};
	char name[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const bool is_name = demangle(cases[i].symbol, name, sizeof(name));

		cr_expect(eq(int, is_name, cases[i].name != NULL), "%s", cases[i].symbol);
		if (is_name)
			cr_expect(eq(str, name, (char *)cases[i].name));
	}
}

/* Each type is a pair of the previous one, so the name would have 2^34 letters. */
Test(demangle, growing_names_are_bounded)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char symbol[1024] = "_Z1f1PI1aS0_E";
	char name[256];

	for (size_t i = 1; i < sizeof(digits) - 1; i++) {
		char pair[16];

		(void)snprintf(pair, sizeof(pair), "S_IS%c_S%c_E", digits[i], digits[i]);
		(void)strcat(symbol, pair);
		if (i == 1) { /* still short enough */
			cr_expect(demangle(symbol, name, sizeof(name)));
			cr_expect(eq(str, name, (char *)"f(P<a, a>, P<P<a, a>, P<a, a> >)"));
		}
	}
	cr_expect(not(demangle(symbol, name, sizeof(name))));
}

Test(demangle, buffer_must_hold_the_name)
{
	char name[14];

	cr_expect(demangle("_ZN3foo3barEi", name, 14));
	cr_expect(not(demangle("_ZN3foo3barEi", name, 13)));
	cr_expect(not(demangle("_ZN3foo3barEi", name, 0)));
}
