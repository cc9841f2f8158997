/* SPDX-License-Identifier: MIT */
#include "symbols/native_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "symbols/demangle.h"
#include "symbols/function_symbols.h"

/* The run of mappings of one file. */
struct module {
	remote_addr start; /* [start, end) */
	remote_addr end;
	const struct mapping *mapping; /* the first one; borrowed */
	uint64_t load_bias;
	struct function_symbols *symbols; /* NULL: not read, or there are none */
	bool has_read;
};

struct native_names {
	struct image_source *images;
	struct module *modules; /* by rising address */
	uint32_t nr_modules;
	uint32_t max_modules;
};

static int add_module(struct native_names *names, const struct mapping *first,
		      const struct mapping *last)
{
	struct module *modules = array_reserve(names->modules, names->nr_modules + 1,
					       &names->max_modules, sizeof(*modules));

	if (!modules)
		return -ENOMEM;
	names->modules = modules;
	modules[names->nr_modules++] =
		(struct module){.start = first->start, .end = last->end, .mapping = first};
	return 0;
}

int native_names_create(const struct maps *maps, struct image_source *images,
			struct native_names **ret_names)
{
	struct native_names *names = calloc(1, sizeof(*names));
	int err = 0;

	if (!names)
		return -ENOMEM;
	names->images = images;
	for (size_t i = 0; !err && i < maps->nr_mappings;) {
		const size_t end = maps_module_end(maps, i);

		if (maps->mappings[i].path[0])
			err = add_module(names, &maps->mappings[i], &maps->mappings[end - 1]);
		i = end;
	}
	if (err)
		native_names_destroy(names);
	else
		*ret_names = names;
	return err;
}

void native_names_destroy(struct native_names *names)
{
	if (!names)
		return;
	for (uint32_t i = 0; i < names->nr_modules; i++)
		function_symbols_destroy(names->modules[i].symbols);
	free(names->modules);
	free(names);
}

/* Add the symbols of the module's file and of its debug file, as far as they can be had. */
static void read_symbols(const struct native_names *names, struct module *module)
{
	struct image *image;

	module->has_read = true;
	if (image_source_open(names->images, module->mapping, &image))
		return;
	if (image_load_bias(image, module->mapping, &module->load_bias)) {
		image_close(image);
		return;
	}
	module->symbols = function_symbols_create();
	if (!module->symbols) {
		image_close(image);
		return;
	}
	(void)function_symbols_add(module->symbols, image);
	if (!image_source_open_debug(names->images, module->mapping, &image))
		(void)function_symbols_add(module->symbols, image);
}

static struct module *find_module(const struct native_names *names, remote_addr addr)
{
	uint32_t first = 0;
	uint32_t end = names->nr_modules;

	while (first < end) {
		const uint32_t middle = first + (end - first) / 2;
		struct module *module = &names->modules[middle];

		if (addr >= module->start && addr < module->end)
			return module;
		if (addr < module->start)
			end = middle;
		else
			first = middle + 1;
	}
	return NULL;
}

void native_names_find(struct native_names *names, remote_addr addr, struct native_name *ret_name)
{
	struct module *module = find_module(names, addr);
	const char *symbol = NULL;

	ret_name->name[0] = '\0';
	ret_name->path = module ? module->mapping->path : "";
	ret_name->offset = module ? addr - module->start + module->mapping->file_offset : addr;
	if (!module)
		return;
	if (!module->has_read)
		read_symbols(names, module);
	if (module->symbols)
		symbol = function_symbols_find(module->symbols, addr - module->load_bias);
	if (symbol && !demangle(symbol, ret_name->name, sizeof(ret_name->name)))
		(void)snprintf(ret_name->name, sizeof(ret_name->name), "%s", symbol);
}
