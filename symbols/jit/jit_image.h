/* SPDX-License-Identifier: MIT */
/*
 * An ELF file that a program has made of its own code for debuggers: a few sections in its
 * memory, the code itself elsewhere. Its bytes were copied out of a target and may be anything.
 *
 * There are two kinds. CPython's are ET_DYN: symbols have their addresses, and so has what is in
 * .eh_frame. LLVM's (numba) are ET_REL: a symbol is an offset into a section, whose header tells
 * where that was loaded, and what is in the file was not relocated: it is so in memory only.
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
 * More sections are an error: one of LLVM has some dozens, with one for each function a few
 * hundred.
 */
#define JIT_IMAGE_MAX_SECTIONS 4096

/*
 * All of it borrowed from the bytes; what is in the headers was not checked but for the table's
 * place.
 */
struct jit_image {
	const uint8_t *bytes;
	size_t nr_bytes;
	bool is_relocatable; /* ET_REL */
	uint64_t sections_offset;
	uint32_t nr_sections;
	const char *section_names; /* NULL: it has none; the last byte is a NUL */
	size_t section_names_bytes;
};

/* A function of it. */
struct jit_image_function {
	remote_addr start_addr;
	uint64_t nr_bytes; /* not 0 */
	const char *name;  /* terminated */
	uint32_t section;
};

/* Have a look at the bytes, which are borrowed as long as the image is used. 0 or -EBADMSG. */
int jit_image_init(struct jit_image *image, const uint8_t *bytes, size_t nr_bytes);

/* The header of a section; false: there is none of that index. */
bool jit_image_section(const struct jit_image *image, uint32_t index, Elf64_Shdr *ret_header);

/* The index of the first section of that name that is loaded; 0: there is none. */
uint32_t jit_image_find_section(const struct jit_image *image, const char *name);

/* The bytes of a section as the file has them; NULL: not there. */
const uint8_t *jit_image_bytes(const struct jit_image *image, const Elf64_Shdr *header);

/*
 * The next function at or behind *position, which begins with 0 and is moved on. False: there
 * are no more.
 */
bool jit_image_next_function(const struct jit_image *image, uint32_t *position,
			     struct jit_image_function *ret_function);
