/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/file_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/elf/image.h"
#include "symbols/elf/symtab.h"

/* A file that was read. */
struct known_file {
	const struct mapping *mapping; /* one of its mappings, borrowed from the maps */
	struct file_names names;
	int err; /* why its names are unknown */
};

void file_names_cache_done(struct file_names_cache *cache)
{
	if (!cache)
		return;
	free(cache->files);
	*cache = (struct file_names_cache){0};
}

/* Find the entry of a file, or add one with err 0 and no mapping. Returns 0, -E2BIG or -ENOMEM. */
static int find_entry(struct file_names_cache *cache, const struct mapping *mapping,
		      struct known_file **ret_file)
{
	for (size_t i = 0; i < cache->nr_files; i++) {
		const struct mapping *known = cache->files[i].mapping;

		/* Btrfs subvolumes share inode numbers, and the device shown in the maps. */
		if (known->inode == mapping->inode && known->dev_major == mapping->dev_major &&
		    known->dev_minor == mapping->dev_minor &&
		    strcmp(known->path, mapping->path) == 0) {
			*ret_file = &cache->files[i];
			return 0;
		}
	}
	if (cache->nr_files == FILE_NAMES_MAX_FILES)
		return -E2BIG;
	if (!cache->files)
		cache->files = calloc(FILE_NAMES_MAX_FILES, sizeof(*cache->files));
	if (!cache->files)
		return -ENOMEM;
	*ret_file = &cache->files[cache->nr_files++];
	return 0;
}

static uint64_t symbol_or_0(const struct image *image, const char *name)
{
	uint64_t vaddr, size_bytes;

	return symtab_find(image, name, &vaddr, &size_bytes) == 0 ? vaddr : 0;
}

static bool has_name(const struct file_names *names)
{
	return names->runtime_vaddr || names->interp_head_vaddr;
}

int file_names_find(struct file_names_cache *cache, struct image_source *images,
		    const struct mapping *mapping, struct file_names *ret_names,
		    uint64_t *ret_load_bias)
{
	struct known_file *file;
	struct image *image = NULL;
	uint64_t size_bytes;
	int err = find_entry(cache, mapping, &file);

	if (err)
		return err;
	const bool is_new = !file->mapping;

	file->mapping = mapping;
	*ret_names = (struct file_names){0};
	if (file->err || (!is_new && !has_name(&file->names)))
		return file->err;
	err = image_source_open(images, mapping, &image);
	if (!err && is_new) {
		const uint64_t nr_bytes = symtab_bytes(image);

		if (nr_bytes > FILE_NAMES_MAX_BYTES - cache->nr_bytes) {
			err = -E2BIG;
		} else {
			cache->nr_bytes += nr_bytes;
			file->names.found_by = "section";
			if (image_section(image, ".PyRuntime", &file->names.runtime_vaddr,
					  &size_bytes) != 0) {
				file->names.runtime_vaddr = symbol_or_0(image, "_PyRuntime");
				file->names.found_by = "symbol";
			}
			if (file->names.runtime_vaddr)
				file->names.version_vaddr = symbol_or_0(image, "Py_Version");
			file->names.interp_head_vaddr = symbol_or_0(image, "interp_head");
		}
	}
	file->err = err;
	if (!err && has_name(&file->names) && image_load_bias(image, mapping, ret_load_bias) == 0)
		*ret_names = file->names;
	image_close(image);
	return err;
}
