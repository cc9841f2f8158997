/* SPDX-License-Identifier: MIT */
/*
 * A program in which CPython is looked for: one that runs, or one that a core file holds.
 */
#pragma once

#include <stdbool.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/image_source.h"

/* All borrowed, as long as the program is looked at. */
struct program {
	const char *name;     /* for sentences: "process 1234", "core core.1234" */
	bool is_alive;	      /* what is not there may come: it is worth to try again */
	const char *exe_path; /* what it runs, as its mappings have it; "" if not known */
	const struct maps *maps;
	struct remote_memory *memory;
	struct image_source *images; /* the files of its mappings */
};
