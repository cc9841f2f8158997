/* SPDX-License-Identifier: MIT */
/*
 * Finds the caller of a function that has no call frame information, such as those of musl, by the
 * call that entered it.
 *
 * Somewhere above the stack pointer is the return address. Other words of the stack look like one,
 * too, among them those that earlier calls left. It is the one for which the instruction before it
 * calls a function, directly or through the procedure linkage table, that leads to the pc and has
 * then used exactly the stack up to that word (stack_depth.h). A call through a pointer proves
 * nothing and is accepted only, if no word is proven, where it leads to code that is on few stacks
 * twice: the two functions that have no caller, which are the program's entry point and the code that
 * begins a thread and ends with exit(2), and the code that signal handlers return to
 * (signal_return.h), with a context that interrupted code. Nothing below the word may look like a
 * return address.
 *
 * Source: the System V ABI for AMD64, §3.2.2, "Procedure Linkage Table" and §3.4.1; musl's
 * src/thread/x86_64/clone.s and arch/x86_64/crt_arch.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/elf/module_map.h"
#include "symbols/unwind/registers.h"
#include "symbols/unwind/stack_window.h"

/* Size of the result cache. */
#define CALL_SITES_CACHED 256

/* Private. What is known of frames with that pc. */
struct call_site_cached {
	remote_addr pc; /* 0: the entry is empty */
	bool is_call;
	uint32_t depth_bytes; /* CFA - stack pointer; 0: not proven yet */
	uint32_t nr_failures;
};

/* Private. */
struct call_sites {
	struct remote_memory *memory;
	struct module_map *map;
	struct call_site_cached cache[CALL_SITES_CACHED];
};

/* Initialise for the modules of a memory. Both are borrowed. There is nothing to free. */
void call_sites_init(struct call_sites *sites, struct remote_memory *memory,
		     struct module_map *map);

enum call_site_kind {
	CALL_SITE_FOUND, /* the word below the CFA is the return address */
	CALL_SITE_NONE,	 /* the function has no caller */
};

/*
 * Find out how the function of a frame, whose pc and sp are known, was entered, and its CFA if it
 * was called.
 *
 * Returns 0; -ENOENT if no call is proven to have entered the function, or its code is in no file;
 * -EFAULT if the stack ends before; -ENOMEM, -ESRCH, -EPERM. Always -ENOENT on machines other than
 * x86-64.
 */
int call_sites_find(struct call_sites *sites, struct stack_window *window,
		    const struct registers *frame, enum call_site_kind *ret_kind,
		    remote_addr *ret_cfa);
