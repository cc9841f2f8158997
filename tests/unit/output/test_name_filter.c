/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "output/profile/name_filter.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* Names, patterns of names, and ids. */
Test(name_filter, patterns_select_names_and_ids)
{
	static const struct {
		const char *patterns[2];
		uint32_t nr;
		const char *name;
		pid_t id;
		bool passes;
	} cases[] = {
		{{NULL}, 0, "worker", 7, true},
		{{"worker"}, 1, "worker", 7, true},
		{{"worker"}, 1, "worker-1", 7, false},
		{{"worker-*"}, 1, "worker-1", 7, true},
		{{"worker-?"}, 1, "worker-12", 7, false},
		{{"*"}, 1, "", 0, true},
		{{"7"}, 1, "worker", 7, true},
		{{"7"}, 1, "worker", 77, false},
		{{"7*"}, 1, "worker", 77, false}, /* ids have no patterns */
		{{"0"}, 1, "worker", 0, false},	  /* its id is unknown */
		{{"a", "b"}, 2, "b", 7, true},
		{{"a", "b"}, 2, "c", 7, false},
		{{"[x] \\n"}, 1, "[x] \\n", 7, true}, /* a name is always its own pattern */
		{{"[xy]"}, 1, "y", 7, true},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		const struct name_filter filter = {cases[i].patterns, cases[i].nr};

		cr_expect(eq(int, name_filter_passes(&filter, cases[i].name, cases[i].id),
			     cases[i].passes),
			  "case %zu", i);
	}
}
