/* SPDX-License-Identifier: MIT */
#include "sampler/native/merged_stack.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/support/fake_python.h"

/*
 * Merge a Python frame with a native stack in which the trampoline at addr, with this name or
 * NULL, called the loop. Returns the number of frames: one if the trampoline is the function's.
 */
static uint32_t merge(struct stack_merger *merger, remote_addr addr,
		      const struct function *trampoline, const struct function *python)
{
	const struct native_frame native_frames[] = {
		{.cfa_addr = 0x100},
		{.sp_addr = 0x100,
		 .cfa_addr = 0x200,
		 .trampoline_addr = addr,
		 .function = trampoline},
	};
	const struct native_stack native = {
		.frames = native_frames, .nr_frames = 2, .is_whole = true};
	const struct frame frame = {.function = python};
	const struct frame_detail detail = {.entry_addr = 0x10};
	const struct sample sample = {.frames = &frame, .details = &detail, .nr_frames = 1};
	struct merged_stack merged;

	cr_assert(zero(int, merged_stack_make(merger, &sample, &native, &merged)));
	merged_stack_done(&merged);
	return merged.nr_frames;
}

Test(merged_stack_trampolines, belongs_to_the_function_it_names)
{
	static const struct {
		const char *name, *qualname, *path;
		enum function_kind kind;
		bool calls;
	} cases[] = {
		{"py::f:/a.py", "f", "/a.py", FUNCTION_PYTHON, true},
		{"py::C.f.<locals>.g:<string>", "C.f.<locals>.g", "<string>", FUNCTION_PYTHON,
		 true},
		{"py::::", ":", "", FUNCTION_PYTHON, true},
		{"py::f:/a.py", "f", "/a.pyc", FUNCTION_PYTHON, false},
		{"py::f:/a.py", "f", "/a.p", FUNCTION_PYTHON, false},
		{"py::f:/a.py", "g", "/a.py", FUNCTION_PYTHON, false},
		{"py::f:/a.py", "ff", "/a.py", FUNCTION_PYTHON, false},
		{"py::ff:/a.py", "f", "/a.py", FUNCTION_PYTHON, false},
		{"py::f", "f", "", FUNCTION_PYTHON, false},
		{"f:/a.py", "f", "/a.py", FUNCTION_PYTHON, false},
		{"py::f:/a.py", "f", "/a.py", FUNCTION_NATIVE, false},
		{"", "", "", FUNCTION_PYTHON, false},
	};
	static struct stack_merger merger;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct function trampoline = {.qualname = cases[i].name,
						    .kind = FUNCTION_JIT};
		const struct function python = {.qualname = cases[i].qualname,
						.path = cases[i].path,
						.kind = cases[i].kind};

		cr_expect(eq(u32, merge(&merger, 0x1000, &trampoline, &python),
			     cases[i].calls ? 1 : 2),
			  "%s, %s, %s", cases[i].name, cases[i].qualname, cases[i].path);
	}
}

/* Expect the name of a trampoline that has not called the loop yet. */
static void expect_name(struct stack_merger *merger, remote_addr addr, const char *expected)
{
	const struct native_frame frame = {.cfa_addr = 0x100, .trampoline_addr = addr};
	const struct native_stack native = {.frames = &frame, .nr_frames = 1, .is_whole = true};
	const struct sample sample = {.nr_frames = 0};
	const struct function *found;
	struct merged_stack merged;

	cr_assert(zero(int, merged_stack_make(merger, &sample, &native, &merged)));
	cr_assert(eq(u32, merged.nr_frames, 1));
	found = merged.frames[0].function;
	merged_stack_done(&merged);
	cr_expect(eq(str, (char *)found->qualname, (char *)expected), "%#llx",
		  (unsigned long long)addr);
	cr_expect(eq(str, (char *)found->path, (char *)""));
	cr_expect(eq(int, found->kind, FUNCTION_JIT));
}

Test(merged_stack_trampolines, learns_the_names_of_trampolines)
{
	static const struct function f = {.qualname = "f", .path = "/a.py"};
	static const struct function g = {.qualname = "C.g", .path = "<string>"};
	enum { SAME_PLACE = 16 * MERGED_STACK_TRAMPOLINES };
	static struct stack_merger merger;
	struct fake_python py;
	struct sampler *sampler;

	fake_python_init(&py, 13);
	cr_assert(zero(
		int, sampler_create(NULL, &py.fake.memory, &py.build, py.runtime_addr, &sampler)));
	merger.sampler = sampler;
	cr_expect(eq(u32, merge(&merger, 0x1000, NULL, &f), 1));
	cr_expect(eq(u32, merge(&merger, 0x1060, NULL, &g), 1));
	expect_name(&merger, 0x1000, "py::f:/a.py");
	expect_name(&merger, 0x1060, "py::C.g:<string>");
	expect_name(&merger, 0x1020, MERGED_STACK_TRAMPOLINE);
	expect_name(&merger, 0x1000 + SAME_PLACE, MERGED_STACK_TRAMPOLINE);
	cr_expect(eq(u32, merge(&merger, 0x1000 + SAME_PLACE, NULL, &g), 1));
	expect_name(&merger, 0x1000 + SAME_PLACE, "py::C.g:<string>");
	expect_name(&merger, 0x1000, MERGED_STACK_TRAMPOLINE);
	cr_expect(eq(u32, merge(&merger, 0x1060, NULL, &f), 1));
	expect_name(&merger, 0x1060, "py::f:/a.py");
	sampler_destroy(sampler);
	fake_python_done(&py);
}
