/* SPDX-License-Identifier: MIT */
/*
 * A core file as it is given to us: packed, or through a pipe. It is unpacked in one pass
 * into a file that has its holes and no name (procmem/core/sparse_file.h), since what is needed
 * of it may lie anywhere: debuggers write the notes at the end.
 */
#pragma once

#include <stdint.h>

#include "procmem/message.h"

struct unpacked {
	int fd;		       /* the caller's; can be read at any place if it is a core */
	const char *packed_by; /* "zstd", "gzip", "xz", "lz4"; NULL: it was not packed */
	/* Why there is less of it than was packed, as one sentence; "": there is not. */
	struct message problem;
};

/*
 * Unpack what can be read from fd, which is ours from then on, also on failure; a regular
 * file that is not packed is handed back as it is, and so is what cannot be a core. 0; with
 * a sentence that calls it "the file": -EBADMSG (nothing of it could be unpacked, or that is
 * no ELF file), -ENOMEM, or another errno.
 */
int unpack(int fd, struct unpacked *ret_unpacked, struct message *reterr);
