/* SPDX-License-Identifier: MIT */
/*
 * The modules of a target, with the call frame information of each. It is read when a frame
 * of the module is first met, out of the target's memory; then, if that does not tell of
 * the frame, out of the module's file. Of code made at run time its sources tell, if anything does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/elf/image_source.h"
#include "symbols/elf/module_files.h"
#include "symbols/elf/module_map.h"
#include "symbols/jit/jit_frames.h"
#include "symbols/unwind/unwind_table.h"

struct unwind_modules;

/*
 * Create for the modules of a target, what is read of which files keeps. All are borrowed, for as
 * long as this is there; images may be NULL. 0 or -ENOMEM. unwind_modules_destroy() accepts NULL.
 */
int unwind_modules_create(struct remote_memory *memory, struct module_map *map,
			  struct image_source *images, struct module_files *files,
			  struct unwind_modules **ret_modules);
void unwind_modules_destroy(struct unwind_modules *modules);

/* Ask jit, borrowed from then on, how to unwind code that is in no file. */
void unwind_modules_set_jit(struct unwind_modules *modules, struct jit_frames *jit);

/*
 * The rule for the instruction at addr, and the section whose expressions it may have: both
 * borrowed until the next call. NULL: there is none. Each step of every stack asks: what modules
 * say of an instruction is remembered.
 */
const struct unwind_rule *unwind_modules_find(struct unwind_modules *modules, remote_addr addr,
					      const struct cfi_section **ret_section);

/*
 * The function that the instruction at addr is in, from *ret_start on, as far as the module's
 * information has been read: as it has once a rule was found. 0; -ENOENT: in none that is known.
 */
int unwind_modules_function(struct unwind_modules *modules, remote_addr addr,
			    remote_addr *ret_start, uint64_t *ret_nr_bytes);

/*
 * Where the trampoline begins that the instruction at addr is part of (perf_trampoline.h); 0: it
 * is in none.
 */
remote_addr unwind_modules_trampoline(struct unwind_modules *modules, remote_addr addr);

/* Whether anything is mapped at addr, or at least around it. */
bool unwind_modules_has(struct unwind_modules *modules, remote_addr addr);
