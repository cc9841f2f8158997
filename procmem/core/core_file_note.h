/* SPDX-License-Identifier: MIT */
/*
 * The NT_FILE note of a core: the mapped files of the process. The paths are as the process saw
 * them if the kernel wrote the core, and as the debugger saw them if a debugger did.
 *
 * Source: fill_files_note() in fs/binfmt_elf.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/maps.h"

/*
 * Limit on the size of a note; a longer one is not read. The kernel writes at most 4 MiB unless
 * core_file_note_size_limit is raised, and never more than 16 MiB (CORE_FILE_NOTE_SIZE_MAX in
 * fs/coredump.c).
 */
#define CORE_MAX_FILE_NOTE_BYTES (16u << 20)

/*
 * Parse the note of size bytes. note is allocated; it becomes the text of the mappings, or is freed
 * on failure. The mappings are sorted without overlaps, as core_maps_join() requires. Equal paths
 * have the same inode, a made-up number from 1 on. Entries that are malformed or cut off are
 * dropped and counted in *ret_nr_lost.
 *
 * Returns 0, -EBADMSG if it is not an NT_FILE note, or -ENOMEM.
 */
int core_file_note_parse(char *note, size_t size, struct maps *ret_files, size_t *ret_nr_lost);
