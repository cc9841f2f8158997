/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/code/exception_table.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

/*
 * The tables are those that CPython 3.12 makes: two nested `with` statements, and one that begins
 * after more than 64 instructions. dis.dis() shows the entries.
 */
Test(exception_table, finds_the_depth)
{
	static const struct {
		uint8_t table[16];
		size_t size_bytes;
		uint32_t unit;
		int err;
		uint32_t depth;
	} cases[] = {
		/* [2, 6) → 20, depth 1, lasti; [6, 9) → 15, depth 2, lasti */
		{{0x82, 4, 20, 3, 0x86, 3, 15, 5}, 8, 2, 0, 1},
		{{0x82, 4, 20, 3, 0x86, 3, 15, 5}, 8, 5, 0, 1},
		{{0x82, 4, 20, 3, 0x86, 3, 15, 5}, 8, 6, 0, 2},
		{{0x82, 4, 20, 3, 0x86, 3, 15, 5}, 8, 8, 0, 2},
		{{0x82, 4, 20, 3, 0x86, 3, 15, 5}, 8, 9, -ENOENT, 0},
		{{0x82, 4, 20, 3, 0x86, 3, 15, 5}, 8, 1, -ENOENT, 0},
		{{0}, 0, 0, -ENOENT, 0},
		/* [66, 70) → 130, depth 0 */
		{{0xc1, 2, 4, 0x42, 2, 0}, 6, 66, 0, 0},
		{{0xc1, 2, 4, 0x42, 2, 0}, 6, 65, -ENOENT, 0},
		/* cut, without a beginning, and with numbers that are too long */
		{{0x82, 4, 20}, 3, 2, -EBADMSG, 0},
		{{0xc2}, 1, 2, -EBADMSG, 0},
		{{0x02, 4, 20, 3}, 4, 2, -EBADMSG, 0},
		{{0x82, 4, 20, 3, 0x06, 3, 15, 5}, 8, 6, -EBADMSG, 0},
		{{0x82, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x3f, 1, 1}, 11, 2, -EBADMSG, 0},
		/* numbers as large as they can be */
		{{0x80, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x3f, 1, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x3f},
		 14,
		 UINT32_MAX,
		 -EBADMSG,
		 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t depth = 0;

		cr_expect(eq(int,
			     exception_table_depth(cases[i].table, cases[i].size_bytes,
						   cases[i].unit, &depth),
			     cases[i].err),
			  "case %zu", i);
		cr_expect(eq(u32, depth, cases[i].depth), "case %zu", i);
	}
}
