/* SPDX-License-Identifier: MIT */
/*
 * An ELF file in which a program describes its own code to debuggers: a few sections in its
 * memory; the code itself is elsewhere. Its bytes were copied from a target and may be anything.
 *
 * There are two kinds. CPython's are ET_DYN: symbols and .eh_frame hold addresses. LLVM's (numba)
 * are ET_REL: a symbol is an offset into a section, whose header has the address where that was
 * loaded. The file itself is not relocated; only the loaded sections are.
 *
 * Source: the System V ABI, "Object Files"; Python/jit_unwind.c of CPython 3.15.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"

/*
 * More sections are an error: LLVM's files have some dozens, or a few hundred with one for each
 * function.
 */
#define JIT_IMAGE_MAX_SECTIONS 4096

/*
 * All pointers are borrowed from the bytes. Of the headers only the place of the section table
 * has been checked.
 */
struct jit_image {
	const uint8_t *bytes;
	size_t nr_bytes;
	bool is_relocatable; /* ET_REL */
	uint64_t sections_offset;
	uint32_t nr_sections;
	const char *section_names; /* NULL: none; the last byte is a NUL */
	size_t section_names_bytes;
};

/* A function of an image. */
struct jit_image_function {
	remote_addr start_addr;
	uint64_t nr_bytes; /* not 0 */
	const char *name;  /* terminated */
	uint32_t section;
};

/*
 * Initialise from bytes, which are borrowed for the lifetime of the image. Returns 0 or -EBADMSG.
 */
int jit_image_init(struct jit_image *image, const uint8_t *bytes, size_t nr_bytes);

/* Copy the header of a section. Returns false if there is none with that index. */
bool jit_image_section(const struct jit_image *image, uint32_t index, Elf64_Shdr *ret_header);

/* The index of the first loaded section of that name; 0 if there is none. */
uint32_t jit_image_find_section(const struct jit_image *image, const char *name);

/* The bytes of a section as in the file. NULL if the file does not have them. */
const uint8_t *jit_image_bytes(const struct jit_image *image, const Elf64_Shdr *header);

/*
 * Find the next function at or after *position, which starts at 0 and is advanced. Returns false
 * if there are no more.
 */
bool jit_image_next_function(const struct jit_image *image, uint32_t *position,
			     struct jit_image_function *ret_function);
