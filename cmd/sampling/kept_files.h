/* SPDX-License-Identifier: MIT */
/* The files that the periods of a run have written, of which the newest are kept (--keep). */
#pragma once

#include <stdint.h>

#include "cmd/outputs.h"

/* A file of the list. */
struct kept_file {
	struct written_file file;
	uint64_t period; /* number of the period among those that wrote files */
};

/* All zero, except for max_periods: empty. */
struct kept_files {
	uint32_t max_periods;	 /* 0: all files are kept, and none is listed */
	struct kept_file *files; /* owned; oldest first */
	uint32_t nr, max;
	uint64_t nr_periods; /* that wrote files */
	uint64_t nr_removed; /* files */
};

/*
 * Add the files that the outputs of a period have written. If more than max_periods have written
 * some, the files of the oldest are removed, unless other files have their names now. Returns 0
 * or -ENOMEM, and the files that are not listed stay.
 */
int kept_files_add(struct kept_files *kept, struct outputs *outputs);

/* Free the list; the files stay. */
void kept_files_done(struct kept_files *kept);
