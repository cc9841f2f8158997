/* SPDX-License-Identifier: MIT */
#include "sampler/executor.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/*
 * Stacks, outermost first: "p" Python, "c" a C function, "e" an executor by its name, "j" code
 * without one, "n" other code of a JIT, "?" a hole.
 */
static bool runs(const char *stack, const char *unnamed_name)
{
	static const struct function functions[] = {
		['p'] = {.qualname = "f", .path = "/a.py"},
		['c'] = {.kind = FUNCTION_NATIVE, .qualname = "sorted", .path = "/python"},
		['e'] = {.kind = FUNCTION_JIT, .qualname = "py::jit:executor", .path = ""},
		['x'] = {.kind = FUNCTION_JIT, .qualname = "py::jit_executor:<jit>", .path = ""},
		['j'] = {.kind = FUNCTION_JIT, .qualname = "[unnamed]", .path = ""},
		['n'] = {.kind = FUNCTION_JIT, .qualname = "py::jit:/a.py", .path = ""},
		['?'] = {.kind = FUNCTION_NATIVE, .qualname = "[unknown]", .path = ""},
	};
	struct frame frames[16] = {{.function = NULL}};
	uint32_t nr = 0;

	for (; stack[nr]; nr++)
		frames[nr].function = &functions[(unsigned char)stack[nr]];
	return executor_runs(frames, nr, unnamed_name);
}

Test(executor, stacks)
{
	static const struct {
		const char *stack;
		bool runs, runs_unless_unnamed_count;
	} cases[] = {
		{"", false, false},	{"p", false, false},	{"cp", false, false},
		{"cpc", false, false},	{"cpe", true, true},	{"pce", true, true},
		{"pcecc", true, true},	{"pcx", true, true},	{"pep", false, false},
		{"pepc", false, false}, {"pe?", true, true},	{"p?ec", true, true},
		{"cpj", true, false},	{"cpjcc", true, false}, {"pcj", false, false},
		{"pjp", false, false},	{"p?jc", true, false},	{"pn", false, false},
		{"pnj", false, false},	{"ce", true, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_expect(eq(int, runs(cases[i].stack, "[unnamed]"), cases[i].runs), "%s",
			  cases[i].stack);
		cr_expect(eq(int, runs(cases[i].stack, NULL), cases[i].runs_unless_unnamed_count),
			  "%s", cases[i].stack);
	}
}
