/* SPDX-License-Identifier: MIT */
/* The programs and libraries of a core file, as a report lists them. */
#pragma once

#include <stddef.h>

#include "output/dump/post_mortem.h"
#include "symbols/elf/core_files.h"

/* What the modules point to is borrowed from the core_files, or owned. All zero: empty. */
struct core_modules {
	struct post_mortem_module *modules; /* sorted by address; owned */
	size_t nr_modules;

	/* Private. */
	char (*build_ids)[2 * BUILD_ID_MAX_BYTES + 1]; /* owned; one for each module */
};

/*
 * Find the files of all modules and list them. files is borrowed until core_modules_done(), which
 * accepts an empty list. Returns 0 or -ENOMEM.
 */
int core_modules_list(struct core_files *files, struct core_modules *ret_modules);
void core_modules_done(struct core_modules *modules);
