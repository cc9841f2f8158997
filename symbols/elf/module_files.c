/* SPDX-License-Identifier: MIT */
#include "symbols/elf/module_files.h"

#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

struct module_files {
	struct module_file **files; /* owned, with the files */
	uint32_t nr_files, max_files;
	uint64_t nr_unwind_bytes; /* of all files */
};

/* One file. */

static uint64_t table_bytes(const struct unwind_table *table)
{
	return table ? unwind_table_section(table)->nr_bytes : 0;
}

static void destroy_file(struct module_files *files, struct module_file *file)
{
	files->nr_unwind_bytes -= table_bytes(file->eh_frame) + table_bytes(file->debug_frame);
	unwind_table_destroy(file->eh_frame);
	unwind_table_destroy(file->debug_frame);
	function_symbols_destroy(file->symbols);
	free((void *)file->id.segments);
	free(file);
}

static struct module_file *create_file(const struct module_file_id *id)
{
	struct module_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->id = *id;
	file->id.segments = array_copy(id->segments, id->nr_segments, sizeof(*id->segments));
	if (!file->id.segments) {
		free(file);
		return NULL;
	}
	return file;
}

/* Whether both identify the same file, as far as can be determined. */
static bool is_same(const struct module_file_id *a, const struct module_file_id *b)
{
	return a->build_id_bytes && a->nr_segments && a->build_id_bytes == b->build_id_bytes &&
	       memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0 &&
	       a->nr_segments == b->nr_segments &&
	       memcmp(a->segments, b->segments, a->nr_segments * sizeof(*a->segments)) == 0;
}

/* All files. */

struct module_files *module_files_create(void)
{
	return calloc(1, sizeof(struct module_files));
}

void module_files_destroy(struct module_files *files)
{
	if (!files)
		return;
	for (uint32_t i = 0; i < files->nr_files; i++)
		destroy_file(files, files->files[i]);
	free(files->files);
	free(files);
}

static void forget_unused(struct module_files *files)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < files->nr_files; i++)
		if (files->files[i]->nr_users)
			files->files[nr++] = files->files[i];
		else
			destroy_file(files, files->files[i]);
	files->nr_files = nr;
}

static struct module_file *add_file(struct module_files *files, const struct module_file_id *id)
{
	struct module_file **array;
	struct module_file *file;

	if (files->nr_files >= MODULE_FILES_KEPT)
		forget_unused(files);
	array = array_reserve(files->files, files->nr_files + 1, &files->max_files,
			      sizeof(struct module_file *));
	if (!array)
		return NULL;
	files->files = array;
	file = create_file(id);
	if (file)
		array[files->nr_files++] = file;
	return file;
}

struct module_file *module_files_get(struct module_files *files, const struct module_file_id *id)
{
	struct module_file *file = NULL;

	for (uint32_t i = 0; !file && i < files->nr_files; i++)
		if (is_same(&files->files[i]->id, id))
			file = files->files[i];
	if (!file)
		file = add_file(files, id);
	if (file)
		file->nr_users++;
	return file;
}

void module_files_put(struct module_files *files, struct module_file *file)
{
	if (!file || --file->nr_users || file->id.build_id_bytes)
		return;
	for (uint32_t i = 0; i < files->nr_files; i++)
		if (files->files[i] == file) {
			files->files[i] = files->files[--files->nr_files];
			break;
		}
	destroy_file(files, file);
}

/* IDs. */

struct module_file_id module_file_id_of_image(const struct image *image)
{
	struct module_file_id id;

	id.build_id_bytes = image_build_id(image, id.build_id);
	id.segments = image_segments(image, &id.nr_segments);
	return id;
}

struct module_file_id module_file_id_of_memory(const struct memory_image *image)
{
	struct module_file_id id = {
		.segments = image->segments,
		.nr_segments = image->nr_segments,
	};

	id.build_id_bytes = memory_image_build_id(image, id.build_id);
	return id;
}

/* Unwind information. */

uint64_t module_files_bytes_left(const struct module_files *files)
{
	return MODULE_FILES_MAX_UNWIND_BYTES - files->nr_unwind_bytes;
}

struct unwind_table *module_files_table(struct module_files *files,
					const struct cfi_section *section, uint64_t lowest_vaddr)
{
	const uint64_t nr_bytes = section->nr_bytes;
	struct unwind_table *table;

	if (unwind_table_create(section, lowest_vaddr, &table))
		return NULL;
	files->nr_unwind_bytes += nr_bytes;
	return table;
}
