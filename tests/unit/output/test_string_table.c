/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#include "output/tables/string_table.h"

enum { NR_STRINGS = 1000, STRING_BYTES = 8 };

Test(string_table, numbers_each_string_once)
{
	static char strings[NR_STRINGS][STRING_BYTES];
	static char copies[NR_STRINGS][STRING_BYTES];
	struct string_table table = {0};
	uint32_t number;

	for (uint32_t i = 0; i < NR_STRINGS; i++) {
		(void)snprintf(strings[i], STRING_BYTES, "%x", (unsigned)i);
		memcpy(copies[i], strings[i], STRING_BYTES);
		cr_assert(eq(int, string_table_get(&table, strings[i], &number), 0));
		cr_expect(eq(u32, number, i));
	}
	for (uint32_t i = 0; i < NR_STRINGS; i++) {
		cr_assert(eq(int, string_table_get(&table, copies[i], &number), 0));
		cr_expect(eq(u32, number, i));
	}
	cr_assert(eq(int, string_table_get(&table, "", &number), 0));
	cr_expect(eq(u32, number, NR_STRINGS));
	cr_expect(eq(u32, table.nr, NR_STRINGS + 1));
	cr_expect(eq(ptr, (void *)table.strings[7], (void *)strings[7]));
	string_table_done(&table);
	string_table_done(NULL);
	cr_expect(eq(u32, table.nr, 0));
}
