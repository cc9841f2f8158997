/* SPDX-License-Identifier: MIT */
#include "procmem/core/sparse_file.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem/cleanup.h"

enum { PAGE = 4096 };

/* Write a run of size bytes as a decompressor does: in pieces as large as the buffer. */
static int write_run(struct sparse_file *file, uint8_t value, uint64_t size, struct message *reterr)
{
	int err = 0;

	while (!err && size) {
		size_t room;
		uint8_t *next = sparse_file_room(file, &room);

		room = room < size ? room : size;
		memset(next, value, room);
		err = sparse_file_advance(file, room, reterr);
		size -= room;
	}
	return err;
}

/* Measure the file's length and its allocated bytes. */
static void measure(int fd, off_t *ret_size, off_t *ret_kept)
{
	struct stat st;

	cr_assert(zero(int, fstat(fd, &st)));
	*ret_size = st.st_size;
	*ret_kept = st.st_blocks * 512;
}

static uint8_t byte_at(int fd, off_t offset)
{
	uint8_t byte = 0xee;

	cr_assert(eq(sz, (size_t)pread(fd, &byte, 1, offset), 1));
	return byte;
}

Test(sparse_file, keeps_holes)
{
	struct sparse_file file;
	cleanup_close int fd = -1;
	off_t size;
	off_t kept;

	cr_assert(zero(int, sparse_file_open(&file)));
	cr_assert(zero(int, write_run(&file, 1, PAGE + 1, NULL)));
	cr_assert(zero(int, write_run(&file, 0, 100ull * PAGE - 1, NULL)));
	cr_assert(zero(int, write_run(&file, 2, 1, NULL)));
	cr_assert(zero(int, write_run(&file, 0, 1000ull * PAGE + 10, NULL)));
	cr_expect(eq(u64, sparse_file_bytes(&file), 1101ull * PAGE + 11));
	cr_assert(zero(int, sparse_file_finish(&file, &fd, NULL)));
	sparse_file_close(&file);
	measure(fd, &size, &kept);
	cr_expect(eq(i64, size, 1101ll * PAGE + 11));
	cr_expect(eq(i64, kept, 3ll * PAGE));
	cr_expect(eq(u8, byte_at(fd, PAGE), 1));
	cr_expect(eq(u8, byte_at(fd, PAGE + 1), 0));
	cr_expect(eq(u8, byte_at(fd, 101 * PAGE - 1), 0));
	cr_expect(eq(u8, byte_at(fd, 101 * PAGE), 2));
	cr_expect(eq(u8, byte_at(fd, size - 1), 0));
}

Test(sparse_file, empty_file_has_no_bytes)
{
	struct sparse_file file;
	cleanup_close int fd = -1;
	off_t size;
	off_t kept;

	cr_assert(zero(int, sparse_file_open(&file)));
	cr_assert(zero(int, sparse_file_finish(&file, &fd, NULL)));
	measure(fd, &size, &kept);
	cr_expect(eq(i64, size, 0));
	sparse_file_close(&file);
	sparse_file_close(&file);
	sparse_file_close(NULL);
}

static size_t count_files(const char *folder)
{
	DIR *dir = opendir(folder);
	size_t nr = 0;

	cr_assert(ne(ptr, dir, NULL));
	for (struct dirent *entry; (entry = readdir(dir));)
		nr += entry->d_name[0] != '.';
	(void)closedir(dir);
	return nr;
}

/* A file too large for memory continues on disk, with its holes and without a name. */
Test(sparse_file, large_file_moves_to_the_disk)
{
	char folder[] = "/var/tmp/test_sparse_file-XXXXXX";
	const uint64_t piece = SPARSE_MAX_MEMORY_BYTES / 2;
	struct message message = {0};
	struct sparse_file file;
	cleanup_close int fd = -1;
	off_t size;
	off_t kept;

	cr_assert(ne(ptr, mkdtemp(folder), NULL));
	cr_assert(zero(int, setenv("TMPDIR", folder, 1)));
	cr_assert(zero(int, sparse_file_open(&file)));
	cr_assert(zero(int, write_run(&file, 0, piece, &message)), "%s", message.text);
	cr_assert(zero(int, write_run(&file, 3, piece, &message)), "%s", message.text);
	cr_assert(zero(int, write_run(&file, 0, 4 * piece, &message)), "%s", message.text);
	cr_assert(zero(int, write_run(&file, 4, piece, &message)), "%s", message.text);
	cr_expect(ge(int, file.memory_fd, 0));
	cr_assert(zero(int, write_run(&file, 5, piece, &message)), "%s", message.text);
	cr_expect(lt(int, file.memory_fd, 0));
	cr_expect(eq(sz, count_files(folder), 0));
	cr_assert(zero(int, sparse_file_finish(&file, &fd, NULL)));
	sparse_file_close(&file);
	measure(fd, &size, &kept);
	cr_expect(eq(i64, size, (off_t)(8 * piece)));
	cr_expect(lt(i64, kept, (off_t)(4 * piece)), "%lld bytes are kept", (long long)kept);
	cr_expect(eq(u8, byte_at(fd, (off_t)piece - 1), 0));
	cr_expect(eq(u8, byte_at(fd, (off_t)piece), 3));
	cr_expect(eq(u8, byte_at(fd, (off_t)(2 * piece) - 1), 3));
	cr_expect(eq(u8, byte_at(fd, (off_t)(2 * piece)), 0));
	cr_expect(eq(u8, byte_at(fd, (off_t)(6 * piece)), 4));
	cr_expect(eq(u8, byte_at(fd, (off_t)(7 * piece)), 5));
	cr_expect(eq(u8, byte_at(fd, size - 1), 5));
	cr_expect(zero(int, rmdir(folder)));
}

Test(sparse_file, size_is_limited)
{
	static const struct {
		uint64_t size_bytes;
		uint64_t data_bytes;
		uint8_t value;
		int err;
	} cases[] = {
		{SPARSE_MAX_BYTES, 0, 0, -E2BIG},
		{1 << 30, SPARSE_MAX_DATA_BYTES, 1, -E2BIG},
		{1 << 30, SPARSE_MAX_DATA_BYTES, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct message message = {0};
		struct sparse_file file;

		cr_assert(zero(int, sparse_file_open(&file)));
		file.size_bytes = cases[i].size_bytes;
		file.data_bytes = cases[i].data_bytes;
		cr_expect(
			eq(int, write_run(&file, cases[i].value, 1 << 20, &message), cases[i].err),
			"case %zu", i);
		cr_expect(eq(int, message.text[0] != '\0', cases[i].err != 0), "case %zu", i);
		sparse_file_close(&file);
	}
}
