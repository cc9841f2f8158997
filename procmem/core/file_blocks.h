/* SPDX-License-Identifier: MIT */
/*
 * Reads small pieces anywhere in a file through a cache of recently read blocks. Cores have
 * gigabytes, of which kilobytes are read, many of them repeatedly. Mapping a core would make the
 * kernel read ahead around each page: 540 MB of a core of 1.4 GB, where 5 MB are enough.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A block is one page, the unit of the kernel's page cache. The blocks add up to a megabyte. */
#define FILE_BLOCK_BYTES 4096
#define FILE_MAX_BLOCKS	 256

struct file_block {
	uint64_t number; /* index of the block in the file, plus 1; 0: empty */
	size_t size;	 /* less than FILE_BLOCK_BYTES at the end of the file */
	uint8_t *bytes;	 /* owned by the file_blocks */
};

struct file_blocks {
	int fd; /* borrowed */
	struct file_block *blocks;
	uint8_t *bytes;
};

/*
 * Prepare to read the file of fd, which is borrowed until file_blocks_done() and must not grow
 * before that. Returns 0 or -ENOMEM. file_blocks_done() accepts a zero-initialised struct.
 */
int file_blocks_init(struct file_blocks *blocks, int fd);
void file_blocks_done(struct file_blocks *blocks);

/*
 * Read size bytes from offset on. Returns how many could be read before the end of the file or an
 * I/O error. Reads of FILE_BLOCK_BYTES or more are not cached.
 */
size_t file_blocks_read(struct file_blocks *blocks, uint64_t offset, void *buffer, size_t size);

/*
 * Read from a file without caching. Returns how many bytes could be read before its end or an
 * error.
 */
size_t file_read_at(int fd, uint64_t offset, void *buffer, size_t size);
