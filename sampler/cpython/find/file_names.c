/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/file_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/image.h"
#include "symbols/symtab.h"

/* What is known of one file. */
struct known_file {
	const struct mapping *mapping; /* one of it, borrowed from the maps */
	struct file_names names;
	int err; /* why nothing is known */
};

void file_names_cache_done(struct file_names_cache *cache)
{
	if (!cache)
		return;
	free(cache->files);
	*cache = (struct file_names_cache){0};
}

/* The entry of a file, a new one with err 0 and no mapping; NULL if there are too many. */
static struct known_file *find_entry(struct file_names_cache *cache, const struct mapping *mapping)
{
	for (size_t i = 0; i < cache->nr_files; i++) {
		const struct mapping *known = cache->files[i].mapping;

		/* Inodes of Btrfs subvolumes are the same, and so is the device in the maps. */
		if (known->inode == mapping->inode && known->dev_major == mapping->dev_major &&
		    known->dev_minor == mapping->dev_minor &&
		    strcmp(known->path, mapping->path) == 0)
			return &cache->files[i];
	}
	if (cache->nr_files == FILE_NAMES_MAX_FILES)
		return NULL;
	if (!cache->files)
		cache->files = calloc(FILE_NAMES_MAX_FILES, sizeof(*cache->files));
	return cache->files ? &cache->files[cache->nr_files++] : NULL;
}

static uint64_t symbol_or_0(const struct image *image, const char *name)
{
	uint64_t vaddr, size_bytes;

	return symtab_find(image, name, &vaddr, &size_bytes) == 0 ? vaddr : 0;
}

static void read_names(const struct image *image, struct file_names *ret_names)
{
	uint64_t size_bytes;

	*ret_names = (struct file_names){.found_by = "section"};
	if (image_section(image, ".PyRuntime", &ret_names->runtime_vaddr, &size_bytes) != 0) {
		ret_names->runtime_vaddr = symbol_or_0(image, "_PyRuntime");
		ret_names->found_by = "symbol";
	}
	if (ret_names->runtime_vaddr)
		ret_names->version_vaddr = symbol_or_0(image, "Py_Version");
	ret_names->interp_head_vaddr = symbol_or_0(image, "interp_head");
}

static bool has_name(const struct file_names *names)
{
	return names->runtime_vaddr || names->interp_head_vaddr;
}

int file_names_find(struct file_names_cache *cache, struct image_source *images,
		    const struct mapping *mapping, struct file_names *ret_names,
		    uint64_t *ret_load_bias)
{
	struct known_file *file = find_entry(cache, mapping);
	bool is_new = file && !file->mapping;
	struct image *image = NULL;
	int err;

	if (!file)
		return -E2BIG;
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
			read_names(image, &file->names);
		}
	}
	file->err = err;
	if (!err && has_name(&file->names) && image_load_bias(image, mapping, ret_load_bias) == 0)
		*ret_names = file->names;
	image_close(image);
	return err;
}
