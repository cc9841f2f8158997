/* SPDX-License-Identifier: MIT */
#include "procmem/core/file_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int file_blocks_init(struct file_blocks *blocks, int fd)
{
	struct file_blocks new = {
		.fd = fd,
		.blocks = calloc(FILE_MAX_BLOCKS, sizeof(*new.blocks)),
		.bytes = malloc((size_t)FILE_MAX_BLOCKS * FILE_BLOCK_BYTES),
	};

	if (!new.blocks || !new.bytes) {
		file_blocks_done(&new);
		return -ENOMEM;
	}
	for (size_t i = 0; i < FILE_MAX_BLOCKS; i++)
		new.blocks[i].bytes = new.bytes + i *FILE_BLOCK_BYTES;
	*blocks = new;
	return 0;
}

void file_blocks_done(struct file_blocks *blocks)
{
	free(blocks->blocks);
	free(blocks->bytes);
	*blocks = (struct file_blocks){.fd = -1};
}

size_t file_read_at(int fd, uint64_t offset, void *buffer, size_t size)
{
	size_t done = 0;

	if (offset > INT64_MAX || size > INT64_MAX - offset)
		return 0;
	while (done < size) {
		ssize_t n = pread(fd, (char *)buffer + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

/* Returns the block with this index (from 0), and reads it if it is not cached. */
static const struct file_block *block_get(struct file_blocks *blocks, uint64_t number)
{
	struct file_block *block = &blocks->blocks[number % FILE_MAX_BLOCKS];

	if (block->number != number + 1) {
		block->size = file_read_at(blocks->fd, number * FILE_BLOCK_BYTES, block->bytes,
					   FILE_BLOCK_BYTES);
		block->number = number + 1;
	}
	return block;
}

size_t file_blocks_read(struct file_blocks *blocks, uint64_t offset, void *buffer, size_t size)
{
	size_t done = 0;

	if (size >= FILE_BLOCK_BYTES || offset > INT64_MAX)
		return file_read_at(blocks->fd, offset, buffer, size);
	while (done < size) {
		const struct file_block *block =
			block_get(blocks, (offset + done) / FILE_BLOCK_BYTES);
		size_t start = (offset + done) % FILE_BLOCK_BYTES;

		if (start >= block->size)
			break;
		size_t length = block->size - start;

		if (length > size - done)
			length = size - done;
		memcpy((char *)buffer + done, block->bytes + start, length);
		done += length;
	}
	return done;
}
