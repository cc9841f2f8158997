/* SPDX-License-Identifier: MIT */
/*
 * Reads source files for output that others may see. The target, or whoever made the recording,
 * chose the path, so it may name any file. A file is read only if
 *
 * - its path is absolute and ends in .py, .pyw or .pyx, before and after resolving symbolic links;
 * - it is a regular file of at most SOURCE_FILE_MAX_BYTES, and has not changed since it was
 *   executed: else its lines are not those that ran;
 * - it is UTF-8 without NUL characters;
 * - everybody may read it, if this process may read what others may not (as root, or with
 *   CAP_DAC_OVERRIDE or CAP_DAC_READ_SEARCH): its mode lets everybody read it, and the modes of
 *   all folders on its path let everybody through; below a sysroot only its own mode counts.
 *
 * Without those privileges the last check is not needed: the user may read the file anyway.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/sysroot.h"

/* Ten times the longest module of the standard library. */
#define SOURCE_FILE_MAX_BYTES (4u << 20)

/* Empty when all zero. */
struct source_file {
	char *bytes;	/* owned; UTF-8, line ends replaced by terminators */
	size_t *starts; /* owned; offset of each line */
	uint32_t nr_lines;
};

/*
 * Read a file that has not changed after until_ns (CLOCK_REALTIME; 0: no limit). Returns 0;
 * -ENOENT if there is none that may be shown, for any reason; -EAGAIN if it changed; -ENOMEM.
 */
int source_file_read(const char *path, uint64_t until_ns, struct source_file *ret_file);

/*
 * The same for a file below a sysroot. Only its modification time counts, not when it was put
 * there.
 */
int source_file_read_below(const struct sysroot *sysroot, const char *path, uint64_t until_ns,
			   struct source_file *ret_file);

/* Free the text and empty file. */
void source_file_done(struct source_file *file);

/* Returns an existing line, counted from 1; terminated, valid as long as the file. */
const char *source_file_line(const struct source_file *file, uint32_t line);
