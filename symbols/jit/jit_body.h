/* SPDX-License-Identifier: MIT */
/*
 * What a source records about a code besides its name: instructions, their lines, and unwind
 * information. It is read on demand; the map holds only its place.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/jit/jit_map.h"
#include "symbols/unwind/cfi.h"

/* The line of the instructions from addr up to the next entry's. */
struct jit_line {
	remote_addr addr;
	uint32_t line;
	uint32_t discriminator;
	const char *path; /* borrowed from the body; may contain any bytes */
};

/* All zero: empty. All of it is owned. */
struct jit_body {
	uint32_t elf_machine; /* EM_* */
	bool is_big_endian;
	uint8_t *code; /* as many bytes as the code has; NULL: unavailable */
	struct jit_line *lines;
	uint32_t nr_lines;
	uint8_t *lines_bytes; /* holds the paths */
	uint8_t *unwind;      /* .eh_frame, NULL: none */
	size_t unwind_bytes;
	uint64_t unwind_vaddr; /* the base of its pc-relative pointers */
};

/* Free what the body holds, and make it empty. Accepts NULL. */
void jit_body_done(struct jit_body *body);

/*
 * Whether the section has a function that starts where code does and is no longer than code with
 * its padding.
 */
bool jit_unwind_is_of(const struct cfi_section *section, const struct jit_code *code);
