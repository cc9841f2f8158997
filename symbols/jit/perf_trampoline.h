/* SPDX-License-Identifier: MIT */
/*
 * Recognises the trampolines through which CPython's -X perf and -X perf_jit (3.12 and newer)
 * call every Python function: copies of a few instructions in separate memory, without call frame
 * information while the process runs. They are recognised by their bytes. Source:
 * Python/asm_trampoline.S.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/unwind/unwind_table.h"

/*
 * The rule for the instruction at addr if it is part of a trampoline, as the memory is now. The
 * rule is static. *ret_start_addr is the start of the trampoline. NULL if it is none or cannot be
 * read.
 */
const struct unwind_rule *perf_trampoline_rule(struct remote_memory *memory, remote_addr addr,
					       remote_addr *ret_start_addr);

/* The length of the trampoline that starts at bytes; 0 if none does. */
size_t perf_trampoline_bytes(const uint8_t *bytes, size_t nr_bytes);
