/* SPDX-License-Identifier: MIT */
/*
 * A file that is written once, from beginning to end, and in which only pages with non-zero bytes
 * take up space. Cores are mostly holes: stacks that were never used. The file is in memory while
 * it is small, then in an unnamed temporary file. It is gone when its descriptor is closed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/message.h"
#include "procmem/temp_file.h"

/* Limit on the bytes kept in memory; a larger file goes to the disk. */
#define SPARSE_MAX_MEMORY_BYTES ((uint64_t)128 << 20)

/*
 * Limits on the size with and without holes; beyond them sparse_file_advance() fails. Without a
 * limit, a few megabytes of compressed zeros could unpack to a terabyte. The largest cores that
 * systemd-coredump keeps have 32 GiB by default (ExternalSizeMax of coredump.conf(5)).
 */
#define SPARSE_MAX_BYTES      ((uint64_t)256 << 30)
#define SPARSE_MAX_DATA_BYTES ((uint64_t)64 << 30)

struct sparse_file {
	struct temp_file disk; /* TEMP_FILE_NONE while the file is in memory */
	int memory_fd;	       /* -1 once the file is on the disk */
	uint8_t *buffer;       /* bytes that are not written yet */
	size_t filled_bytes;   /* number of bytes in buffer */
	uint64_t size_bytes;   /* bytes written so far, with holes */
	uint64_t data_bytes;   /* bytes written so far, without holes */
};

/*
 * Create an empty file. Returns 0, -ENOMEM, or the errno of memfd_create(2). sparse_file_close()
 * accepts NULL.
 */
int sparse_file_open(struct sparse_file *ret_file);
void sparse_file_close(struct sparse_file *file);

/* Returns where to put the next bytes. *ret_bytes is the room there, at least 1. */
uint8_t *sparse_file_room(const struct sparse_file *file, size_t *ret_bytes);

/*
 * Append the bytes that were put into the room; bytes is their number. Returns 0; or, with a
 * sentence, -E2BIG (the limits above) or an errno of the disk. What was written before stays.
 */
int sparse_file_advance(struct sparse_file *file, size_t bytes, struct message *reterr);

/* Returns the current size, with holes. */
uint64_t sparse_file_bytes(const struct sparse_file *file);

/*
 * Finish the file. *ret_fd is its descriptor, which the caller then owns. Errors of
 * sparse_file_advance().
 */
int sparse_file_finish(struct sparse_file *file, int *ret_fd, struct message *reterr);
