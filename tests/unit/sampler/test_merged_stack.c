/* SPDX-License-Identifier: MIT */
#include "sampler/native/merged_stack.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fake_python.h"

#define MAX 16

/*
 * python: the Python frames, outermost first. "E" begins an activation, "." continues it, "H" is
 * a gap that begins one. entry_addrs are those of each activation; 0: unknown. native_frames: the
 * native frames, innermost first. "n" is a function, "L" the loop, "X" an executor, "T" and "W"
 * are trampolines of these Python functions and of another one, "t" is a trampoline without a
 * name. Frame i takes [0x100 * i, 0x100 * (i + 1)) of the stack. merged: both, outermost first,
 * "p0 n3 ?"; "t3" is a native frame that stands for the next Python frame.
 */
struct stack_case {
	const char *name;
	const char *python;
	uint64_t entry_addrs[MAX];
	const char *native_frames;
	bool is_whole;
	const char *merged;
};

/* The pc of a native frame; 0 for other frames. */
static uint64_t pc_of(const struct merged_stack *merged, uint32_t i)
{
	return merged->details[i].addr;
}

static bool has(const struct merged_stack *merged, uint64_t pc_addr)
{
	for (uint32_t i = 0; i < merged->nr_frames; i++)
		if (pc_of(merged, i) == pc_addr)
			return true;
	return false;
}

/*
 * Describe the result of merging with all trampolines kept. "t" marks those that are missing in
 * the result without them.
 */
static const char *describe(const struct merged_stack *all, const struct merged_stack *merged)
{
	static char text[256];
	size_t length = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < all->nr_frames; i++) {
		const uint64_t pc_addr = pc_of(all, i);
		const struct function *function = all->frames[i].function;
		const char *separator = i ? " " : "";

		if (strcmp(function->qualname, MERGED_STACK_GAP) == 0)
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s?",
						   separator);
		else
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%c%u",
						   separator,
						   !pc_addr		  ? 'p'
						   : has(merged, pc_addr) ? 'n'
									  : 't',
						   pc_addr ? (unsigned int)pc_addr - 1
							   : (unsigned int)all->frames[i].line);
	}
	return text;
}

static void expect_merged(const struct stack_case *stack, bool runs_executor)
{
	struct stack_merger keeper = {.keeps_trampolines = true};
	struct stack_merger merger = {.keeps_trampolines = false};
	struct fake_python py;
	struct frame frames[MAX] = {{0}};
	static const struct function loop = {.qualname = MERGED_STACK_LOOP ".cold"};
	static const struct function other = {.qualname = "_PyEval_Vector"};
	static const struct function python = {.qualname = "f", .path = "/a.py"};
	static const struct function gap = {.kind = FUNCTION_NATIVE, .qualname = "f"};
	static const struct function of_python = {.qualname = "py::f:/a.py"};
	static const struct function of_other = {.qualname = "py::f:/a.p"};
	struct frame_detail details[MAX] = {{0}};
	struct native_frame native_frames[MAX];
	struct native_stack native = {.frames = native_frames, .is_whole = stack->is_whole};
	struct sample sample = {.frames = frames, .details = details};
	struct merged_stack all, merged;

	for (; stack->python[sample.nr_frames]; sample.nr_frames++) {
		const char letter = stack->python[sample.nr_frames];

		frames[sample.nr_frames].function = letter == 'H' ? &gap : &python;
		frames[sample.nr_frames].line = (int32_t)sample.nr_frames;
		details[sample.nr_frames].is_entry = letter != '.';
		details[sample.nr_frames].entry_addr = stack->entry_addrs[sample.nr_frames];
	}
	for (; stack->native_frames[native.nr_frames]; native.nr_frames++) {
		const uint32_t nr = native.nr_frames;
		const char letter = stack->native_frames[nr];

		native_frames[nr] = (struct native_frame){
			.sp_addr = 0x100 * nr,
			.cfa_addr = 0x100 * (nr + 1),
			.pc_addr = nr + 1,
			.trampoline_addr = strchr("TWt", letter) ? 0x7000 : 0,
			.is_executor = letter == 'X',
			.function = letter == 'L'   ? &loop
				    : letter == 'T' ? &of_python
				    : letter == 'W' ? &of_other
				    : letter == 't' ? NULL
						    : &other,
		};
	}
	if (!stack->is_whole)
		native_frames[native.nr_frames - 1].cfa_addr = 0;
	fake_python_init(&py, 13);
	cr_assert(zero(int, sampler_create(NULL, &py.fake.memory, &py.build, py.runtime_addr,
					   &merger.sampler)));
	keeper.sampler = merger.sampler;
	cr_assert(zero(int, merged_stack_make(&keeper, &sample, &native, &all)));
	cr_assert(zero(int, merged_stack_make(&merger, &sample, &native, &merged)));
	cr_expect(eq(str, (char *)describe(&all, &merged), (char *)stack->merged), "%s",
		  stack->name);
	cr_expect(eq(int, merged.runs_executor, runs_executor), "%s", stack->name);
	cr_expect(eq(int, all.runs_executor, runs_executor), "%s", stack->name);
	merged_stack_done(&all);
	merged_stack_done(&merged);
	sampler_destroy(merger.sampler);
	fake_python_done(&py);
}

