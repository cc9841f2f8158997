/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/base/function_table.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

Test(function_table, equal_functions_are_one)
{
	struct function_table table = {0};
	char name[] = "C.f";
	const struct function *first =
		function_table_get(&table, FUNCTION_PYTHON, name, "/a.py", 3);

	cr_assert(ne(ptr, (void *)first, NULL));
	name[0] = 'X'; /* the strings are copies */
	cr_expect(zero(int, strcmp(first->qualname, "C.f")));
	cr_expect(zero(int, strcmp(first->path, "/a.py")));
	cr_expect(eq(int, first->first_line, 3));
	cr_expect(zero(uint, first->id));
	cr_expect(eq(ptr, (void *)function_table_get(&table, FUNCTION_PYTHON, "C.f", "/a.py", 3),
		     (void *)first));
	cr_expect(eq(uint, table.nr_functions, 1));
	function_table_done(&table);
}

Test(function_table, each_part_distinguishes_functions)
{
	static const struct {
		char qualname[8];
		char path[8];
		int32_t first_line;
	} functions[] = {
		{"f", "/a.py", 1},  {"g", "/a.py", 1}, {"f", "/b.py", 1}, {"f", "/a.py", 2},
		{"f", "/a.py", -1}, {"", "", 0},       {"f/", "a.py", 1}, {"", "f/a.py", 1},
	};
	struct function_table table = {0};

	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
			cr_expect(eq(uint,
				     function_table_get(&table, FUNCTION_PYTHON,
							functions[i].qualname, functions[i].path,
							functions[i].first_line)
					     ->id,
				     i));
	function_table_done(&table);
}

Test(function_table, pointers_stay_valid_while_it_grows)
{
	enum { NR_FUNCTIONS = 5000 };
	static const struct function *functions[NR_FUNCTIONS];
	struct function_table table = {0};
	char name[16];

	for (int i = 0; i < NR_FUNCTIONS; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		functions[i] = function_table_get(&table, FUNCTION_PYTHON, name, "/a.py", i);
		cr_assert(eq(uint, functions[i]->id, i));
	}
	for (int i = 0; i < NR_FUNCTIONS; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		cr_assert(eq(ptr,
			     (void *)function_table_get(&table, FUNCTION_PYTHON, name, "/a.py", i),
			     (void *)functions[i]));
	}
	function_table_done(&table);
	function_table_done(NULL);
}

Test(function_table, new_functions_beyond_the_limit_share_one)
{
	struct function_table table = {.max_bytes = 1};
	const struct function *known = function_table_get(&table, FUNCTION_PYTHON, "f", "/a.py", 1);
	const struct function *other = function_table_get(&table, FUNCTION_PYTHON, "g", "/a.py", 2);
	size_t nr_bytes = table.nr_bytes;

	cr_expect(not(function_is_overflow(known)));
	cr_expect(function_is_overflow(other));
	cr_expect(eq(str, (char *)other->path, (char *)""));
	cr_expect(zero(i32, other->first_line));
	cr_expect(eq(ptr, (void *)function_table_get(&table, FUNCTION_PYTHON, "h", "/b.py", 3),
		     (void *)other));
	cr_expect(eq(ptr, (void *)function_table_get(&table, FUNCTION_PYTHON, "f", "/a.py", 1),
		     (void *)known));
	for (int line = 0; line < 1000; line++)
		cr_expect(eq(
			ptr,
			(void *)function_table_get(&table, FUNCTION_PYTHON, "g", "/a.py", line + 2),
			(void *)other));
	cr_expect(eq(sz, table.nr_bytes, nr_bytes));
	function_table_done(&table);
}

/* However many names tasks have, functions have room. */
Test(function_table, new_names_of_tasks_beyond_a_quarter_share_one)
{
	struct function_table table = {.max_bytes = 1 << 16};
	const struct function *first = function_table_get(&table, FUNCTION_TASK, "task0", "", 0);
	const struct function *last = NULL, *function;

	for (int i = 0; i < 10000; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "task%d", i);
		last = function_table_get(&table, FUNCTION_TASK, name, "", 0);
	}
	cr_expect(eq(str, (char *)last->qualname, (char *)FUNCTION_TABLE_OTHER_TASKS));
	cr_expect(eq(int, (int)last->kind, FUNCTION_TASK));
	cr_expect(lt(sz, table.nr_bytes, table.max_bytes / 2));
	cr_expect(eq(ptr, (void *)function_table_get(&table, FUNCTION_TASK, "task0", "", 0),
		     (void *)first));
	function = function_table_get(&table, FUNCTION_PYTHON, "f", "/a.py", 1);
	cr_expect(eq(str, (char *)function->qualname, (char *)"f"));
	function_table_done(&table);
}
