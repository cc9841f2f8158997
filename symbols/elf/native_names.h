/* SPDX-License-Identifier: MIT */
/*
 * The names of native functions by address in a target, from the files of its modules and their
 * debug files. The symbols of a module are read on its first look-up.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/elf/image_source.h"
#include "symbols/elf/module_files.h"
#include "symbols/elf/module_map.h"

/*
 * Room for a name. A name that does not fit stays mangled, and is cut if that does not fit
 * either.
 */
#define NATIVE_NAME_MAX_BYTES 1024

struct native_names;

struct native_name {
	char name[NATIVE_NAME_MAX_BYTES]; /* demangled; "" if unknown */
	const char *path; /* of the module, "" if there is none; borrowed from the map */
	/* The offset of the address from the start of the module; without a module the address. */
	uint64_t offset;
};

/*
 * Create for the modules of a target. files keeps their symbols. All arguments are borrowed.
 * Returns 0 or -ENOMEM. native_names_destroy() accepts NULL.
 */
int native_names_create(struct module_map *map, struct image_source *images,
			struct module_files *files, struct native_names **ret_names);
void native_names_destroy(struct native_names *names);

/* Find the name of the function that contains the instruction at addr. */
void native_names_find(struct native_names *names, remote_addr addr, struct native_name *ret_name);
