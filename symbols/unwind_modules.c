/* SPDX-License-Identifier: MIT */
#include "symbols/unwind_modules.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "procmem/array.h"
#include "symbols/eh_frame.h"
#include "symbols/memory_image.h"

/* The run of mappings of one file, or one mapping of none: the kernel's own module, the vdso. */
struct module {
	remote_addr start; /* [start, end) */
	remote_addr end;
	const struct mapping *mapping; /* the first one; borrowed */
	uint64_t load_bias;
	uint64_t lowest_vaddr;
	struct unwind_table *eh_frame;	  /* NULL: not read, or there is none */
	struct unwind_table *debug_frame; /* likewise */
	bool has_read_memory;
	bool has_read_file;
};

struct unwind_modules {
	struct remote_memory *memory;
	struct image_source *images;
	struct module *modules; /* by rising address */
	uint32_t nr_modules;
	uint32_t max_modules;
	struct module *last;	/* that was found */
	uint64_t nr_bytes_left; /* that may be read */
};

/* Making. */

/* maps_module_end() ends a run with a mapping of the file; none of the others goes into it. */
static int add_module(struct unwind_modules *modules, const struct maps *maps, size_t first,
		      size_t end)
{
	struct module *array = array_reserve(modules->modules, modules->nr_modules + 1,
					     &modules->max_modules, sizeof(*array));

	if (!array)
		return -ENOMEM;
	modules->modules = array;
	array[modules->nr_modules++] = (struct module){
		.start = maps->mappings[first].start,
		.end = maps->mappings[end - 1].end,
		.mapping = &maps->mappings[first],
	};
	return 0;
}

int unwind_modules_create(struct remote_memory *memory, const struct maps *maps,
			  struct image_source *images, struct unwind_modules **ret_modules)
{
	struct unwind_modules *modules = calloc(1, sizeof(*modules));
	int err = 0;

	if (!modules)
		return -ENOMEM;
	modules->memory = memory;
	modules->images = images;
	modules->nr_bytes_left = UNWIND_MODULES_MAX_BYTES;
	for (size_t i = 0; !err && i < maps->nr_mappings;) {
		const size_t end = maps_module_end(maps, i);

		err = add_module(modules, maps, i, end);
		i = end;
	}
	if (err)
		unwind_modules_destroy(modules);
	else
		*ret_modules = modules;
	return err;
}

void unwind_modules_destroy(struct unwind_modules *modules)
{
	if (!modules)
		return;
	for (uint32_t i = 0; i < modules->nr_modules; i++) {
		unwind_table_destroy(modules->modules[i].eh_frame);
		unwind_table_destroy(modules->modules[i].debug_frame);
	}
	free(modules->modules);
	free(modules);
}

/* Reading. Where a module has no information, or none that can be read, it has no table. */

/* Make a table of a section of nr_bytes_left at most, whose bytes it takes over. */
static struct unwind_table *make_table(struct unwind_modules *modules, const struct module *module,
				       const struct cfi_section *section)
{
	struct unwind_table *table = NULL;

	modules->nr_bytes_left -= section->nr_bytes;
	if (unwind_table_create(section, module->lowest_vaddr, &table))
		return NULL;
	return table;
}

static void read_memory(struct unwind_modules *modules, struct module *module)
{
	struct memory_image image;
	struct cfi_section section;

	module->has_read_memory = true;
	if (memory_image_open(modules->memory, module->start, &image))
		return;
	module->load_bias = image.load_bias;
	module->lowest_vaddr = image.start - image.load_bias;
	if (!eh_frame_copy(&image, modules->nr_bytes_left, &section))
		module->eh_frame = make_table(modules, module, &section);
	memory_image_close(&image);
}

static struct unwind_table *table_of_file(struct unwind_modules *modules,
					  const struct module *module, const struct image *image,
					  enum cfi_kind kind)
{
	struct cfi_section section;

	if (cfi_copy_of_file(image, kind, modules->nr_bytes_left, &section))
		return NULL;
	return make_table(modules, module, &section);
}

/* Read what the file has that is not found in memory. */
static void read_file(struct unwind_modules *modules, struct module *module)
{
	struct image *image;

	module->has_read_file = true;
	if (!modules->images || module->mapping->inode == 0 ||
	    image_source_open(modules->images, module->mapping, &image))
		return;
	if (!image_load_bias(image, module->mapping, &module->load_bias)) {
		module->lowest_vaddr = module->start - module->load_bias;
		if (!module->eh_frame)
			module->eh_frame = table_of_file(modules, module, image, CFI_EH_FRAME);
		module->debug_frame = table_of_file(modules, module, image, CFI_DEBUG_FRAME);
	}
	image_close(image);
}

/* Finding. */

static bool is_inside(const struct module *module, remote_addr addr)
{
	return addr >= module->start && addr < module->end;
}

static struct module *find_module(struct unwind_modules *modules, remote_addr addr)
{
	uint32_t first = 0;
	uint32_t nr = modules->nr_modules;

	if (modules->last && is_inside(modules->last, addr))
		return modules->last;
	/* The one sought is in [first, first + nr), if there is one. */
	while (nr > 1) {
		const uint32_t half = nr / 2;

		first = modules->modules[first + half].start <= addr ? first + half : first;
		nr -= half;
	}
	if (!nr || !is_inside(&modules->modules[first], addr))
		return NULL;
	modules->last = &modules->modules[first];
	return modules->last;
}

bool unwind_modules_has(struct unwind_modules *modules, remote_addr addr)
{
	return find_module(modules, addr);
}

static const struct unwind_rule *find_in_table(struct unwind_table *table, uint64_t vaddr,
					       const struct cfi_section **ret_section)
{
	const struct unwind_rule *rule = table ? unwind_table_find(table, vaddr) : NULL;

	if (rule)
		*ret_section = unwind_table_section(table);
	return rule;
}

/* By what has been read of the module. */
static const struct unwind_rule *find_rule(const struct module *module, remote_addr addr,
					   const struct cfi_section **ret_section)
{
	const uint64_t vaddr = addr - module->load_bias;
	const struct unwind_rule *rule = find_in_table(module->eh_frame, vaddr, ret_section);

	return rule ? rule : find_in_table(module->debug_frame, vaddr, ret_section);
}

const struct unwind_rule *unwind_modules_find(struct unwind_modules *modules, remote_addr addr,
					      const struct cfi_section **ret_section)
{
	struct module *module = find_module(modules, addr);
	const struct unwind_rule *rule;

	if (!module)
		return NULL;
	if (!module->has_read_memory)
		read_memory(modules, module);
	rule = find_rule(module, addr, ret_section);
	if (rule || module->has_read_file)
		return rule;
	read_file(modules, module);
	return find_rule(module, addr, ret_section);
}
