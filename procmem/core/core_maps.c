/* SPDX-License-Identifier: MIT */
#include "procmem/core/core_maps.h"

#include <errno.h>
#include <stdlib.h>

int core_maps_reserve(struct maps *maps, uint64_t max_mappings)
{
	struct mapping *grown =
		reallocarray(maps->mappings, max_mappings ? max_mappings : 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	maps->mappings = grown;
	return 0;
}

/* Order by start, then by file offset, so that the result does not depend on qsort(). */
static int compare_mappings(const void *a, const void *b)
{
	const struct mapping *x = a;
	const struct mapping *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->file_offset > y->file_offset) - (x->file_offset < y->file_offset);
}

void core_maps_sort(struct maps *maps)
{
	remote_addr last_end = 0;
	size_t nr_kept = 0;

	if (maps->nr_mappings)
		qsort(maps->mappings, maps->nr_mappings, sizeof(*maps->mappings), compare_mappings);
	for (size_t i = 0; i < maps->nr_mappings; i++) {
		struct mapping mapping = maps->mappings[i];

		if (mapping.end <= last_end)
			continue;
		if (mapping.start < last_end) {
			mapping.file_offset += last_end - mapping.start;
			mapping.start = last_end;
		}
		last_end = mapping.end;
		maps->mappings[nr_kept++] = mapping;
	}
	maps->nr_mappings = nr_kept;
}

/* Advance *index to the first mapping that ends above addr and return it; NULL at the end. */
static const struct mapping *next_from(const struct maps *maps, size_t *index, remote_addr addr)
{
	while (*index < maps->nr_mappings && maps->mappings[*index].end <= addr)
		(*index)++;
	return *index < maps->nr_mappings ? &maps->mappings[*index] : NULL;
}

/* Returns the next address above start at which mapping begins or ends. mapping may be NULL. */
static remote_addr next_border(const struct mapping *mapping, remote_addr start)
{
	if (!mapping)
		return UINT64_MAX;
	return mapping->start > start ? mapping->start : mapping->end;
}

/* Returns the mapping that begins at start, made from load, file or both, up to the next border. */
static struct mapping join(const struct mapping *load, const struct mapping *file,
			   remote_addr start)
{
	struct mapping joined = {.path = ""};

	if (load && load->start <= start) {
		joined = *load;
		joined.file_offset = 0;
	}
	if (file && file->start <= start) {
		joined.path = file->path;
		joined.inode = file->inode;
		joined.deleted = file->deleted;
		joined.file_offset = file->file_offset + (start - file->start);
		if (!(load && load->start <= start)) {
			joined.readable = true;
			joined.executable = joined.file_offset != 0;
		}
	}
	remote_addr load_border = next_border(load, start);
	remote_addr file_border = next_border(file, start);

	joined.start = start;
	joined.end = load_border < file_border ? load_border : file_border;
	return joined;
}

int core_maps_join(const struct maps *loads, struct maps *files, struct maps *ret_maps)
{
	struct maps maps = {.nr_mappings = 0};
	remote_addr addr = 0;
	size_t load_index = 0;
	size_t file_index = 0;

	/* Each piece ends where one of the mappings begins or ends. */
	if (core_maps_reserve(&maps, 2 * ((uint64_t)loads->nr_mappings + files->nr_mappings)))
		return -ENOMEM;
	for (;;) {
		const struct mapping *load = next_from(loads, &load_index, addr);
		const struct mapping *file = next_from(files, &file_index, addr);

		if (!load && !file)
			break;
		remote_addr start =
			load && (!file || load->start < file->start) ? load->start : file->start;

		if (start < addr)
			start = addr;
		maps.mappings[maps.nr_mappings] = join(load, file, start);
		addr = maps.mappings[maps.nr_mappings++].end;
	}
	maps.text = files->text;
	files->text = NULL;
	*ret_maps = maps;
	return 0;
}
