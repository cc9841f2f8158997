/* SPDX-License-Identifier: MIT */
#include "sampler/executor.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/*
 * Stacks, outermost first: "p" Python, "c" a C function, "e" an executor, "t" a trampoline, "?" a
 * hole.
 */
static bool runs(const char *stack)
{
	static const struct native_frame natives[] = {{.is_executor = false},
						      {.is_executor = true}};
	static const enum merged_kind kinds[] = {
		['p'] = MERGED_PYTHON,	   ['c'] = MERGED_NATIVE, ['e'] = MERGED_NATIVE,
		['t'] = MERGED_TRAMPOLINE, ['?'] = MERGED_HOLE,
	};
	struct merged_frame merged[16];
	uint32_t nr = 0;

	for (; stack[nr]; nr++)
		merged[nr] = (struct merged_frame){.kind = kinds[(unsigned char)stack[nr]],
						   .index = stack[nr] == 'e'};
	return executor_runs(merged, nr, natives);
}

Test(executor, stacks)
{
	static const struct {
		const char *stack;
		bool runs;
	} cases[] = {
		{"", false},	 {"p", false},	 {"cp", false},	  {"cpc", false},
		{"cpe", true},	 {"pce", true},	 {"pcecc", true}, {"pep", false},
		{"pepc", false}, {"pe?", true},	 {"p?ec", true},  {"pec?", true},
		{"epc", false},	 {"pt?", false}, {"pt?e", true},  {"ce", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect(eq(int, runs(cases[i].stack), cases[i].runs), "%s", cases[i].stack);
}

Test(executor, names)
{
	static const struct {
		const char *name;
		bool is;
	} cases[] = {
		{"py::jit:executor", true},
		{"py::jit_executor:<jit>", true},
		{"py::jit_shim:<jit>", true},
		{"py::jit:/a.py", false},
		{"py::jit:executor:/a.py", false},
		{"[jit]", false},
		{"", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect(eq(int, executor_is_name(cases[i].name), cases[i].is), "%s",
			  cases[i].name);
}
