/* SPDX-License-Identifier: MIT */
#include "procmem/core/core_maps.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PIECES = 4 };

struct piece {
	remote_addr start;
	remote_addr end;
	uint64_t file_offset;
};

/* Mappings made of the pieces with an end; maps_done() them. */
static struct maps make_maps(const struct piece pieces[MAX_PIECES])
{
	struct maps maps = {0};

	cr_assert(zero(int, core_maps_reserve(&maps, MAX_PIECES)));
	for (size_t i = 0; i < MAX_PIECES && pieces[i].end; i++)
		maps.mappings[maps.nr_mappings++] = (struct mapping){
			.start = pieces[i].start,
			.end = pieces[i].end,
			.file_offset = pieces[i].file_offset,
			.path = "",
		};
	return maps;
}

Test(core_maps, sorts_and_removes_overlaps)
{
	static const struct {
		const char *name;
		struct piece pieces[MAX_PIECES];
		const char *expected;
	} cases[] = {
		{"none", {{0}}, ""},
		{"in order", {{1, 2, 10}, {2, 5, 20}}, "1-2@10 2-5@20 "},
		{"not in order", {{7, 9, 0}, {1, 2, 10}, {4, 5, 3}}, "1-2@10 4-5@3 7-9@0 "},
		{"overlap", {{4, 20, 100}, {1, 10, 10}}, "1-10@10 10-20@106 "},
		{"inside of another", {{1, 10, 10}, {2, 5, 20}, {9, 12, 0}}, "1-10@10 10-12@1 "},
		{"twice", {{1, 10, 20}, {1, 10, 10}}, "1-10@10 "},
		{"the longer of two", {{1, 4, 10}, {1, 10, 20}}, "1-4@10 4-10@23 "},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct maps maps = make_maps(cases[i].pieces);
		char text[256] = "";

		core_maps_sort(&maps);
		for (size_t j = 0; j < maps.nr_mappings; j++)
			(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
				       "%d-%d@%d ", (int)maps.mappings[j].start,
				       (int)maps.mappings[j].end,
				       (int)maps.mappings[j].file_offset);
		cr_expect(eq(str, text, (char *)cases[i].expected), "%s", cases[i].name);
		maps_done(&maps);
	}
}

Test(core_maps, joins_loads_and_files)
{
	static const struct {
		const char *name;
		struct piece loads[MAX_PIECES];
		struct piece files[MAX_PIECES];
		const char *expected;
	} cases[] = {
		{"empty", {{0}}, {{0}}, ""},
		{"memory alone", {{1, 2, 0}, {4, 5, 0}}, {{0}}, "1-2 w  4-5 w  "},
		{"files alone", {{0}}, {{1, 2, 0}, {2, 4, 8}}, "1-2 rf@0  2-4 rxf@8  "},
		{"the same", {{1, 4, 0}}, {{1, 4, 8}}, "1-4 wf@8  "},
		{"the file ends first", {{1, 6, 0}}, {{1, 4, 8}}, "1-4 wf@8  4-6 w  "},
		{"the file begins later", {{1, 6, 0}}, {{3, 6, 8}}, "1-3 w  3-6 wf@8  "},
		{"the file is longer", {{3, 4, 0}}, {{1, 6, 0}}, "1-3 rf@0  3-4 wf@2  4-6 rxf@3  "},
		{"one load, two files",
		 {{1, 6, 0}},
		 {{1, 3, 0}, {4, 9, 5}},
		 "1-3 wf@0  3-4 w  4-6 wf@5  6-9 rxf@7  "},
		{"beside each other",
		 {{1, 2, 0}, {6, 7, 0}},
		 {{3, 4, 0}},
		 "1-2 w  3-4 rf@0  6-7 w  "},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct maps loads = make_maps(cases[i].loads);
		struct maps files = make_maps(cases[i].files);
		struct maps maps = {0};
		char text[256] = "";

		for (size_t j = 0; j < loads.nr_mappings; j++)
			loads.mappings[j].writable = true;
		for (size_t j = 0; j < files.nr_mappings; j++)
			files.mappings[j].path = "f";
		files.text = strdup("f");
		cr_assert(zero(int, core_maps_join(&loads, &files, &maps)));
		cr_expect(ne(ptr, maps.text, NULL));
		cr_expect(eq(ptr, files.text, NULL));
		for (size_t j = 0; j < maps.nr_mappings; j++) {
			const struct mapping *mapping = &maps.mappings[j];

			(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
				       "%d-%d %s%s%s%s", (int)mapping->start, (int)mapping->end,
				       mapping->readable ? "r" : "", mapping->writable ? "w" : "",
				       mapping->executable ? "x" : "", mapping->path);
			if (mapping->path[0])
				(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
					       "@%d", (int)mapping->file_offset);
			strcat(text, "  ");
		}
		cr_expect(eq(str, text, (char *)cases[i].expected), "%s", cases[i].name);
		maps_done(&maps);
		maps_done(&files);
		maps_done(&loads);
	}
}
