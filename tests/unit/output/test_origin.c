/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "output/profile/origin.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

Test(origin, is_known_by_kind_and_path)
{
	static const struct {
		enum function_kind kind;
		const char *path;
		enum origin origin;
	} cases[] = {
		{FUNCTION_PYTHON, "/srv/app/main.py", ORIGIN_APPLICATION},
		{FUNCTION_PYTHON, "main.py", ORIGIN_APPLICATION},
		{FUNCTION_PYTHON, "<string>", ORIGIN_APPLICATION},
		{FUNCTION_PYTHON, "/srv/site-packages.py", ORIGIN_APPLICATION},
		{FUNCTION_PYTHON, "/srv/python3.12/app.py", ORIGIN_APPLICATION},
		{FUNCTION_PYTHON, "/usr/lib/pythonic/app.py", ORIGIN_APPLICATION},
		{FUNCTION_PYTHON, "/usr/lib/python3/dist-packages/six.py", ORIGIN_SITE_PACKAGES},
		{FUNCTION_PYTHON, "/v/lib/python3.12/site-packages/a/b.py", ORIGIN_SITE_PACKAGES},
		{FUNCTION_PYTHON, "site-packages/six.py", ORIGIN_SITE_PACKAGES},
		{FUNCTION_PYTHON, "/usr/lib/python3.11/json/decoder.py", ORIGIN_STANDARD_LIBRARY},
		{FUNCTION_PYTHON, "/usr/lib64/python3.13t/os.py", ORIGIN_STANDARD_LIBRARY},
		{FUNCTION_PYTHON, "/usr/lib/python311.zip/os.py", ORIGIN_STANDARD_LIBRARY},
		{FUNCTION_PYTHON, "lib//python3.9/os.py", ORIGIN_STANDARD_LIBRARY},
		{FUNCTION_PYTHON, "<frozen importlib._bootstrap>", ORIGIN_STANDARD_LIBRARY},
		{FUNCTION_PYTHON, "", ORIGIN_OTHER},
		{FUNCTION_COLLECTOR, "", ORIGIN_COLLECTOR},
		{FUNCTION_NATIVE, "/usr/lib/python3.11/lib-dynload/_json.so", ORIGIN_NATIVE},
		{FUNCTION_JIT, "", ORIGIN_JIT},
		{FUNCTION_KERNEL, "", ORIGIN_KERNEL},
		{FUNCTION_TASK, "", ORIGIN_TASK},
	};

	for (size_t i = 0; i < NR(cases); i++) {
		const struct profile_function function = {
			.path = (char *)cases[i].path,
			.kind = cases[i].kind,
		};

		cr_expect(eq(int, origin_of(&function), cases[i].origin), "%s", cases[i].path);
	}
}

Test(origin, each_origin_has_a_name)
{
	cr_expect(eq(str, (char *)origin_name(ORIGIN_APPLICATION), (char *)"application"));
	cr_expect(eq(str, (char *)origin_name(ORIGIN_COLLECTOR), (char *)"gc"));
	cr_expect(eq(str, (char *)origin_name(ORIGIN_OTHER), (char *)"other"));
}
