/* SPDX-License-Identifier: MIT */
/*
 * The code of one function as an ELF file that disassemblers and debuggers read: its
 * instructions at their addresses, a symbol, its line table, and how to unwind it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From addr on, up to the next one's, instructions are of that line. */
struct code_line {
	uint64_t addr;
	uint32_t line;
	uint32_t discriminator;
	const char *path;
};

/* All of it is borrowed. */
struct code_object {
	uint16_t elf_machine; /* EM_*; of 64 bits */
	bool is_big_endian;
	const char *name;
	uint64_t addr;
	const uint8_t *code;
	size_t code_bytes;
	const struct code_line *lines; /* by rising address, inside the code */
	size_t nr_lines;
	const uint8_t *unwind; /* .eh_frame; NULL: none */
	size_t unwind_bytes;
	uint64_t unwind_addr; /* behind the code */
};

/*
 * Write the file to fd, which is empty and stays the caller's. 0; -ENOMEM; or the errno of
 * what failed, -EIO where libelf does not say.
 */
int code_object_write(const struct code_object *object, int fd);
