/* SPDX-License-Identifier: MIT */
/*
 * The text of a source file for a page that others may come to read. Its path was chosen by
 * the target, or by whoever made the recording, and may be that of any file there is. So a
 * file is read only if
 *
 * - its path is absolute, and it is called .py, .pyw or .pyx, also where symbolic links lead;
 * - it is a regular file, has at most SOURCE_FILE_MAX_BYTES, and has not changed since it was
 *   executed: else its lines are not those that ran;
 * - it is UTF-8 without NUL characters;
 * - if we may read what others may not (as root, or with CAP_DAC_OVERRIDE or
 *   CAP_DAC_READ_SEARCH): its mode lets everybody read it, and those of all folders on its
 *   path let everybody through; of a file in a folder that is taken for the root, its own does.
 *
 * Otherwise it is a file that whoever runs pysample may read.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "procmem/sysroot.h"

/* The longest module of the standard library's own has a tenth of it. */
#define SOURCE_FILE_MAX_BYTES (4u << 20)

/* All zero it holds nothing. */
struct source_file {
	char *bytes;	/* owned; UTF-8, each line terminated instead of its line end */
	size_t *starts; /* owned; where each line begins */
	uint32_t nr_lines;
};

/*
 * Read a file that was not changed after until_ns (CLOCK_REALTIME; 0: whenever). 0; -ENOENT:
 * there is none that may be shown, for whatever reason; -EAGAIN: there is one, but it was changed;
 * -ENOMEM.
 */
int source_file_read(const char *path, uint64_t until_ns, struct source_file *ret_file);

/*
 * The same of a file in a folder that is taken for the root. When it came there does not matter,
 * only when it was written.
 */
int source_file_read_below(const struct sysroot *sysroot, const char *path, uint64_t until_ns,
			   struct source_file *ret_file);

/* Free what it holds; it holds nothing then. */
void source_file_done(struct source_file *file);

/* A line, the first one is 1; it is there. Terminated, valid as long as the file. */
const char *source_file_line(const struct source_file *file, uint32_t line);
