/* SPDX-License-Identifier: MIT */
/*
 * Core files made by a test in a memfd: an ELF header, program headers, notes and memory.
 *
 *	struct made_core file = MADE_CORE_EMPTY;
 *
 *	made_core_add_note(&file, "CORE", NT_PRSTATUS, &status, sizeof(status));
 *	made_core_add_load(&file, 0x1000, 0x2000, PF_R | PF_W, bytes, 0x1000);
 *	err = core_open(made_core_write(&file), &core, &message);
 *
 * The pieces may be changed before they are written.
 */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "procmem/machine.h"

enum {
	MADE_CORE_MAX_SEGMENTS = 12,
	MADE_CORE_MAX_BYTES = 16384,
	MADE_CORE_NOTES_OFFSET = 0x400,
	MADE_CORE_DATA_OFFSET = 0x2000,
};

struct made_core {
	Elf64_Ehdr header;
	Elf64_Phdr segments[MADE_CORE_MAX_SEGMENTS]; /* the first one holds the notes */
	uint8_t bytes[MADE_CORE_MAX_BYTES];	     /* by file offset; without the headers */
	size_t size_bytes;
};

#define MADE_CORE_EMPTY                                                                \
	((struct made_core){                                                           \
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, \
				       ELFDATA2LSB, EV_CURRENT},                       \
			   .e_type = ET_CORE,                                          \
			   .e_machine = MACHINE_ELF,                                   \
			   .e_version = EV_CURRENT,                                    \
			   .e_phoff = sizeof(Elf64_Ehdr),                              \
			   .e_ehsize = sizeof(Elf64_Ehdr),                             \
			   .e_phentsize = sizeof(Elf64_Phdr),                          \
			   .e_phnum = 1},                                              \
		.segments = {{.p_type = PT_NOTE, .p_offset = MADE_CORE_NOTES_OFFSET}}, \
		.size_bytes = MADE_CORE_DATA_OFFSET,                                   \
	})

static inline void made_core_add_note(struct made_core *file, const char *owner, uint32_t type,
				      const void *desc, size_t size)
{
	Elf64_Phdr *segment = &file->segments[0];
	Elf64_Nhdr note = {(uint32_t)strlen(owner) + 1, (uint32_t)size, type};
	uint8_t *next = file->bytes + MADE_CORE_NOTES_OFFSET + segment->p_filesz;
	size_t name_bytes = (note.n_namesz + 3) & ~3u;

	memcpy(next, &note, sizeof(note));
	memcpy(next + sizeof(note), owner, note.n_namesz);
	memcpy(next + sizeof(note) + name_bytes, desc, size);
	segment->p_filesz += sizeof(note) + name_bytes + ((size + 3) & ~(size_t)3);
	cr_assert(le(sz, segment->p_filesz, MADE_CORE_DATA_OFFSET - MADE_CORE_NOTES_OFFSET));
}

/* Add memory_bytes of memory at vaddr, of which the file holds saved_bytes. */
static inline Elf64_Phdr *made_core_add_load(struct made_core *file, uint64_t vaddr,
					     uint64_t memory_bytes, uint32_t flags,
					     const void *bytes, size_t saved_bytes)
{
	Elf64_Phdr *segment = &file->segments[file->header.e_phnum++];

	cr_assert(le(sz, file->header.e_phnum, MADE_CORE_MAX_SEGMENTS));
	cr_assert(le(sz, file->size_bytes + saved_bytes, MADE_CORE_MAX_BYTES));
	*segment = (Elf64_Phdr){.p_type = PT_LOAD,
				.p_flags = flags,
				.p_offset = file->size_bytes,
				.p_vaddr = vaddr,
				.p_filesz = saved_bytes,
				.p_memsz = memory_bytes};
	if (saved_bytes)
		memcpy(file->bytes + file->size_bytes, bytes, saved_bytes);
	file->size_bytes += saved_bytes;
	return segment;
}

/* A descriptor of a file with the first size_bytes of the core. */
static inline int made_core_write_cut(const struct made_core *file, size_t size_bytes)
{
	int fd = memfd_create("core", MFD_CLOEXEC);
	static uint8_t bytes[MADE_CORE_MAX_BYTES];

	memcpy(bytes, file->bytes, file->size_bytes);
	memcpy(bytes, &file->header, sizeof(file->header));
	memcpy(bytes + sizeof(file->header), file->segments, sizeof(file->segments));
	cr_assert(ge(int, fd, 0));
	cr_assert(eq(sz, (size_t)write(fd, bytes, size_bytes), size_bytes));
	return fd;
}

static inline int made_core_write(const struct made_core *file)
{
	return made_core_write_cut(file, file->size_bytes);
}
