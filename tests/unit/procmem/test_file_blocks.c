/* SPDX-License-Identifier: MIT */
#include "procmem/core/file_blocks.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "procmem/cleanup.h"

enum { FILE_BYTES = 3 * FILE_BLOCK_BYTES + 100 };

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)(offset * 7 + offset / 251);
}

/* A file of FILE_BYTES in which each byte identifies its position. */
static int make_file(void)
{
	static uint8_t bytes[FILE_BYTES];
	int fd = memfd_create("blocks", MFD_CLOEXEC);

	for (size_t i = 0; i < FILE_BYTES; i++)
		bytes[i] = byte_at(i);
	cr_assert(eq(sz, (size_t)write(fd, bytes, sizeof(bytes)), sizeof(bytes)));
	return fd;
}

Test(file_blocks, reads_any_piece)
{
	static const struct {
		uint64_t offset;
		size_t size;
		size_t done;
	} cases[] = {
		{0, 16, 16},
		{0, 0, 0},
		{FILE_BLOCK_BYTES - 8, 16, 16},
		{FILE_BLOCK_BYTES - 1, FILE_BLOCK_BYTES - 1, FILE_BLOCK_BYTES - 1},
		{5, 2 * FILE_BLOCK_BYTES, 2 * FILE_BLOCK_BYTES},
		{FILE_BYTES - 8, 16, 8},
		{FILE_BYTES - FILE_BLOCK_BYTES, 2 * FILE_BLOCK_BYTES, FILE_BLOCK_BYTES},
		{FILE_BYTES, 16, 0},
		{(uint64_t)FILE_MAX_BLOCKS * FILE_BLOCK_BYTES, 16, 0},
		{INT64_MAX - 4, 16, 0},
		{INT64_MAX - 4, 2 * FILE_BLOCK_BYTES, 0},
		{UINT64_MAX - 4, 16, 0},
	};
	cleanup_close int fd = make_file();
	struct file_blocks blocks;

	cr_assert(zero(int, file_blocks_init(&blocks, fd)));
	/* Twice: the second read comes from the cache. */
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		size_t index = i / 2;
		uint8_t buffer[2 * FILE_BLOCK_BYTES];
		size_t done =
			file_blocks_read(&blocks, cases[index].offset, buffer, cases[index].size);
		size_t nr_right = 0;

		for (size_t j = 0; j < done; j++)
			nr_right += buffer[j] == byte_at(cases[index].offset + j);
		cr_expect(eq(sz, done, cases[index].done), "case %zu", index);
		cr_expect(eq(sz, nr_right, cases[index].done), "case %zu", index);
	}
	file_blocks_done(&blocks);
}

/* A small piece that is read again comes from the cache: a change of the file does not show. */
Test(file_blocks, keeps_small_pieces)
{
	cleanup_close int fd = make_file();
	struct file_blocks blocks;
	uint8_t first;
	uint8_t again;

	cr_assert(zero(int, file_blocks_init(&blocks, fd)));
	cr_assert(eq(sz, file_blocks_read(&blocks, 100, &first, 1), 1));
	cr_assert(eq(sz, (size_t)pwrite(fd, "\xff\xff", 2, 100), 2));
	cr_assert(eq(sz, file_blocks_read(&blocks, 100, &again, 1), 1));
	cr_expect(eq(u8, again, first));
	cr_assert(eq(sz, file_read_at(fd, 100, &again, 1), 1));
	cr_expect(eq(u8, again, 0xff));
	file_blocks_done(&blocks);
}
