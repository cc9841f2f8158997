/* SPDX-License-Identifier: MIT */
/*
 * The ELF header and the program headers of a core file: what memory the process had, and
 * what of it was saved. In a core p_memsz beyond p_filesz means "not saved", never zeros.
 *
 * Source: the System V ABI, chapters "ELF Header" and "Program Header"; for more than 65534
 * segments (PN_XNUM) "Section Header Table", and elf_core_dump() in fs/binfmt_elf.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/core/file_blocks.h"
#include "procmem/maps.h"
#include "procmem/message.h"

/* As many as a process has mappings, and one for the notes; those beyond are not looked at. */
#define CORE_MAX_SEGMENTS (MAPS_MAX_MAPPINGS + 1)

/* Of notes linkers and debuggers write one segment. */
#define CORE_MAX_NOTE_SEGMENTS 16

/* A piece of the core file. */
struct core_piece {
	uint64_t file_offset;
	uint64_t size_bytes;
};

/* Zero-initialised it is empty. */
struct core_segments {
	struct maps loads; /* memory that there was, with its permissions; no paths */
	struct maps saved; /* what of it is in the core, and file_offset is where */
	struct core_piece notes[CORE_MAX_NOTE_SEGMENTS];
	size_t nr_notes;
	uint64_t end_offset; /* so long the file must be to have all that the headers name */
	size_t nr_unusable;  /* headers whose numbers cannot be, and those that are not there */
};

/*
 * Read the headers of a file that has file_bytes. Segments may come in any order; where two
 * overlap the one that begins lower has the bytes. 0; -EBADMSG (no core file, or nothing of
 * it is there), -ENOTSUP (of another machine or another size of word), each with a sentence
 * that calls it "the file"; -ENOMEM. core_segments_done() accepts empty ones.
 */
int core_segments_read(struct file_blocks *file, uint64_t file_bytes,
		       struct core_segments *ret_segments, struct message *reterr);
void core_segments_done(struct core_segments *segments);