Test(merged_stack, merges_python_and_native_frames)
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
		{"a gap outside", "EE", {0x900, 0x110}, "nnn", false, "p0 ? n2 p1 n0"},
		{"a gap, all placed", "E", {0x110}, "nnn", false, "? n2 p0 n0"},
		{"a gap at once", "EE", {0x900, 0x800}, "n", false, "p0 ? p1 ? n0"},
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
		{"by count up to a gap", "EEE", {0}, "nLnLn", false, "p0 ? n4 p1 n2 p2 n0"},
		{"too many, and a gap", "E", {0}, "LLn", false, "p0 ? n2 n1 n0"},
		{"has no start", "..E", {0, 0, 0x110}, "nnn", true, "p0 p1 ? n2 p2 n0"},
		{"trampolines", "EE", {0x410, 0x110}, "nnTnnt", true, "t5 p0 n3 t2 p1 n0"},
		{"of another function", "E", {0x10}, "nW", true, "n1 p0"},
		{"not called the loop", "E", {0x10}, "nnT", true, "n2 n1 p0"},
		{"before it calls", "E", {0x110}, "Tn", true, "p0 n0"},
		{"of a frame outside a gap", "H", {0x10}, "nt", true, "n1 p0"},
		{"of the first frame of a loop", "E.", {0x10, 0}, "nT", true, "t1 p0 p1"},
		{"by count", "E", {0}, "tLt", true, "t2 p0 n0"},
		{"no frames", "", {0}, "", true, ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_merged(&cases[i], false);
}

Test(merged_stack, recognises_a_running_executor)
{
	static const struct stack_case running[] = {
		{"an executor", "E", {0x110}, "Xnn", true, "n2 p0 n0"},
		{"of no Python", "", {0}, "Xn", true, "n1 n0"},
		{"has called", "E", {0x410}, "nnXnn", true, "p0 n3 n2 n1 n0"},
		{"was called", "E", {0x210}, "Xnn", true, "p0 n1 n0"},
		{"outside a gap", "E", {0x9990}, "nX", true, "p0 ? n1 n0"},
		{"before it calls, an executor", "E", {0x210}, "Xtn", true, "p0 n1 n0"},
	};
	static const struct stack_case not_running[] = {
		{"has called Python", "EE", {0x210, 0x10}, "nXn", true, "p0 n1 p1"},
		{"which has called", "EE", {0x310, 0x110}, "nnXn", true, "p0 n2 p1 n0"},
		{"outside of Python", "E", {0x110}, "nnX", true, "n2 p0 n0"},
	};

	for (size_t i = 0; i < sizeof(running) / sizeof(running[0]); i++)
		expect_merged(&running[i], true);
	for (size_t i = 0; i < sizeof(not_running) / sizeof(not_running[0]); i++)
		expect_merged(&not_running[i], false);
}

/* Kernel frames are innermost and never belong to an executor. */
Test(merged_stack, kernel_frames_are_innermost)
{
	static const struct function functions[] = {{.qualname = "read"}, {.qualname = "entry"}};
	static const struct function *const kernel[] = {&functions[0], &functions[1]};
	static const struct function python = {.qualname = "f", .path = "/a.py"};
	static struct stack_merger merger;
	const struct native_frame native_frames[] = {
		{.cfa_addr = 0x100, .function = &functions[1], .is_executor = true},
		{.sp_addr = 0x100, .cfa_addr = 0x200},
	};
	const struct native_stack native = {native_frames, 2, true, kernel, 2};
	const struct frame frame = {.function = &python};
	const struct frame_detail detail = {.entry_addr = 0x110};
	const struct sample sample = {.frames = &frame, .details = &detail, .nr_frames = 1};
	struct merged_stack merged;

	cr_assert(zero(int, merged_stack_make(&merger, &sample, &native, &merged)));
	cr_assert(eq(u32, merged.nr_frames, 4));
	cr_expect(merged.frames[0].function == &python);
	cr_expect(merged.frames[1].function == &functions[1]);
	cr_expect(merged.frames[2].function == &functions[1]);
	cr_expect(merged.frames[3].function == &functions[0]);
	cr_expect(eq(i32, merged.details[3].column, -1));
	cr_expect(merged.runs_executor);
	merged_stack_done(&merged);
}
