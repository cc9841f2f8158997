/* SPDX-License-Identifier: MIT */
/*
 * A file that a command writes: opened before the work begins, so that a path
 * that cannot be written fails at once; under a temporary name in the same
 * folder, renamed when it is whole. What exists and is no regular file (a link, a
 * pipe, a terminal, /dev/null) is written as it is.
 */
#pragma once

#include <stdio.h>

#include "procmem/message.h"

struct output_file {
	FILE *stream;
	const char *path; /* borrowed; NULL: stdout */
	char *temporary;  /* owned; NULL if path is written directly */
};

/* Open path, "-" or NULL for stdout. 0, or a negative errno and a sentence. */
int output_file_open(const char *path, struct output_file *ret_file, struct message *reterr);

/*
 * Close the file and give it its name, if err (what writing it returned) is 0;
 * else leave what was there before. 0, or a negative errno and a sentence.
 */
int output_file_finish(struct output_file *file, int err, struct message *reterr);

/* Close without keeping anything; for a file that is open or zero-initialised. */
void output_file_discard(struct output_file *file);
