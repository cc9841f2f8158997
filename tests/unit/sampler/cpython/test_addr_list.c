/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/base/addr_list.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

Test(addr_list, sorts_and_finds)
{
	const remote_addr addrs[] = {7, UINT64_MAX, 3, 7, 1ull << 40, 3, 0};
	const remote_addr sorted[] = {0, 3, 7, 1ull << 40, UINT64_MAX};
	struct addr_list list = {0};

	addr_list_sort(&list);
	cr_expect(eq(u32, addr_list_find(&list, 0), ADDR_LIST_NONE));
	for (size_t i = 0; i < sizeof(addrs) / sizeof(*addrs); i++)
		cr_assert(zero(int, addr_list_append(&list, addrs[i])));
	addr_list_sort(&list);
	cr_assert(eq(u32, list.nr, 5));
	for (uint32_t i = 0; i < list.nr; i++) {
		cr_expect(eq(u64, list.addrs[i], sorted[i]));
		cr_expect(eq(u32, addr_list_find(&list, sorted[i]), i));
	}
	cr_expect(eq(u32, addr_list_find(&list, 5), ADDR_LIST_NONE));
	addr_list_done(&list);
	cr_expect(zero(u32, list.nr));
	addr_list_done(NULL);
}
