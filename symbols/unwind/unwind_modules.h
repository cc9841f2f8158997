/* SPDX-License-Identifier: MIT */
/*
 * The modules of a target with their call frame information. It is read when a frame of a module
 * is first met: from the target's memory and, if that does not cover the frame, from the module's
 * file. Code made at run time is covered by its JIT sources, if at all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/elf/image_source.h"
#include "symbols/elf/module_files.h"
#include "symbols/elf/module_map.h"
#include "symbols/jit/jit_frames.h"
#include "symbols/unwind/call_site.h"
#include "symbols/unwind/registers.h"
#include "symbols/unwind/stack_window.h"
#include "symbols/unwind/unwind_table.h"

struct unwind_modules;

/*
 * Create for the modules of a target. files keeps what is read from files. All arguments are
 * borrowed for the lifetime of the result; images may be NULL. Returns 0 or -ENOMEM.
 * unwind_modules_destroy() accepts NULL.
 */
int unwind_modules_create(struct remote_memory *memory, struct module_map *map,
			  struct image_source *images, struct module_files *files,
			  struct unwind_modules **ret_modules);
void unwind_modules_destroy(struct unwind_modules *modules);

/* Use jit, borrowed from now on, to unwind code that is in no file. */
void unwind_modules_set_jit(struct unwind_modules *modules, struct jit_frames *jit);

/*
 * The rule for the instruction at addr, and in *ret_section the section that holds its
 * expressions. Both are borrowed until the next call. NULL: there is no rule. Every step of every
 * stack calls this, so results for modules are cached.
 */
const struct unwind_rule *unwind_modules_find(struct unwind_modules *modules, remote_addr addr,
					      const struct cfi_section **ret_section);

/* As call_sites_find(), for a frame for whose function there is no rule. */
int unwind_modules_find_call(struct unwind_modules *modules, struct stack_window *window,
			     const struct registers *frame, enum call_site_kind *ret_kind,
			     remote_addr *ret_cfa);

/*
 * The range [*ret_start, *ret_start + *ret_nr_bytes) of the function that contains the
 * instruction at addr. Covers only the information read so far, which is complete for addr once a
 * rule was found there.
 *
 * Returns 0, or -ENOENT if no known function contains it.
 */
int unwind_modules_function(struct unwind_modules *modules, remote_addr addr,
			    remote_addr *ret_start, uint64_t *ret_nr_bytes);

/*
 * The start of the trampoline (perf_trampoline.h) that contains the instruction at addr, or 0 if
 * none does.
 */
remote_addr unwind_modules_trampoline(struct unwind_modules *modules, remote_addr addr);

/* Whether addr is in the range of a module, which may contain gaps. */
bool unwind_modules_has(struct unwind_modules *modules, remote_addr addr);
