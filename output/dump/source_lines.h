/* SPDX-License-Identifier: MIT */
/* Lines of source files for those who show stacks; each file is read once, when it is asked for. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "output/dump/source_file.h"

/*
 * So many files are asked for, and so much of them kept: the largest programs known have some
 * hundred modules in their stacks. Those beyond have no lines.
 */
enum { SOURCE_LINES_MAX_FILES = 1024 };
#define SOURCE_LINES_MAX_BYTES (64u << 20)

/* A file that was asked for. */
struct source_lines_file {
	const char *path; /* borrowed */
	int err;	  /* of source_file_read() */
	struct source_file file;
};

/* All zero but for the first three nothing was asked for yet. */
struct source_lines {
	const struct sysroot *sysroot; /* where paths lead; borrowed; NULL: our own root */
	uint64_t until_ns;	       /* as source_file_read() has it */
	const char *newer; /* what files are newer than: "the core"; borrowed; NULL: not said */
	struct source_lines_file *files;
	uint32_t nr_files, max_files;
	size_t nr_bytes; /* of them */
};

/* Free what was read. Accepts NULL. */
void source_lines_done(struct source_lines *lines);

/*
 * A line of the file at path, which is borrowed as long as lines are. The first is 1; terminated,
 * without its end, valid until source_lines_done(). 0; -ENOENT: there is none that may be shown;
 * -EAGAIN: the file was changed after until_ns; -ENOMEM.
 */
int source_lines_get(struct source_lines *lines, const char *path, int32_t line,
		     const char **ret_line);
