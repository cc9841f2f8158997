/* SPDX-License-Identifier: MIT */
/*
 * The trampolines through which CPython's -X perf and -X perf_jit (3.12 and newer) call every
 * Python function: copies of a few instructions in memory of their own, of which no section of
 * call frame information tells while the process runs. They are known by their bytes, and keep
 * a frame pointer. Source: Python/asm_trampoline.S.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/unwind/unwind_table.h"

/*
 * The rule for the instruction at addr if it is part of a trampoline, as the memory has it now;
 * static. *ret_start_addr is where the trampoline begins. NULL: it is not, or cannot be read;
 * always so but on x86-64.
 */
const struct unwind_rule *perf_trampoline_rule(struct remote_memory *memory, remote_addr addr,
					       remote_addr *ret_start_addr);

/* How long the trampoline is that the bytes begin with; 0: none, always so but on x86-64. */
size_t perf_trampoline_bytes(const uint8_t *bytes, size_t nr_bytes);
