/* SPDX-License-Identifier: MIT */
/*
 * A file that is written once, from its beginning to its end, and of which only pages with
 * something in them take room: cores are mostly holes, stacks that were never used. It is in
 * memory as long as that is little, then in a temporary file without a name, and is gone
 * with its descriptor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/core/spool.h"
#include "procmem/message.h"

/* As much is kept in memory; what is more goes to the disk. */
#define SPARSE_MAX_MEMORY_BYTES ((uint64_t)128 << 20)

/*
 * More than this is not written, with its holes and without them: who packs zeros can have
 * us unpack a terabyte out of a few megabytes. Of systemd-coredump's cores the largest have
 * 32 GiB unless it is told otherwise (ExternalSizeMax of coredump.conf(5)).
 */
#define SPARSE_MAX_BYTES      ((uint64_t)256 << 30)
#define SPARSE_MAX_KEPT_BYTES ((uint64_t)64 << 30)

struct sparse_file {
	struct spool disk;   /* SPOOL_NONE while it is in memory */
	int memory_fd;	     /* -1 once it is on the disk */
	uint8_t *buffer;     /* what comes next */
	size_t filled_bytes; /* of it */
	uint64_t size_bytes; /* written before that */
	uint64_t kept_bytes; /* of these, without the holes */
};

/* Make one. 0, -ENOMEM, or the errno of memfd_create(2). sparse_file_close() accepts NULL. */
int sparse_file_open(struct sparse_file *ret_file);
void sparse_file_close(struct sparse_file *file);

/* Where the next bytes go: room for *ret_bytes, which is at least one. */
uint8_t *sparse_file_room(const struct sparse_file *file, size_t *ret_bytes);

/*
 * So many bytes of the room were filled. 0; with a sentence: -E2BIG (the limits above), or an
 * errno of the disk. What was written before stays.
 */
int sparse_file_advance(struct sparse_file *file, size_t bytes, struct message *reterr);

/* How many bytes it has by now. */
uint64_t sparse_file_bytes(const struct sparse_file *file);

/*
 * Nothing more comes: the descriptor of the file, which is then the caller's, in *ret_fd.
 * Errors of sparse_file_advance().
 */
int sparse_file_finish(struct sparse_file *file, int *ret_fd, struct message *reterr);
