/* SPDX-License-Identifier: MIT */
#include "sampler/native/trampoline.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "support/fake_python.h"

Test(trampoline, calls)
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

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct function trampoline = {.qualname = cases[i].name,
						    .kind = FUNCTION_JIT};
		const struct function python = {.qualname = cases[i].qualname,
						.path = cases[i].path,
						.kind = cases[i].kind};

		cr_expect(eq(int, trampoline_calls(&trampoline, &python), cases[i].calls),
			  "%s, %s, %s", cases[i].name, cases[i].qualname, cases[i].path);
	}
}

static void expect_name(const struct trampoline_names *names, remote_addr addr,
			struct sampler *sampler, const char *expected)
{
	const struct function *found = trampoline_names_function(names, addr, sampler);

	cr_expect(eq(str, (char *)found->qualname, (char *)expected), "%#llx",
		  (unsigned long long)addr);
	cr_expect(eq(str, (char *)found->path, (char *)""));
	cr_expect(eq(int, found->kind, FUNCTION_JIT));
}

Test(trampoline, names)
{
	static const struct function f = {.qualname = "f", .path = "/a.py"};
	static const struct function g = {.qualname = "C.g", .path = "<string>"};
	enum { SAME_PLACE = 16 * TRAMPOLINE_NAMES_MAX };
	struct trampoline_names names = {0};
	struct fake_python py;
	struct sampler *sampler;

	fake_python_init(&py, 13);
	cr_assert(zero(
		int, sampler_create(NULL, &py.fake.memory, &py.build, py.runtime_addr, &sampler)));
	trampoline_names_learn(&names, 0x1000, &f);
	trampoline_names_learn(&names, 0x1060, &g);
	expect_name(&names, 0x1000, sampler, "py::f:/a.py");
	expect_name(&names, 0x1060, sampler, "py::C.g:<string>");
	expect_name(&names, 0x1020, sampler, TRAMPOLINE_UNNAMED);
	expect_name(&names, 0x1000 + SAME_PLACE, sampler, TRAMPOLINE_UNNAMED);
	trampoline_names_learn(&names, 0x1000 + SAME_PLACE, &g);
	expect_name(&names, 0x1000 + SAME_PLACE, sampler, "py::C.g:<string>");
	expect_name(&names, 0x1000, sampler, TRAMPOLINE_UNNAMED);
	trampoline_names_learn(&names, 0x1060, &f);
	expect_name(&names, 0x1060, sampler, "py::f:/a.py");
	sampler_destroy(sampler);
	fake_python_done(&py);
}
