/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/find/elf_modules.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

#define BLOCK_BYTES (256u << 10)

/* The list under construction, and what is needed to classify mappings. */
struct lister {
	const struct maps *maps;
	struct elf_modules list;
	uint32_t max_modules;
	size_t nr_of_kind[NR_MODULE_KINDS];
	const char *exe_path; /* "" if unknown */
};

static enum module_kind kind_of(const struct lister *lister, const struct mapping *mapping)
{
	const char *name = strrchr(mapping->path, '/');

	if (lister->exe_path[0] && strcmp(mapping->path, lister->exe_path) == 0)
		return MODULE_EXECUTABLE;
	return name && strncmp(name, "/libpython", strlen("/libpython")) == 0 ? MODULE_LIBPYTHON
									      : MODULE_OTHER;
}

static int add_module(struct lister *lister, const struct elf_module *module)
{
	struct elf_modules *list = &lister->list;
	struct elf_module *modules;

	if (lister->nr_of_kind[module->kind] == ELF_MODULES_MAX)
		return 0;
	lister->nr_of_kind[module->kind]++;
	modules = array_reserve(list->modules, (uint32_t)list->nr_modules + 1, &lister->max_modules,
				sizeof(*modules));
	if (!modules)
		return -ENOMEM;
	list->modules = modules;
	modules[list->nr_modules++] = *module;
	return 0;
}

/*
 * The index after the adjacent mappings that begin at index and may be the rest of a .bss: they are
 * anonymous, and neither the kernel's nor a stack.
 */
static size_t bss_end(const struct maps *maps, size_t index)
{
	for (; index < maps->nr_mappings; index++) {
		const struct mapping *mapping = &maps->mappings[index];

		if (mapping->inode || mapping->start != mapping[-1].end ||
		    (mapping->path[0] && strncmp(mapping->path, "[anon", strlen("[anon")) != 0))
			break;
	}
	return index;
}

/*
 * Add the loadings of one file, among the mappings [first, end). A new loading begins at an
 * executable mapping whose file offset does not rise.
 */
static int add_loadings(struct lister *lister, size_t first, size_t end)
{
	const struct maps *maps = lister->maps;
	struct elf_module module = {.kind = kind_of(lister, &maps->mappings[first]),
				    .first = first};
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
	const struct elf_module *left = a;
	const struct elf_module *right = b;

	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	return (left->code->start > right->code->start) - (left->code->start < right->code->start);
}

int elf_modules_list(const struct maps *maps, const char *exe_path, struct elf_modules *ret_modules)
{
	struct lister lister = {.maps = maps, .exe_path = exe_path};
	int err = 0;

	for (size_t i = 0, end; !err && i < maps->nr_mappings; i = end) {
		end = maps_module_end(maps, i);
		if (maps->mappings[i].inode)
			err = add_loadings(&lister, i, end);
	}
	if (err) {
		elf_modules_done(&lister.list);
		return err;
	}
	if (lister.list.nr_modules)
		qsort(lister.list.modules, lister.list.nr_modules, sizeof(struct elf_module),
		      compare_modules);
	*ret_modules = lister.list;
	return 0;
}

void elf_modules_done(struct elf_modules *modules)
{
	if (!modules)
		return;
	free(modules->modules);
	*modules = (struct elf_modules){.modules = NULL};
}

/* Variables. */

void module_data_init(struct module_data *data, struct remote_memory *memory,
		      const struct maps *maps, const struct elf_module *module)
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

/* Go to the next stretch of adjacent writable mappings. */
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
