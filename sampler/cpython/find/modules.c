/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/modules.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (256u << 10)

/* The list. */

/* What is needed to tell the kind of a mapping. */
struct lister {
	const struct maps *maps;
	struct modules list;
	size_t nr_of_kind[NR_MODULE_KINDS];
	const char *exe_path; /* "" if it is not known */
};

static enum module_kind kind_of(const struct lister *lister, const struct mapping *mapping)
{
	const char *name = strrchr(mapping->path, '/');

	if (lister->exe_path[0] && strcmp(mapping->path, lister->exe_path) == 0)
		return MODULE_EXECUTABLE;
	return name && strncmp(name, "/libpython", 10) == 0 ? MODULE_LIBPYTHON : MODULE_OTHER;
}

static int add_module(struct lister *lister, const struct module *module)
{
	struct modules *list = &lister->list;

	if (lister->nr_of_kind[module->kind] == MODULES_MAX)
		return 0;
	lister->nr_of_kind[module->kind]++;
	if ((list->nr_modules & (list->nr_modules - 1)) == 0) {
		struct module *grown = reallocarray(
			list->modules, list->nr_modules ? list->nr_modules * 2 : 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		list->modules = grown;
	}
	list->modules[list->nr_modules++] = *module;
	return 0;
}

/* Anonymous, and none of the kernel's or a stack: it may be the rest of a .bss. */
static bool is_plain_memory(const struct mapping *mapping)
{
	return mapping->inode == 0 &&
	       (mapping->path[0] == '\0' || strncmp(mapping->path, "[anon", 5) == 0);
}

/* The index behind the mappings that touch each other and belong to no file, from index on. */
static size_t bss_end(const struct maps *maps, size_t index)
{
	while (index < maps->nr_mappings && is_plain_memory(&maps->mappings[index]) &&
	       maps->mappings[index].start == maps->mappings[index - 1].end)
		index++;
	return index;
}

/*
 * The loadings among the mappings [first, end) of one file. A new one begins where
 * the place in the file of an executable mapping does not rise.
 */
static int add_loadings(struct lister *lister, size_t first, size_t end)
{
	const struct maps *maps = lister->maps;
	struct module module = {.kind = kind_of(lister, &maps->mappings[first]), .first = first};
	const struct mapping *header = NULL;
	uint64_t last_offset = 0;
	int err = 0;

	module.end = bss_end(maps, end);
	for (size_t i = first; !err && i < end; i++) {
		const struct mapping *mapping = &maps->mappings[i];

		if (mapping->inode && mapping->file_offset == 0)
			header = mapping;
		if (!mapping->inode || !mapping->executable)
			continue;
		if (module.code && mapping->file_offset <= last_offset) {
			err = add_module(lister, &module);
			module.first = i;
			module.code = NULL;
		}
		if (!module.code) {
			module.code = mapping;
			module.header = header;
		}
		last_offset = mapping->file_offset;
	}
	if (!module.code && module.kind != MODULE_OTHER) {
		module.code = &maps->mappings[first];
		module.header = header;
	}
	return err || !module.code ? err : add_module(lister, &module);
}

static int compare_modules(const void *a, const void *b)
{
	const struct module *left = a;
	const struct module *right = b;

	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	return (left->code->start > right->code->start) - (left->code->start < right->code->start);
}

int modules_list(const struct maps *maps, const char *exe_path, struct modules *ret_modules)
{
	struct lister lister = {.maps = maps, .exe_path = exe_path};
	int err = 0;

	for (size_t i = 0, end; !err && i < maps->nr_mappings; i = end) {
		end = maps_module_end(maps, i);
		if (maps->mappings[i].inode)
			err = add_loadings(&lister, i, end);
	}
	if (err) {
		modules_done(&lister.list);
		return err;
	}
	if (lister.list.nr_modules)
		qsort(lister.list.modules, lister.list.nr_modules, sizeof(struct module),
		      compare_modules);
	*ret_modules = lister.list;
	return 0;
}

void modules_done(struct modules *modules)
{
	if (!modules)
		return;
	free(modules->modules);
	*modules = (struct modules){.modules = NULL};
}

/* Data. */

void module_data_init(struct module_data *data, struct remote_memory *memory,
		      const struct maps *maps, const struct module *module)
{
	*data = (struct module_data){
		.memory = memory,
		.maps = maps,
		.index = module->first,
		.end = module->end,
		.buffer = malloc(BLOCK_BYTES),
	};
	if (!data->buffer)
		data->index = data->end;
}

void module_data_done(struct module_data *data)
{
	free(data->buffer);
	*data = (struct module_data){.index = 0};
}

/* Go to the next stretch: writable mappings, one right behind the other. */
static bool next_stretch(struct module_data *data)
{
	const struct mapping *mappings = data->maps->mappings;

	while (data->index < data->end &&
	       !(mappings[data->index].readable && mappings[data->index].writable))
		data->index++;
	if (data->index == data->end)
		return false;
	data->next_addr = mappings[data->index].start;
	do
		data->end_addr = mappings[data->index++].end;
	while (data->index < data->end && mappings[data->index].readable &&
	       mappings[data->index].writable && mappings[data->index].start == data->end_addr);
	if (data->end_addr - data->next_addr > MODULE_MAX_DATA_BYTES)
		data->end_addr = data->next_addr + MODULE_MAX_DATA_BYTES;
	return true;
}

bool module_data_next(struct module_data *data)
{
	while (data->next_addr < data->end_addr || next_stretch(data)) {
		uint64_t left = data->end_addr - data->next_addr;
		struct remote_range range = {.addr = data->next_addr,
					     .buffer = data->buffer,
					     .size = left < BLOCK_BYTES ? left : BLOCK_BYTES};

		if (remote_memory_read_ranges(data->memory, &range, 1))
			return false;
		data->next_addr += range.size;
		if (data->next_addr < data->end_addr)
			data->next_addr -= MODULE_DATA_OVERLAP_BYTES;
		data->addr = range.addr;
		data->block = data->buffer;
		data->size = range.done_bytes & ~(size_t)7;
		if (data->size)
			return true;
	}
	return false;
}
