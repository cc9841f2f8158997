/* SPDX-License-Identifier: MIT */
/* A temporary file without a name, which is gone when we are. */
#pragma once

#include "procmem/message.h"

struct spool {
	int fd;		    /* to be written and read; -1: there is none */
	const char *folder; /* that it is in; the environment's or static */
};

#define SPOOL_NONE ((struct spool){.fd = -1})

/*
 * Open one in the first folder that has a place for it: $TMPDIR, /var/tmp, /tmp. 0; or a
 * negative errno and a sentence.
 */
int spool_open(struct spool *ret_spool, struct message *reterr);
void spool_close(struct spool *spool);

/* Copy all that can be read from fd, called name, into it. 0; an error and a sentence. */
int spool_fill(struct spool *spool, int fd, const char *name, struct message *reterr);
