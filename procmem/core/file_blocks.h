/* SPDX-License-Identifier: MIT */
/*
 * A file read at any place by small pieces, through a cache of its last blocks. Cores
 * have gigabytes of which kilobytes are looked at, many of them again and again. Mapping
 * one would have the kernel read ahead around each page: 540 MB of a core of 1.4 GB,
 * where 5 MB are enough.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A page, which is what the kernel caches; so many of them are a megabyte. */
#define FILE_BLOCK_BYTES 4096
#define FILE_MAX_BLOCKS	 256

struct file_block {
	uint64_t number; /* its place in the file divided by its size, and 1; 0: empty */
	size_t size;	 /* less than a whole one at the end of the file */
	uint8_t *bytes;	 /* owned by the file_blocks */
};

struct file_blocks {
	int fd; /* borrowed */
	struct file_block *blocks;
	uint8_t *bytes;
};

/*
 * Read the file of fd, which is borrowed as long as the blocks are used; the file must not
 * grow meanwhile. 0 or -ENOMEM. file_blocks_done() accepts one that is zero.
 */
int file_blocks_init(struct file_blocks *blocks, int fd);
void file_blocks_done(struct file_blocks *blocks);

/*
 * Read size bytes from offset on: how many there were until the end of the file, or until
 * what the disk would not give. What is as large as a block is not kept.
 */
size_t file_blocks_read(struct file_blocks *blocks, uint64_t offset, void *buffer, size_t size);

/*
 * Read from a file without keeping anything: how many bytes there were until its end or an
 * error.
 */
size_t file_read_at(int fd, uint64_t offset, void *buffer, size_t size);
