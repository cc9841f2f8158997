/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/unwind_modules.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "procmem/addr_slot.h"
#include "symbols/elf/memory_image.h"
#include "symbols/jit/perf_trampoline.h"
#include "symbols/unwind/eh_frame.h"
#include "symbols/unwind/signal_return.h"

struct module {
	struct module_file *file; /* NULL: not read yet, or not readable */
	uint64_t load_bias;
	uint64_t lowest_vaddr;
};

/* A cached result for one instruction. */
struct cached_rule {
	remote_addr addr; /* 0: the entry is empty */
	/*
	 * Start of its trampoline; 0: it is in none. CPython never frees trampolines while it
	 * runs.
	 */
	remote_addr trampoline_addr;
	const struct unwind_rule *rule;
	const struct cfi_section *section; /* holds the rule's expressions; NULL for a trampoline */
};

/*
 * Size of the cache, which is direct-mapped by address: most stacks lead through the same few
 * hundred instructions.
 */
enum { NR_CACHED_RULES = 2048 };

struct unwind_modules {
	struct remote_memory *memory;
	struct image_source *images;
	struct module_map *map;
	struct module_files *files;
	struct module *modules; /* one for each range of the map, by the same index */
	struct jit_frames *jit; /* borrowed; may be NULL */
	struct cached_rule cached_rules[NR_CACHED_RULES];
	struct call_sites sites;
};

/* Creation. */

int unwind_modules_create(struct remote_memory *memory, struct module_map *map,
			  struct image_source *images, struct module_files *files,
			  struct unwind_modules **ret_modules)
{
	struct unwind_modules *modules = calloc(1, sizeof(*modules));

	if (!modules)
		return -ENOMEM;
	modules->memory = memory;
	modules->images = images;
	modules->map = map;
	modules->files = files;
	call_sites_init(&modules->sites, memory, map);
	modules->modules = calloc(map->nr_ranges + 1ull, sizeof(*modules->modules));
	if (!modules->modules) {
		unwind_modules_destroy(modules);
		return -ENOMEM;
	}
	*ret_modules = modules;
	return 0;
}

void unwind_modules_set_jit(struct unwind_modules *modules, struct jit_frames *jit)
{
	modules->jit = jit;
}

void unwind_modules_destroy(struct unwind_modules *modules)
{
	if (!modules)
		return;
	for (uint32_t i = 0; modules->modules && i < modules->map->nr_ranges; i++)
		module_files_put(modules->files, modules->modules[i].file);
	free(modules->modules);
	free(modules);
}

/* Reading. A module without readable information has no table. */

static void read_memory(const struct unwind_modules *modules, const struct module *module,
			const struct memory_image *image)
{
	struct module_file *file = module->file;
	struct cfi_section section;

	file->has_read_memory = true;
	if (!eh_frame_copy(image, module_files_bytes_left(modules->files), &section))
		file->eh_frame = module_files_table(modules->files, &section, module->lowest_vaddr);
}

/* Identify the module's file, and read what is loaded of it unless it has been read. */
static void open_module(const struct unwind_modules *modules, const struct module_range *range,
			struct module *module)
{
	static const struct module_file_id unknown_id;
	struct memory_image image;

	if (memory_image_open(modules->memory, range->start, &image)) {
		module->file = module_files_get(modules->files, &unknown_id);
		return;
	}
	const struct module_file_id id = module_file_id_of_memory(&image);

	module->load_bias = image.load_bias;
	module->lowest_vaddr = image.start - image.load_bias;
	module->file = module_files_get(modules->files, &id);
	if (module->file && !module->file->has_read_memory)
		read_memory(modules, module, &image);
	memory_image_close(&image);
}

static struct unwind_table *table_of_file(const struct unwind_modules *modules,
					  const struct module *module, const struct image *image,
					  enum cfi_kind kind)
{
	struct cfi_section section;

	if (cfi_copy_of_file(image, kind, module_files_bytes_left(modules->files), &section))
		return NULL;
	return module_files_table(modules->files, &section, module->lowest_vaddr);
}

/* Read the information that is in the file only. */
static void read_file(const struct unwind_modules *modules, const struct module_range *range,
		      struct module *module)
{
	struct module_file *file = module->file;
	struct image *image;

	file->has_read_file = true;
	if (!modules->images || range->mapping->inode == 0 ||
	    image_source_open(modules->images, range->mapping, &image))
		return;
	if (!image_load_bias(image, range->mapping, &module->load_bias)) {
		module->lowest_vaddr = range->start - module->load_bias;
		if (!file->eh_frame)
			file->eh_frame = table_of_file(modules, module, image, CFI_EH_FRAME);
		file->debug_frame = table_of_file(modules, module, image, CFI_DEBUG_FRAME);
	}
	image_close(image);
}

/* Look-up. */

bool unwind_modules_has(struct unwind_modules *modules, remote_addr addr)
{
	return module_map_find(modules->map, addr) != MODULE_MAP_NONE;
}

static const struct unwind_rule *find_in_table(struct unwind_table *table, uint64_t vaddr,
					       const struct cfi_section **ret_section)
{
	const struct unwind_rule *rule = table ? unwind_table_find(table, vaddr) : NULL;

	if (rule)
		*ret_section = unwind_table_section(table);
	return rule;
}

/* Find a rule in what has been read of the module. */
static const struct unwind_rule *find_rule(const struct module *module, remote_addr addr,
					   const struct cfi_section **ret_section)
{
	const uint64_t vaddr = addr - module->load_bias;
	const struct unwind_rule *rule = find_in_table(module->file->eh_frame, vaddr, ret_section);

	return rule ? rule : find_in_table(module->file->debug_frame, vaddr, ret_section);
}

