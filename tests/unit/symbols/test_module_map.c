/* SPDX-License-Identifier: MIT */
#include "symbols/elf/module_map.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

/* A program with .bss, heap, a gap, a library mapped twice in a row, and the vDSO. */
static const char maps_text[] = "1000-2000 r-xp 00000000 08:01 11 /bin/program\n"
				"2000-3000 rw-p 00001000 08:01 11 /bin/program\n"
				"3000-5000 rw-p 00000000 00:00 0 [heap]\n"
				"8000-9000 r-xp 00000000 08:01 12 /lib/a.so\n"
				"9000-a000 rw-p 00000000 00:00 0 \n"
				"a000-b000 rw-p 00003000 08:01 12 /lib/a.so\n"
				"b000-c000 r-xp 00000000 00:00 0 [vdso]\n";

static const struct {
	remote_addr addr;
	uint32_t index;
	remote_addr start;
} cases[] = {
	{0xfff, MODULE_MAP_NONE, 0},  {0x1000, 0, 0x1000},     {0x2fff, 0, 0x1000},
	{0x3000, 1, 0x3000},	      {0x4fff, 1, 0x3000},     {0x5000, MODULE_MAP_NONE, 0},
	{0x7fff, MODULE_MAP_NONE, 0}, {0x8000, 2, 0x8000},     {0x9800, 2, 0x8000},
	{0xafff, 2, 0x8000},	      {0xb000, 3, 0xb000},     {0xbfff, 3, 0xb000},
	{0xc000, MODULE_MAP_NONE, 0}, {0, MODULE_MAP_NONE, 0}, {UINT64_MAX, MODULE_MAP_NONE, 0},
};
enum { NR_CASES = sizeof(cases) / sizeof(cases[0]) };

/* The result does not depend on the previous one, which is tried first. */
Test(module_map, lookup_does_not_depend_on_the_previous_one)
{
	struct maps maps;
	struct module_map map;

	cr_assert(zero(int, maps_parse(maps_text, strlen(maps_text), &maps)));
	cr_assert(zero(int, module_map_init(&map, &maps)));
	cr_assert(eq(u32, map.nr_ranges, 4));
	for (size_t before = 0; before < NR_CASES; before++)
		for (size_t i = 0; i < NR_CASES; i++) {
			uint32_t index;

			(void)module_map_find(&map, cases[before].addr);
			index = module_map_find(&map, cases[i].addr);
			cr_expect(eq(u32, index, cases[i].index), "%#llx after %#llx",
				  (unsigned long long)cases[i].addr,
				  (unsigned long long)cases[before].addr);
			if (index != MODULE_MAP_NONE)
				cr_expect(
					eq(u64, map.ranges[index].mapping->start, cases[i].start));
		}
	module_map_done(&map);
	maps_done(&maps);
}

Test(module_map, empty_map_finds_nothing)
{
	const struct maps maps = {0};
	struct module_map map;

	cr_assert(zero(int, module_map_init(&map, &maps)));
	cr_expect(eq(u32, module_map_find(&map, 0), MODULE_MAP_NONE));
	module_map_done(&map);
}
