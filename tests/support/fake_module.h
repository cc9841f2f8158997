/* SPDX-License-Identifier: MIT */
/*
 * A module in fake memory, with call frame information written by hand: an ELF header, two
 * segments, .eh_frame_hdr without a table, .eh_frame. Its code is zeros; what lies where is said by
 * cfi_bytes_function() alone.
 */
#pragma once

#include "tests/support/cfi_bytes.h"
#include "tests/support/fake_memory.h"

/* Where its code begins, from its start, and how long it is in all. */
#define FAKE_MODULE_CODE_VADDR 0x10000
#define FAKE_MODULE_BYTES      0x20000

/* Its functions follow each other from there on, if fake_module_function() made them. */
#define FAKE_MODULE_FUNCTION_BYTES 0x100

/* Append how one of them is unwound: a program of program_bytes, behind that of common. */
void fake_module_function(struct cfi_bytes *bytes, size_t common, unsigned int function_index,
			  const uint8_t *program, size_t program_bytes);

/* An instruction of one of them, not its first, of the module at module_addr. */
remote_addr fake_module_code_addr(remote_addr module_addr, unsigned int function_index);

/* Map one at addr whose .eh_frame is bytes. */
void fake_module_map(struct fake_memory *fake, remote_addr addr, const struct cfi_bytes *bytes);

/* Give it a build ID of these bytes. */
void fake_module_set_build_id(struct fake_memory *fake, remote_addr addr, const uint8_t id[20]);
