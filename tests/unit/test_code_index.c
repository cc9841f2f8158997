/* SPDX-License-Identifier: MIT */
#include "sampler/code_index.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static const struct function function = {.qualname = "f"};

static void add(struct code_index *index, remote_addr addr, remote_addr start_addr)
{
	const struct code code = {
		.addr = addr, .function = &function, .code_start_addr = start_addr};

	cr_assert(zero(int, code_index_add(index, &code)));
}

Test(code_index, finds_what_begins_last_before)
{
	struct code_index index = {0};

	cr_expect(zero(u64, code_index_find(&index, 0x1000)));
	add(&index, 0x2000, 0x20d0);
	add(&index, 0x1000, 0x10d0);
	add(&index, 0x3000, 0x30d0);
	cr_expect(zero(u64, code_index_find(&index, 0x10cf)));
	cr_expect(eq(u64, code_index_find(&index, 0x10d0), 0x1000));
	cr_expect(eq(u64, code_index_find(&index, 0x20cf), 0x1000));
	cr_expect(eq(u64, code_index_find(&index, 0x20d0), 0x2000));
	cr_expect(eq(u64, code_index_find(&index, UINT64_MAX), 0x3000));
	code_index_done(&index);
}

/* One that is seen again is there once; another one in its place takes it. */
Test(code_index, the_last_one_counts)
{
	struct code_index index = {0};

	add(&index, 0x1000, 0x10d0);
	add(&index, 0x1000, 0x10d0);
	cr_expect(eq(u32, index.nr_entries, 1));
	add(&index, 0x1010, 0x10d0);
	cr_expect(eq(u32, index.nr_entries, 1));
	cr_expect(eq(u64, code_index_find(&index, 0x10d0), 0x1010));
	code_index_done(&index);
}

Test(code_index, what_is_no_code_object)
{
	const struct code foreign = {.addr = 1, .function = &function, .foreign = true};
	const struct code forgotten = {.addr = 1, .function = NULL};
	struct code_index index = {0};

	cr_expect(zero(int, code_index_add(&index, &foreign)));
	cr_expect(zero(int, code_index_add(&index, &forgotten)));
	cr_expect(zero(u32, index.nr_entries));
	code_index_done(&index);
}

Test(code_index, full)
{
	struct code_index index = {0};

	for (uint32_t i = 0; i < CODE_INDEX_MAX; i++)
		add(&index, 0x1000 + 16ull * i, 0x1008 + 16ull * i);
	cr_expect(eq(u32, index.nr_entries, CODE_INDEX_MAX));
	add(&index, 1, 2);
	cr_expect(eq(u32, index.nr_entries, 1));
	cr_expect(eq(u64, code_index_find(&index, 0x9000), 1));
	code_index_done(&index);
}
