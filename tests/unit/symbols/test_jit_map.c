/* SPDX-License-Identifier: MIT */
#include "symbols/jit/jit_map.h"
#include "tests/support/expected_code.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int add(struct jit_map *map, enum jit_source source, remote_addr addr, uint64_t nr_bytes,
	       uint64_t from_ns, const char *name)
{
	const struct jit_code code = {.start_addr = addr,
				      .nr_bytes = nr_bytes,
				      .from_ns = from_ns,
				      .to_ns = JIT_MAP_OPEN_NS,
				      .name = name,
				      .source = source};

	return jit_map_add(map, &code, strlen(name), NULL);
}

static void expect_names(const struct jit_map *map, remote_addr addr, const char *expected)
{
	for (uint64_t time_ns = 0; expected[time_ns]; time_ns++)
		expect_code(map, addr, time_ns, (const char[2]){expected[time_ns]});
}

Test(jit_map, empty_map_finds_nothing)
{
	struct jit_map *map = jit_map_create();
	uint32_t *indexes;
	uint32_t nr = 1;

	cr_expect(eq(ptr, (void *)jit_map_find(map, 0, 0), NULL));
	cr_expect(eq(ptr, (void *)jit_map_find(map, UINT64_MAX, UINT64_MAX), NULL));
	cr_assert(zero(int, jit_map_sort(map, &indexes, &nr)));
	cr_expect(zero(u32, nr));
	free(indexes);
	jit_map_destroy(map);
	jit_map_destroy(NULL);
}

Test(jit_map, ranges_and_times_are_half_open)
{
	struct jit_map *map = jit_map_create();

	cr_assert(zero(int, add(map, JIT_SOURCE_JITDUMP, 0x100, 0x10, 3, "a")));
	expect_names(map, 0xff, "-----");
	expect_names(map, 0x100, "---aa");
	expect_names(map, 0x10f, "---aa");
	expect_names(map, 0x110, "-----");
	jit_map_end(map, jit_map_find(map, 0x100, 3), 5);
	jit_map_end(map, jit_map_find(map, 0x100, 3), 9);
	expect_names(map, 0x100, "---aa--");
	expect_code(map, 0x100, JIT_MAP_NOW_NS, "-");
	jit_map_destroy(map);
}

Test(jit_map, later_code_ends_what_it_overlaps)
{
	struct jit_map *map = jit_map_create();

	cr_assert(zero(int, add(map, JIT_SOURCE_JITDUMP, 0x100, 0x10, 1, "a")));
	cr_assert(zero(int, add(map, JIT_SOURCE_JITDUMP, 0x110, 0x10, 1, "b")));
	cr_assert(zero(int, add(map, JIT_SOURCE_JITDUMP, 0x120, 0x10, 1, "c")));
	cr_assert(zero(int, add(map, JIT_SOURCE_JITDUMP, 0x108, 0x10, 4, "d")));
	expect_names(map, 0x100, "-aaa---");
	expect_names(map, 0x108, "-aaaddd");
	expect_names(map, 0x110, "-bbbddd");
	expect_names(map, 0x118, "-bbb---");
	expect_names(map, 0x120, "-cccccc");
	jit_map_destroy(map);
}

/* Threads may write their records slightly out of order. */
Test(jit_map, code_added_late_ends_where_the_next_begins)
{
	struct jit_map *map = jit_map_create();

	cr_assert(zero(int, add(map, JIT_SOURCE_JITDUMP, 0x100, 0x10, 1, "a")));
	cr_assert(zero(int, add(map, JIT_SOURCE_JITDUMP, 0x100, 0x10, 5, "c")));
	cr_assert(zero(int, add(map, JIT_SOURCE_JITDUMP, 0x100, 0x10, 3, "b")));
	expect_names(map, 0x100, "-aabbccc");
	jit_map_destroy(map);
}

Test(jit_map, last_code_wins_without_times)
{
	struct jit_map *map = jit_map_create();
	uint32_t *indexes;
	uint32_t nr;

	for (const char *name = "abcdefgh"; *name; name++)
		cr_assert(zero(
			int, add(map, JIT_SOURCE_PERF_MAP, 0x100, 0x10, 0, (char[]){*name, '\0'})));
	expect_names(map, 0x100, "hh");
	cr_assert(zero(int, jit_map_sort(map, &indexes, &nr)));
	cr_expect(eq(u32, nr, 1));
	free(indexes);
	jit_map_destroy(map);
}

Test(jit_map, sources_do_not_end_each_others_codes)
{
	struct jit_map *map = jit_map_create();

	cr_assert(zero(int, add(map, JIT_SOURCE_PERF_MAP, 0x100, 0x20, 0, "p")));
	cr_assert(zero(int, add(map, JIT_SOURCE_GDB, 0x100, 0x10, 2, "g")));
	cr_assert(zero(int, add(map, JIT_SOURCE_JITDUMP, 0x100, 0x8, 4, "j")));
	cr_assert(zero(int, add(map, JIT_SOURCE_PERF_MAP, 0x108, 0x8, 0, "q")));
	expect_names(map, 0x100, "--ggjj");
	expect_names(map, 0x108, "qqgggg");
	cr_expect(eq(ptr, (void *)jit_map_find_in(map, JIT_SOURCE_GDB, 0x110, 4), NULL));
	jit_map_destroy(map);
}

