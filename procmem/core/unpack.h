/* SPDX-License-Identifier: MIT */
/*
 * Turns a core file that is compressed, or comes through a pipe, into one that can be read at any
 * offset. It is decompressed in one pass into an unnamed file with holes
 * (procmem/core/sparse_file.h), because any part of it may be needed: debuggers write the notes at
 * the end.
 */
#pragma once

#include <stdint.h>

#include "procmem/message.h"

struct unpacked {
	int fd;			   /* owned by the caller; a core in it can be read at any offset */
	const char *compressed_by; /* "zstd", "gzip", "xz", "lz4"; NULL: it was not compressed */
	/* Why some of the data is missing, as one sentence; "": none is. */
	struct message problem;
};

/*
 * Decompress everything that can be read from fd. unpack() takes over fd, also on failure. A
 * regular file that is not compressed is returned as it is, and so is a folder or block device,
 * which cannot be a core.
 *
 * Returns 0; or, with a sentence that calls it "the file", -EBADMSG if nothing could be
 * decompressed or the result is not an ELF file, -ENOMEM, or another errno.
 */
int unpack(int fd, struct unpacked *ret_unpacked, struct message *reterr);
