/* SPDX-License-Identifier: MIT */
/*
 * A module in fake memory with call frame information written by hand: an ELF header, two
 * segments, .eh_frame_hdr without a table, and .eh_frame. Its code is all zeros; only
 * cfi_bytes_function() defines where functions are.
 */
#pragma once

#include "tests/support/cfi_bytes.h"
#include "tests/support/fake_memory.h"

/* Start of the code, counted from the module's start, and the size of the module. */
#define FAKE_MODULE_CODE_VADDR 0x10000
#define FAKE_MODULE_BYTES      0x20000

/*
 * Size of each function made by fake_module_function(). They follow one another from the start of
 * the code.
 */
#define FAKE_MODULE_FUNCTION_BYTES 0x100

/*
 * Append the unwind information of one function: program_bytes of program, run after that of
 * common.
 */
void fake_module_function(struct cfi_bytes *bytes, size_t common, unsigned int function_index,
			  const uint8_t *program, size_t program_bytes);

/* Address of an instruction in one function, not its first, of the module at module_addr. */
remote_addr fake_module_code_addr(remote_addr module_addr, unsigned int function_index);

/* Map a module at addr whose .eh_frame is bytes. */
void fake_module_map(struct fake_memory *fake, remote_addr addr, const struct cfi_bytes *bytes);

/* Give the module at addr this build ID. */
void fake_module_set_build_id(struct fake_memory *fake, remote_addr addr, const uint8_t id[20]);
