/* SPDX-License-Identifier: MIT */
/*
 * The note NT_FILE of a core: the mapped files of the process. Their paths are those that
 * the process saw in a core that the kernel wrote, and those that the debugger saw in its.
 *
 * Source: fill_files_note() in fs/binfmt_elf.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/maps.h"

/*
 * A longer note is not read: the kernel writes 4 MiB unless core_file_note_size_limit says
 * more, and never more than 16 MiB (CORE_FILE_NOTE_SIZE_MAX in fs/coredump.c).
 */
#define CORE_MAX_FILE_NOTE_BYTES (16u << 20)

/*
 * Parse the note of size bytes, which becomes the mappings' text or is freed. The mappings
 * are sorted, and as core_maps_join() wants them; the same path is the same inode, a number
 * made up from 1 on. What makes no sense is left out, and what is cut off is not there: so
 * many mappings are counted in *ret_nr_lost. 0, -EBADMSG (no NT_FILE) or -ENOMEM.
 */
int core_file_note_parse(char *note, size_t size, struct maps *ret_files, size_t *ret_nr_lost);
