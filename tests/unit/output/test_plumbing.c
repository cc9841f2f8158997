/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "output/profile/plumbing.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

Test(plumbing, is_recognised_by_name_and_file)
{
	static const struct {
		enum function_kind kind;
		const char *name, *path;
		bool is_plumbing;
	} cases[] = {
		{FUNCTION_NATIVE, "_start", "/usr/bin/uwsgi", true},
		{FUNCTION_NATIVE, "__libc_start_main_impl", "/lib/libc.so.6", true},
		{FUNCTION_NATIVE, "start_thread", "/lib/x86_64-linux-gnu/libc.so.6", true},
		{FUNCTION_NATIVE, "start_thread", "/lib/libpthread-2.28.so", true},
		{FUNCTION_NATIVE, "__GI___clone3", "/lib/libc.so.6", true},
		{FUNCTION_NATIVE, "start_thread", "/srv/app/pool.so", false},
		{FUNCTION_NATIVE, "main", "/usr/bin/python3.11", true},
		{FUNCTION_NATIVE, "main", "/usr/bin/uwsgi", false},
		{FUNCTION_NATIVE, "Py_RunMain", "/usr/lib/libpython3.12.so.1.0", true},
		{FUNCTION_NATIVE, "_PyEval_Vector", "/usr/bin/uwsgi", true},
		{FUNCTION_NATIVE, "run_mod.constprop.0", "/usr/bin/python3.15", true},
		{FUNCTION_NATIVE, "call_function.cold", "/usr/bin/python3.8", true},
		{FUNCTION_NATIVE, "call_function", "/srv/app/_fast.so", false},
		{FUNCTION_NATIVE, "_PyEval_EvalFrameDefault", "/usr/bin/python3.11", false},
		{FUNCTION_NATIVE, "builtin_sorted", "/usr/bin/python3.11", false},
		{FUNCTION_NATIVE, "PyObject_Callable", "/usr/bin/python3.11", false},
		{FUNCTION_NATIVE, "[unknown]", "", false},
		{FUNCTION_NATIVE, "", "/usr/bin/python3.11", false},
		{FUNCTION_PYTHON, "main", "/usr/lib/python3.11", false},
		{FUNCTION_KERNEL, "_start", "", false},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		const struct function function = {
			.kind = cases[i].kind,
			.qualname = cases[i].name,
			.path = cases[i].path,
		};

		cr_expect(eq(int, plumbing_is(&function), cases[i].is_plumbing), "%s of %s",
			  cases[i].name, cases[i].path);
	}
}

Test(plumbing, handles_names_of_any_length)
{
	char name[4096];
	const struct function function = {.kind = FUNCTION_NATIVE, .qualname = name, .path = ""};

	for (size_t length = 0; length < sizeof(name); length++) {
		memset(name, 'P', length);
		name[length] = '\0';
		cr_expect(not(plumbing_is(&function)));
	}
}
