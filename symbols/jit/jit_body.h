/* SPDX-License-Identifier: MIT */
/*
 * What a source tells of a code beside its name: its instructions, the lines they are of, and how
 * to unwind it. Read when it is asked for; the map only knows where it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "symbols/jit/jit_map.h"
#include "symbols/unwind/cfi.h"

/* From addr on, up to the next one's, instructions are of that line. */
struct jit_line {
	remote_addr addr;
	uint32_t line;
	uint32_t discriminator;
	const char *path; /* borrowed from the body; may hold any byte */
};

/* All zero it is empty. All of it is owned. */
struct jit_body {
	uint32_t elf_machine; /* EM_* */
	bool is_big_endian;
	uint8_t *code; /* as many bytes as the code has; NULL: they cannot be had */
	struct jit_line *lines;
	uint32_t nr_lines;
	uint8_t *lines_bytes; /* where the paths are */
	uint8_t *unwind;      /* .eh_frame, NULL: none */
	size_t unwind_bytes;
	uint64_t unwind_vaddr; /* what its pc-relative pointers count from */
};

/* Free what it holds; it is empty then. Accepts NULL. */
void jit_body_done(struct jit_body *body);

/* Whether the section has a function that begins where code does, and is no longer with padding. */
bool jit_unwind_is_of(const struct cfi_section *section, const struct jit_code *code);
