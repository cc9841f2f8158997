/* SPDX-License-Identifier: MIT */
/*
 * The names of native functions by their addresses in a target: of its modules' files, and
 * of their debug files. A module's are read when one of its is first asked for.
 */
#pragma once

#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/elf/image_source.h"
#include "symbols/elf/module_files.h"
#include "symbols/elf/module_map.h"

/* Room for a name; longer ones stay as the compiler made them, and those are cut. */
#define NATIVE_NAME_MAX_BYTES 1024

struct native_names;

struct native_name {
	char name[NATIVE_NAME_MAX_BYTES]; /* demangled; "" if it has none */
	const char *path; /* of the module, "" if the address is in none; borrowed from the map */
	uint64_t offset;  /* of the address, from where the module begins; else the address */
};

/*
 * Create for the modules of a target, whose symbols files keeps; all are borrowed. 0 or -ENOMEM.
 * native_names_destroy() accepts NULL.
 */
int native_names_create(struct module_map *map, struct image_source *images,
			struct module_files *files, struct native_names **ret_names);
void native_names_destroy(struct native_names *names);

/* The name of the function that the instruction at addr is part of. */
void native_names_find(struct native_names *names, remote_addr addr, struct native_name *ret_name);
