/* SPDX-License-Identifier: MIT */
/* An unnamed temporary file, which disappears when its descriptor is closed. */
#pragma once

#include "procmem/message.h"

struct temp_file {
	int fd;		    /* open for reading and writing; -1: none */
	const char *folder; /* where it is; static, or part of the environment */
};

#define TEMP_FILE_NONE ((struct temp_file){.fd = -1})

/*
 * Open a temporary file in the first of $TMPDIR, /var/tmp and /tmp in which that is possible.
 * Returns 0, or a negative errno and a sentence.
 */
int temp_file_open(struct temp_file *ret_file, struct message *reterr);

/* The same, or else in memory (Linux 3.17). */
int temp_file_open_anywhere(struct temp_file *ret_file, struct message *reterr);

void temp_file_close(struct temp_file *file);

/*
 * Copy everything that can be read from fd into it. name stands for fd in messages. Returns 0, or a
 * negative errno and a sentence.
 */
int temp_file_fill(struct temp_file *file, int fd, const char *name, struct message *reterr);
