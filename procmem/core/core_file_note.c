/* SPDX-License-Identifier: MIT */
#include "procmem/core/core_file_note.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/core/core_maps.h"

#define DELETED_MARK " (deleted)"

/*
 * u64 nr_files, page_bytes; per file u64 start, end, file offset in pages; then the paths in the
 * same order, each followed by a NUL.
 */
enum { HEADER_BYTES = 16, ENTRY_BYTES = 24 };

static bool parse_entry(const char *entry, uint64_t page_bytes, struct mapping *ret_mapping)
{
	*ret_mapping = (struct mapping){.start = field_u64(entry, 0), .end = field_u64(entry, 8)};
	return ret_mapping->start < ret_mapping->end &&
	       !__builtin_mul_overflow(field_u64(entry, 16), page_bytes,
				       &ret_mapping->file_offset) &&
	       ret_mapping->file_offset <= INT64_MAX &&
	       ret_mapping->end - ret_mapping->start <= INT64_MAX - ret_mapping->file_offset;
}

/*
 * Parse the mappings whose entry and whole path are in the note. Returns the number of those
 * dropped. Paths of PATH_MAX bytes or more are dropped: the kernel writes none (file_path()), and
 * no file can be opened by one.
 */
static size_t parse_entries(char *note, size_t size, uint64_t nr_files, struct maps *maps)
{
	uint64_t page_bytes = field_u64(note, 8);
	char *path = note + HEADER_BYTES + nr_files * ENTRY_BYTES;
	char *end = note + size;

	for (uint64_t i = 0; i < nr_files; i++) {
		struct mapping *mapping = &maps->mappings[maps->nr_mappings];
		char *path_end = memchr(path, '\0', (size_t)(end - path));

		if (!path_end)
			break;
		if (path_end - path < PATH_MAX &&
		    parse_entry(note + HEADER_BYTES + i * ENTRY_BYTES, page_bytes, mapping)) {
			mapping->path = path;
			maps->nr_mappings++;
		}
		path = path_end + 1;
	}
	return nr_files - maps->nr_mappings;
}

static int compare_paths(const void *a, const void *b)
{
	const struct mapping *x = a;
	const struct mapping *y = b;

	return strcmp(x->path, y->path);
}

/* Give equal paths the same number. Leaves the mappings sorted by path. */
static void number_files(struct maps *maps)
{
	struct mapping *mappings = maps->mappings;

	if (maps->nr_mappings)
		qsort(mappings, maps->nr_mappings, sizeof(*mappings), compare_paths);
	for (size_t i = 0; i < maps->nr_mappings; i++)
		mappings[i].inode =
			i == 0 ? 1
			       : mappings[i - 1].inode +
					 (strcmp(mappings[i].path, mappings[i - 1].path) != 0);
}

/* Remove the kernel's mark of deleted files and set deleted, as struct mapping requires. */
static void remove_deleted_marks(struct maps *maps, char *note)
{
	size_t mark_length = strlen(DELETED_MARK);

	for (size_t i = 0; i < maps->nr_mappings; i++) {
		struct mapping *mapping = &maps->mappings[i];
		size_t length = strlen(mapping->path);

		if (length <= mark_length ||
		    strcmp(mapping->path + length - mark_length, DELETED_MARK) != 0)
			continue;
		mapping->deleted = true;
		note[(size_t)(mapping->path - note) + length - mark_length] = '\0';
	}
}

int core_file_note_parse(char *note, size_t size, struct maps *ret_files, size_t *ret_nr_lost)
{
	struct maps maps = {.text = note};
	uint64_t nr_files = size < HEADER_BYTES ? UINT64_MAX : field_u64(note, 0);
	int err;

	if (nr_files > (size - HEADER_BYTES) / ENTRY_BYTES)
		err = -EBADMSG;
	else
		err = core_maps_reserve(&maps, nr_files);
	if (err) {
		maps_done(&maps);
		return err;
	}
	*ret_nr_lost = parse_entries(note, size, nr_files, &maps);
	number_files(&maps);
	remove_deleted_marks(&maps, note);
	core_maps_sort(&maps);
	*ret_files = maps;
	return 0;
}
