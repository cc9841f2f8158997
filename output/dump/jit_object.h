/* SPDX-License-Identifier: MIT */
/*
 * Writes the code of one function as an ELF file for disassemblers and debuggers: its
 * instructions at their addresses, a symbol, a line table and unwind information.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Instructions from addr to the next entry's belong to this line. */
struct jit_object_line {
	uint64_t addr;
	uint32_t line;
	uint32_t discriminator;
	const char *path;
};

/* Everything is borrowed. */
struct jit_object {
	uint16_t elf_machine; /* EM_*; 64-bit */
	bool is_big_endian;
	const char *name;
	uint64_t addr;
	const uint8_t *code;
	size_t code_bytes;
	const struct jit_object_line *lines; /* by ascending address, within the code */
	size_t nr_lines;
	const uint8_t *unwind; /* .eh_frame; NULL: none */
	size_t unwind_bytes;
	uint64_t unwind_addr; /* after the code */
};

/*
 * Write the file to fd, which is empty and stays the caller's. Returns 0; -ENOMEM; or the errno
 * of the failure, -EIO if libelf reports none.
 */
int jit_object_write(const struct jit_object *object, int fd);
