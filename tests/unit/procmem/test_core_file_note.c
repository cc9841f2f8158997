/* SPDX-License-Identifier: MIT */
#include "procmem/core/core_file_note.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATHS "/usr/b\0/usr/a (deleted)\0/usr/b\0/usr/a"

struct file_note {
	uint64_t nr_files;
	uint64_t page_bytes;
	struct {
		uint64_t start;
		uint64_t end;
		uint64_t offset_pages;
	} entries[4];
	char paths[sizeof(PATHS)];
};

static struct file_note make_note(void)
{
	return (struct file_note){
		.nr_files = 4,
		.page_bytes = 4096,
		.entries = {{0x9000, 0xa000, 3},
			    {0x1000, 0x3000, 0},
			    {0x7000, 0x9000, 1},
			    {0x4000, 0x5000, 2}},
		.paths = PATHS,
	};
}

/* Parse the first size bytes of a note into text. */
static int parse(const struct file_note *note, size_t size, char ret_text[256], size_t *ret_nr_lost)
{
	char *bytes = malloc(size ? size : 1);
	struct maps maps = {0};
	int err;

	memcpy(bytes, note, size);
	ret_text[0] = '\0';
	err = core_file_note_parse(bytes, size, &maps, ret_nr_lost);
	for (size_t i = 0; i < maps.nr_mappings; i++) {
		const struct mapping *mapping = &maps.mappings[i];

		(void)snprintf(ret_text + strlen(ret_text), 256 - strlen(ret_text),
			       "%x-%x@%x %s%s %d; ", (unsigned)mapping->start,
			       (unsigned)mapping->end, (unsigned)mapping->file_offset,
			       mapping->path, mapping->deleted ? "!" : "", (int)mapping->inode);
	}
	maps_done(&maps);
	return err;
}

static void unchanged(struct file_note *note)
{
	(void)note;
}

static void no_files(struct file_note *note)
{
	note->nr_files = 0;
}

static void absurd_count(struct file_note *note)
{
	note->nr_files = UINT64_MAX / 24;
}

static void one_too_many(struct file_note *note)
{
	note->nr_files = 6;
}

static void count_of_paths_too(struct file_note *note)
{
	note->nr_files = 5;
}

static void page_wraps(struct file_note *note)
{
	note->page_bytes = UINT64_MAX;
}

static void end_wraps(struct file_note *note)
{
	note->entries[1].offset_pages = INT64_MAX / 4096;
}

static void falls(struct file_note *note)
{
	note->entries[1].end = note->entries[1].start;
}

static void overlaps(struct file_note *note)
{
	note->entries[3].end = 0x8000;
}

Test(core_file_note, parses_whole_and_damaged_notes)
{
	static const size_t whole = offsetof(struct file_note, paths) + sizeof(PATHS);
	static const char all[] = "1000-3000@0 /usr/a! 2; 4000-5000@2000 /usr/a 1; "
				  "7000-9000@1000 /usr/b 3; 9000-a000@3000 /usr/b 3; ";
	static const struct {
		const char *name;
		void (*change)(struct file_note *note);
		size_t size;
		int err;
		size_t nr_lost;
		const char *expected;
	} cases[] = {
		{"whole", unchanged, whole, 0, 0, all},
		{"the last path is cut", unchanged, whole - 1, 0, 1,
		 "1000-3000@0 /usr/a! 1; 7000-9000@1000 /usr/b 2; 9000-a000@3000 /usr/b 2; "},
		{"cut in the second path", unchanged, 112 + 12, 0, 3, "9000-a000@3000 /usr/b 1; "},
		{"no paths", unchanged, 112, 0, 4, ""},
		{"cut in the entries", unchanged, 111, -EBADMSG, 9, ""},
		{"cut in the header", unchanged, 15, -EBADMSG, 9, ""},
		{"empty", unchanged, 0, -EBADMSG, 9, ""},
		{"none", no_files, whole, 0, 0, ""},
		{"absurd count", absurd_count, whole, -EBADMSG, 9, ""},
		{"a count one too large", one_too_many, whole, -EBADMSG, 9, ""},
		{"a count that includes paths", count_of_paths_too, whole, 0, 3,
		 "1000-3000@0 /usr/a 1; 9000-a000@3000 /usr/b 2; "},
		{"offsets that wrap", page_wraps, whole, 0, 3, "1000-3000@0 /usr/a! 1; "},
		{"an offset that wraps at its end", end_wraps, whole, 0, 1,
		 "4000-5000@2000 /usr/a 1; 7000-9000@1000 /usr/b 2; 9000-a000@3000 /usr/b 2; "},
		{"an empty mapping", falls, whole, 0, 1,
		 "4000-5000@2000 /usr/a 1; 7000-9000@1000 /usr/b 2; 9000-a000@3000 /usr/b 2; "},
		{"overlap", overlaps, whole, 0, 0,
		 "1000-3000@0 /usr/a! 2; 4000-8000@2000 /usr/a 1; 8000-9000@2000 /usr/b 3; "
		 "9000-a000@3000 /usr/b 3; "},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct file_note note = make_note();
		char text[256];
		size_t nr_lost = 9;

		cases[i].change(&note);
		cr_expect(eq(int, parse(&note, cases[i].size, text, &nr_lost), cases[i].err), "%s",
			  cases[i].name);
		cr_expect(eq(sz, nr_lost, cases[i].nr_lost), "%s", cases[i].name);
		cr_expect(eq(str, text, (char *)cases[i].expected), "%s", cases[i].name);
	}
}

/* A path longer than any file can have. */
Test(core_file_note, long_path_is_counted_as_lost)
{
	static const size_t lengths[] = {PATH_MAX - 1, PATH_MAX};

	for (size_t i = 0; i < 2; i++) {
		uint64_t header[] = {1, 4096, 0x1000, 0x2000, 0};
		size_t size = sizeof(header) + lengths[i] + 1;
		char *note = malloc(size);
		struct maps maps = {0};
		size_t nr_lost = 9;

		memset(note, '/', size - 1);
		note[size - 1] = '\0';
		memcpy(note, header, sizeof(header));
		cr_assert(zero(int, core_file_note_parse(note, size, &maps, &nr_lost)));
		cr_expect(eq(sz, nr_lost, i));
		cr_expect(eq(sz, maps.nr_mappings, 1 - i));
		maps_done(&maps);
	}
}