/* Whether the range at an index may hold code made at run time: it has no file. */
static bool may_be_jit_code(const struct unwind_modules *modules, uint32_t index)
{
	return index == MODULE_MAP_NONE || !modules->map->ranges[index].mapping->inode;
}

static struct cached_rule *cached_rule_at(struct unwind_modules *modules, remote_addr addr)
{
	return &modules->cached_rules[addr_slot(addr, NR_CACHED_RULES)];
}

/* The rule of a trampoline, recognised by its bytes. */
static const struct unwind_rule *find_trampoline(struct unwind_modules *modules, remote_addr addr,
						 remote_addr *ret_start_addr)
{
	struct cached_rule *cached = cached_rule_at(modules, addr);
	const struct unwind_rule *rule;

	if (cached->addr == addr && cached->trampoline_addr) {
		*ret_start_addr = cached->trampoline_addr;
		return cached->rule;
	}
	rule = perf_trampoline_rule(modules->memory, addr, ret_start_addr);
	if (rule)
		*cached = (struct cached_rule){addr, *ret_start_addr, rule, NULL};
	return rule;
}

remote_addr unwind_modules_trampoline(struct unwind_modules *modules, remote_addr addr)
{
	remote_addr start_addr;

	return may_be_jit_code(modules, module_map_find(modules->map, addr)) &&
			       find_trampoline(modules, addr, &start_addr)
		       ? start_addr
		       : 0;
}

/* Find a rule in the module's information, reading it on demand. */
static const struct unwind_rule *find_in_module(struct unwind_modules *modules, uint32_t index,
						remote_addr addr,
						const struct cfi_section **ret_section)
{
	const struct module_range *range = &modules->map->ranges[index];
	struct module *module = &modules->modules[index];
	const struct unwind_rule *rule;

	if (!module->file)
		open_module(modules, range, module);
	if (!module->file)
		return NULL;
	rule = find_rule(module, addr, ret_section);
	if (rule || module->file->has_read_file)
		return rule;
	read_file(modules, range, module);
	return find_rule(module, addr, ret_section);
}

/* The rule of a frame that a signal handler returns to, or else the given one. */
static const struct unwind_rule *signal_rule_or(const struct unwind_modules *modules,
						remote_addr addr, const struct unwind_rule *rule)
{
	const struct unwind_rule *signal = signal_return_rule(modules->memory, addr);

	return signal ? signal : rule;
}

/* Only rules of modules are cached: code made at run time may be replaced by other code. */
static const struct unwind_rule *find_uncached(struct unwind_modules *modules, remote_addr addr,
					       const struct cfi_section **ret_section)
{
	const uint32_t index = module_map_find(modules->map, addr);
	const struct unwind_rule *rule = NULL;
	const struct mapping *mapping;
	remote_addr start_addr;

	if (index != MODULE_MAP_NONE)
		rule = find_in_module(modules, index, addr, ret_section);
	if (rule && rule->is_signal_frame)
		rule = signal_rule_or(modules, addr, rule);
	if (rule)
		*cached_rule_at(modules, addr) = (struct cached_rule){addr, 0, rule, *ret_section};
	if (!rule && may_be_jit_code(modules, index)) {
		if (modules->jit)
			rule = jit_frames_rule(modules->jit, addr, ret_section);
		/* For a trampoline the JIT sources and its bytes give the same rule. */
		if (!rule)
			rule = find_trampoline(modules, addr, &start_addr);
	}
	if (rule)
		return rule;
	if (index != MODULE_MAP_NONE) {
		mapping = module_map_mapping(modules->map, index, addr);
		if (!mapping || !mapping->executable)
			return NULL;
	}
	/* An emulator has it in memory of no file. */
	return signal_rule_or(modules, addr, NULL);
}

const struct unwind_rule *unwind_modules_find(struct unwind_modules *modules, remote_addr addr,
					      const struct cfi_section **ret_section)
{
	const struct cached_rule *cached = cached_rule_at(modules, addr);

	if (cached->addr != addr || !cached->rule)
		return find_uncached(modules, addr, ret_section);
	if (cached->section)
		*ret_section = cached->section;
	return cached->rule;
}

int unwind_modules_find_call(struct unwind_modules *modules, struct stack_window *window,
			     const struct registers *frame, enum call_site_kind *ret_kind,
			     remote_addr *ret_cfa)
{
	return call_sites_find(&modules->sites, window, frame, ret_kind, ret_cfa);
}

int unwind_modules_function(struct unwind_modules *modules, remote_addr addr,
			    remote_addr *ret_start, uint64_t *ret_nr_bytes)
{
	const uint32_t index = module_map_find(modules->map, addr);
	const struct module *module;
	const struct module_file *file;
	uint64_t vaddr;
	int err = -ENOENT;

	if (index == MODULE_MAP_NONE)
		return -ENOENT;
	module = &modules->modules[index];
	file = module->file;
	vaddr = addr - module->load_bias;
	if (file && file->eh_frame)
		err = unwind_table_function(file->eh_frame, vaddr, &vaddr, ret_nr_bytes);
	if (err && file && file->debug_frame)
		err = unwind_table_function(file->debug_frame, vaddr, &vaddr, ret_nr_bytes);
	if (!err)
		*ret_start = vaddr + module->load_bias;
	return err;
}
