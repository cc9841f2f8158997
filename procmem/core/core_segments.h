/* SPDX-License-Identifier: MIT */
/*
 * The ELF header and the program headers of a core file: which memory the process had, and which of
 * it was saved. In a core, p_memsz beyond p_filesz means "not saved", never zeros.
 *
 * Source: the System V ABI, chapters "ELF Header" and "Program Header"; for more than 65534
 * segments (PN_XNUM), "Section Header Table" and elf_core_dump() in fs/binfmt_elf.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/core/file_blocks.h"
#include "procmem/maps.h"
#include "procmem/message.h"

/*
 * Limit on program headers: one for each possible mapping, and one for the notes. Further ones are
 * not read and count as nr_unusable.
 */
#define CORE_MAX_SEGMENTS (MAPS_MAX_MAPPINGS + 1)

/* Limit on note segments; usually there is one. Further ones count as nr_unusable. */
#define CORE_MAX_NOTE_SEGMENTS 16

/* A piece of the core file. */
struct core_piece {
	uint64_t file_offset;
	uint64_t size_bytes;
};

/* A zero-initialised struct is empty. */
struct core_segments {
	struct maps loads; /* all memory of the process, with its permissions; no paths */
	struct maps saved; /* the part of it that is in the core; file_offset is its place there */
	struct core_piece notes[CORE_MAX_NOTE_SEGMENTS];
	size_t nr_notes;
	uint64_t end_offset; /* file size needed to hold everything that the headers name */
	size_t nr_unusable;  /* headers that are malformed, missing or beyond a limit */
};

/*
 * Read the headers of a file of file_bytes bytes. Segments may be in any order; where two overlap,
 * the one with the lower start has the bytes.
 *
 * Returns 0; -EBADMSG if it is not a core file or too little of it is there, or -ENOTSUP if its
 * machine, word size or byte order is another one, each with a sentence that calls it "the file";
 * or -ENOMEM. core_segments_done() accepts an empty struct.
 */
int core_segments_read(struct file_blocks *file, uint64_t file_bytes,
		       struct core_segments *ret_segments, struct message *reterr);
void core_segments_done(struct core_segments *segments);