Test(jit_map, invalid_ranges_are_refused)
{
	struct jit_map *map = jit_map_create();
	uint32_t nr;

	cr_expect(eq(int, add(map, JIT_SOURCE_JITDUMP, 0x100, 0, 0, "a"), -EBADMSG));
	cr_expect(eq(int, add(map, JIT_SOURCE_JITDUMP, UINT64_MAX - 1, 2, 0, "a"), -EBADMSG));
	(void)jit_map_codes(map, &nr);
	cr_expect(zero(u32, nr));
	cr_expect(zero(int, add(map, JIT_SOURCE_JITDUMP, UINT64_MAX - 1, 1, 0, "a")));
	expect_code(map, UINT64_MAX - 1, 0, "a");
	jit_map_destroy(map);
}

/* A name ends at its given length or at a NUL. */
Test(jit_map, names_are_copied)
{
	struct jit_map *map = jit_map_create();
	struct jit_code code = {
		.start_addr = 1, .nr_bytes = 1, .to_ns = JIT_MAP_OPEN_NS, .name = "abc\0def"};
	uint32_t index;

	cr_assert(zero(int, jit_map_add(map, &code, 2, &index)));
	cr_expect(zero(u32, index));
	code.start_addr = 2;
	cr_assert(zero(int, jit_map_add(map, &code, 7, &index)));
	cr_expect(eq(u32, index, 1));
	expect_code(map, 1, 0, "ab");
	expect_code(map, 2, 0, "abc");
	jit_map_destroy(map);
}

/* A plain list of all codes with the same rules, to compare the map with. */
enum { NR_RANDOM = 3000, NR_ADDRS = 400, NR_TIMES = 500 };

struct plain_map {
	struct jit_code codes[NR_RANDOM];
	uint32_t nr;
};

static void plain_add(struct plain_map *map, struct jit_code code)
{
	for (uint32_t i = 0; i < map->nr; i++) {
		struct jit_code *other = &map->codes[i];

		if (other->start_addr >= code.start_addr + code.nr_bytes ||
		    other->start_addr + other->nr_bytes <= code.start_addr ||
		    other->to_ns <= code.from_ns || other->to_ns <= other->from_ns)
			continue;
		if (other->from_ns <= code.from_ns)
			other->to_ns = code.from_ns;
		else if (other->from_ns < code.to_ns)
			code.to_ns = other->from_ns;
	}
	map->codes[map->nr++] = code;
}

static uint64_t plain_find(const struct plain_map *map, remote_addr addr, uint64_t time_ns)
{
	for (uint32_t i = 0; i < map->nr; i++)
		if (addr - map->codes[i].start_addr < map->codes[i].nr_bytes &&
		    map->codes[i].from_ns <= time_ns && time_ns < map->codes[i].to_ns)
			return map->codes[i].code_index;
	return 0;
}

static void compare_all(const struct jit_map *map, const struct plain_map *plain)
{
	for (remote_addr addr = 0; addr < NR_ADDRS; addr++)
		for (uint64_t time_ns = 0; time_ns < NR_TIMES; time_ns += 7) {
			const struct jit_code *found = jit_map_find(map, addr, time_ns);

			cr_assert(eq(u64, found ? found->code_index : 0,
				     plain_find(plain, addr, time_ns)),
				  "%llu at %llu", (unsigned long long)addr,
				  (unsigned long long)time_ns);
		}
}

/* Fill both, with rising times as in a file, or with random times. */
static void fill_both(bool in_order)
{
	static struct plain_map plain;
	struct jit_map *map = jit_map_create();

	srand(7);
	plain.nr = 0;
	for (uint32_t i = 0; i < NR_RANDOM; i++) {
		const struct jit_code code = {
			.start_addr = (remote_addr)(rand() % NR_ADDRS),
			.nr_bytes = 1 + (uint64_t)(rand() % 20),
			.from_ns = in_order ? i / 6 : (uint64_t)(rand() % NR_TIMES),
			.to_ns = JIT_MAP_OPEN_NS,
			.name = "",
			.code_index = i + 1,
		};

		cr_assert(zero(int, jit_map_add(map, &code, 0, NULL)));
		plain_add(&plain, code);
		if (i % 500 == 499)
			compare_all(map, &plain);
	}
	jit_map_destroy(map);
}

Test(jit_map, equals_a_plain_list_in_order_of_time)
{
	fill_both(true);
}

Test(jit_map, equals_a_plain_list_in_any_order)
{
	fill_both(false);
}

Test(jit_map, codes_are_sorted_by_address_and_time)
{
	struct jit_map *map = jit_map_create();
	uint32_t *indexes;
	uint32_t nr;

	cr_assert(zero(int, add(map, JIT_SOURCE_JITDUMP, 0x300, 1, 1, "a")));
	cr_assert(zero(int, add(map, JIT_SOURCE_JITDUMP, 0x100, 1, 1, "b")));
	cr_assert(zero(int, add(map, JIT_SOURCE_GDB, 0x100, 1, 2, "c")));
	cr_assert(zero(int, add(map, JIT_SOURCE_JITDUMP, 0x100, 1, 2, "d")));
	cr_assert(zero(int, jit_map_sort(map, &indexes, &nr)));
	cr_assert(eq(u32, nr, 4));
	cr_expect(eq(u32, indexes[0], 1));
	cr_expect(eq(u32, indexes[1], 3));
	cr_expect(eq(u32, indexes[2], 2));
	cr_expect(eq(u32, indexes[3], 0));
	free(indexes);
	jit_map_destroy(map);
}
