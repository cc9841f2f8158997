/* SPDX-License-Identifier: MIT */
#include "sampler/native/merged_stack.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"

#define MAX 16

/*
 * Python frames, outermost first: "E" begins an activation, "." goes on in it, "H" is a hole that
 * begins one; entry_addrs are those of each, 0: not told. Native ones, innermost first, are "n",
 * "L" for a loop, "T" and "W" for trampolines of the Python functions and of another one, "t" for
 * one without a name; the i-th has [0x100 * i, 0x100 * (i + 1)) of the stack. merged: of both,
 * outermost first, "p0 n3 ?"; "t3" is a native one that stands for the next.
 */
struct stack_case {
	const char *name;
	const char *python;
	uint64_t entry_addrs[MAX];
	const char *natives;
	bool is_whole;
	const char *merged;
};

static const char *merge(const struct stack_case *stack)
{
	static char text[256];
	struct frame frames[MAX] = {{0}};
	static const struct function loop = {.qualname = MERGED_STACK_LOOP ".cold"};
	static const struct function other = {.qualname = "_PyEval_Vector"};
	static const struct function python = {.qualname = "f", .path = "/a.py"};
	static const struct function hole = {.kind = FUNCTION_NATIVE, .qualname = "f"};
	static const struct function of_python = {.qualname = "py::f:/a.py"};
	static const struct function of_other = {.qualname = "py::f:/a.p"};
	struct frame_detail details[MAX] = {{0}};
	struct native_frame natives[MAX];
	struct sample sample = {.frames = frames, .details = details};
	cleanup_free struct merged_frame *merged = NULL;
	size_t length = 0;
	uint32_t nr = 0;

	for (; stack->python[sample.nr_frames]; sample.nr_frames++) {
		const char letter = stack->python[sample.nr_frames];

		frames[sample.nr_frames].function = letter == 'H' ? &hole : &python;
		details[sample.nr_frames].is_entry = letter != '.';
		details[sample.nr_frames].entry_addr = stack->entry_addrs[sample.nr_frames];
	}
	for (; stack->natives[nr]; nr++) {
		const char letter = stack->natives[nr];

		natives[nr] = (struct native_frame){
			.sp_addr = 0x100 * nr,
			.cfa_addr = 0x100 * (nr + 1),
			.trampoline_addr = strchr("TWt", letter) ? 0x7000 : 0,
			.function = letter == 'L'   ? &loop
				    : letter == 'T' ? &of_python
				    : letter == 'W' ? &of_other
				    : letter == 't' ? NULL
						    : &other,
		};
	}
	if (!stack->is_whole)
		natives[nr - 1].cfa_addr = 0;
	cr_assert(
		zero(int, merged_stack_make(&sample, natives, nr, stack->is_whole, &merged, &nr)));
	text[0] = '\0';
	for (uint32_t i = 0; i < nr; i++) {
		const char *separator = i ? " " : "";

		if (merged[i].kind == MERGED_HOLE)
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s?",
						   separator);
		else
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%c%u",
						   separator,
						   merged[i].kind == MERGED_PYTHON   ? 'p'
						   : merged[i].kind == MERGED_NATIVE ? 'n'
										     : 't',
						   merged[i].index);
	}
	return text;
}

Test(merged_stack, cases)
{
	static const struct stack_case cases[] = {
		{"no Python", "", {0}, "nn", true, "n1 n0"},
		{"by address",
		 "E..E",
		 {0x410, 0, 0, 0x108},
		 "nnnnnn",
		 true,
		 "n5 p0 p1 p2 n3 n2 p3 n0"},
		{"names do not matter then", "E", {0x110}, "LnL", true, "n2 p0 n0"},
		{"the loop is innermost", "E", {0x10}, "nn", true, "n1 p0"},
		{"at the start of its frame", "E", {0x100}, "nnn", true, "n2 p0 n0"},
		{"a hole outside", "EE", {0x900, 0x110}, "nnn", false, "p0 ? n2 p1 n0"},
		{"a hole, all placed", "E", {0x110}, "nnn", false, "? n2 p0 n0"},
		{"a hole at once", "EE", {0x900, 0x800}, "n", false, "p0 ? p1 ? n0"},
		{"a stack put aside",
		 "EEE",
		 {0x310, 0x9990, 0x110},
		 "nnnn",
		 true,
		 "p0 ? p1 ? n2 p2 n0"},
		{"out of order", "EE", {0x110, 0x310}, "nnnn", true, "p0 ? p1 n2 n1 n0"},
		{"two in one frame", "EE", {0x120, 0x110}, "nnn", true, "p0 ? n2 p1 n0"},
		{"by count", "EE.E", {0}, "nLnLLn", true, "n5 p0 p1 p2 n2 p3 n0"},
		{"a loop that has no frame yet", "EE", {0}, "LnLnL", true, "p0 n3 p1 n1 n0"},
		{"two too many", "E", {0}, "LLLn", true, "p0 ? n3 n2 n1 n0"},
		{"one too few", "EE", {0}, "nLn", true, "p0 ? p1 ? n2 n1 n0"},
		{"by count up to a hole", "EEE", {0}, "nLnLn", false, "p0 ? n4 p1 n2 p2 n0"},
		{"too many, and a hole", "E", {0}, "LLn", false, "p0 ? n2 n1 n0"},
		{"does not say where it begins",
		 "..E",
		 {0, 0, 0x110},
		 "nnn",
		 true,
		 "p0 p1 ? n2 p2 n0"},
		{"trampolines", "EE", {0x410, 0x110}, "nnTnnt", true, "t5 p0 n3 t2 p1 n0"},
		{"of another function", "E", {0x10}, "nW", true, "n1 p0"},
		{"not called the loop", "E", {0x10}, "nnT", true, "n2 n1 p0"},
		{"before it calls", "E", {0x110}, "Tn", true, "p0 n0"},
		{"of a frame behind a hole", "H", {0x10}, "nt", true, "n1 p0"},
		{"of the first frame of a loop", "E.", {0x10, 0}, "nT", true, "t1 p0 p1"},
		{"by count", "E", {0}, "tLt", true, "t2 p0 n0"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect(eq(str, (char *)merge(&cases[i]), (char *)cases[i].merged), "%s",
			  cases[i].name);
}

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
	return merged_stack_runs_executor(merged, nr, natives);
}

Test(merged_stack, runs_an_executor)
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
