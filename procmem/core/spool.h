/* SPDX-License-Identifier: MIT */
/* An unnamed temporary file, which disappears when its descriptor is closed. */
#pragma once

#include "procmem/message.h"

struct spool {
	int fd;		    /* open for reading and writing; -1: none */
	const char *folder; /* the folder that it is in; static, or part of the environment */
};

#define SPOOL_NONE ((struct spool){.fd = -1})

/*
 * Open a temporary file in the first of $TMPDIR, /var/tmp and /tmp in which that is possible.
 * Returns 0, or a negative errno and a sentence.
 */
int spool_open(struct spool *ret_spool, struct message *reterr);
void spool_close(struct spool *spool);

/*
 * Copy everything that can be read from fd into it. name stands for fd in messages. Returns 0, or a
 * negative errno and a sentence.
 */
int spool_fill(struct spool *spool, int fd, const char *name, struct message *reterr);
