/* SPDX-License-Identifier: MIT */
/* Lines of source files for dumps of stacks. Each file is read once, when it is first needed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "output/source/source_file.h"

/*
 * Limits on the files and on their memory: the largest known programs have some hundred modules
 * in their stacks. Files beyond have no lines.
 */
enum { SOURCE_LINES_MAX_FILES = 1024 };
#define SOURCE_LINES_MAX_BYTES (64u << 20)

/* A file that was requested. */
struct source_lines_file {
	const char *path; /* borrowed */
	int err;	  /* of source_file_read() */
	struct source_file file;
};

/* Initialise the first three, the rest zero. */
struct source_lines {
	const struct sysroot *sysroot; /* root of the paths; borrowed; NULL: our own */
	uint64_t until_ns;	       /* as for source_file_read() */
	/* What changed files are newer than, such as "the core". Borrowed; NULL: not reported. */
	const char *newer;
	struct source_lines_file *files;
	uint32_t nr_files, max_files;
	size_t nr_bytes; /* memory of the files */
};

/* Free what was read. Accepts NULL. */
void source_lines_done(struct source_lines *lines);

/*
 * Get a line of the file at path, which is borrowed as long as lines. Lines count from 1.
 * *ret_line is terminated, without its line end, and valid until source_lines_done(). Returns 0;
 * -ENOENT if there is none that may be shown; -EAGAIN if the file changed after until_ns;
 * -ENOMEM.
 */
int source_lines_get(struct source_lines *lines, const char *path, int32_t line,
		     const char **ret_line);

/* A line without the blanks around it: [start, end) in bytes. */
struct stripped_line {
	const char *line; /* borrowed */
	size_t start, end;
};

struct stripped_line stripped_line_of(const char *line);
