/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/base/addr_map.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

Test(addr_map, empty_map_has_no_values)
{
	struct addr_map map = {0};

	cr_expect(eq(ptr, addr_map_get(&map, 0), NULL));
	cr_expect(eq(ptr, addr_map_get(&map, UINT64_MAX), NULL));
	addr_map_done(&map);
}

Test(addr_map, keeps_every_value)
{
	/* Strides of objects and of pages, and of keys that differ in the upper half only. */
	static const uint64_t strides[] = {1, 16, 4096, 1ull << 32, 1ull << 52};
	enum { NR_KEYS = 4000 };
	static char values[NR_KEYS];

	for (size_t s = 0; s < sizeof(strides) / sizeof(*strides); s++) {
		struct addr_map map = {0};

		for (uint64_t i = 0; i < NR_KEYS; i++) {
			cr_assert(eq(ptr, addr_map_get(&map, i * strides[s]), NULL));
			cr_assert(zero(int, addr_map_put(&map, i * strides[s], &values[i])));
		}
		for (uint64_t i = 0; i < NR_KEYS; i++)
			cr_assert(eq(ptr, addr_map_get(&map, i * strides[s]), &values[i]));
		cr_expect(eq(ptr, addr_map_get(&map, NR_KEYS * strides[s]), NULL));
		cr_expect(eq(sz, map.nr_used, NR_KEYS));
		cr_expect(le(sz, map.nr_used, map.nr_slots / 4 * 3));
		cr_expect(zero(sz, map.nr_slots & (map.nr_slots - 1)));
		addr_map_done(&map);
	}
}

Test(addr_map, addresses_zero_and_last_are_keys)
{
	struct addr_map map = {0};
	int first, last;

	cr_assert(zero(int, addr_map_put(&map, 0, &first)));
	cr_assert(zero(int, addr_map_put(&map, UINT64_MAX, &last)));
	cr_expect(eq(ptr, addr_map_get(&map, 0), &first));
	cr_expect(eq(ptr, addr_map_get(&map, UINT64_MAX), &last));
	addr_map_done(&map);
	addr_map_done(NULL);
	cr_expect(eq(ptr, addr_map_get(&map, 0), NULL));
}
