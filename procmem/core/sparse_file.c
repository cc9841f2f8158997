/* SPDX-License-Identifier: MIT */
#include "procmem/core/sparse_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "procmem/cleanup.h"

/*
 * The buffer is a multiple of a page, which is the smallest hole, and small enough for the CPU
 * cache.
 */
enum { PAGE_BYTES = 4096, BUFFER_BYTES = 64 * PAGE_BYTES };

int sparse_file_open(struct sparse_file *ret_file)
{
	struct sparse_file file = {
		.disk = TEMP_FILE_NONE,
		.memory_fd = memfd_create("pysample", MFD_CLOEXEC),
		.buffer = aligned_alloc(PAGE_BYTES, BUFFER_BYTES),
	};
	int err = file.memory_fd < 0 ? -errno : file.buffer ? 0 : -ENOMEM;

	if (err)
		sparse_file_close(&file);
	else
		*ret_file = file;
	return err;
}

void sparse_file_close(struct sparse_file *file)
{
	if (!file)
		return;
	temp_file_close(&file->disk);
	cleanup_close_fn(&file->memory_fd);
	free(file->buffer);
	*file = (struct sparse_file){.disk = TEMP_FILE_NONE, .memory_fd = -1};
}

uint8_t *sparse_file_room(const struct sparse_file *file, size_t *ret_bytes)
{
	*ret_bytes = BUFFER_BYTES - file->filled_bytes;
	return file->buffer + file->filled_bytes;
}

uint64_t sparse_file_bytes(const struct sparse_file *file)
{
	return file->size_bytes + file->filled_bytes;
}

/* Writing. */

static int refuse_disk(const struct sparse_file *file, int err, struct message *reterr)
{
	message_set(reterr, "cannot write a temporary file in %s: %s; set TMPDIR",
		    file->disk.folder, strerror(-err));
	return err;
}

/* Copy [start, end) to the disk. */
static int copy_piece(struct sparse_file *file, off_t start, off_t end, struct message *reterr)
{
	if (lseek(file->disk.fd, start, SEEK_SET) < 0)
		return refuse_disk(file, -errno, reterr);
	while (start < end) {
		ssize_t n = sendfile(file->disk.fd, file->memory_fd, &start, (size_t)(end - start));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return refuse_disk(file, n < 0 ? -errno : -EIO, reterr);
	}
	return 0;
}

/* Move the file to the disk; holes stay holes. */
static int move_to_disk(struct sparse_file *file, struct message *reterr)
{
	off_t end = 0;
	off_t start;
	int err;

	err = temp_file_open(&file->disk, reterr);
	while (!err && (start = lseek(file->memory_fd, end, SEEK_DATA)) >= 0) {
		end = lseek(file->memory_fd, start, SEEK_HOLE);
		err = end < 0 ? refuse_disk(file, -errno, reterr)
			      : copy_piece(file, start, end, reterr);
	}
	if (!err) {
		cleanup_close_fn(&file->memory_fd);
		file->memory_fd = -1;
	}
	return err;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static size_t page_at(const struct sparse_file *file, size_t start)
{
	size_t left = file->filled_bytes - start;

	return left < PAGE_BYTES ? left : PAGE_BYTES;
}

/* Returns the length of the run of pages from start on that are all zero, or all non-zero. */
static size_t run_length(const struct sparse_file *file, size_t start, bool *ret_is_hole)
{
	size_t end = start + page_at(file, start);

	*ret_is_hole = is_zero(file->buffer + start, page_at(file, start));
	while (end < file->filled_bytes &&
	       is_zero(file->buffer + end, page_at(file, end)) == *ret_is_hole)
		end += page_at(file, end);
	return end - start;
}

static int check_limits(const struct sparse_file *file, size_t new_bytes, struct message *reterr)
{
	if (file->data_bytes + new_bytes <= SPARSE_MAX_DATA_BYTES &&
	    file->size_bytes + file->filled_bytes <= SPARSE_MAX_BYTES)
		return 0;
	message_set(reterr,
		    "the decompressed core exceeds %llu GiB, or %llu GiB without its zeros: "
		    "the rest is missing",
		    (unsigned long long)SPARSE_MAX_BYTES >> 30,
		    (unsigned long long)SPARSE_MAX_DATA_BYTES >> 30);
	return -E2BIG;
}

/* Write size bytes of the buffer from start on, to the disk if there are too many for memory. */
static int write_run(struct sparse_file *file, size_t start, size_t size, struct message *reterr)
{
	const uint8_t *bytes = file->buffer + start;
	const uint64_t offset = file->size_bytes + start;
	int err;

	err = check_limits(file, size, reterr);
	if (!err && file->memory_fd >= 0 && file->data_bytes + size > SPARSE_MAX_MEMORY_BYTES)
		err = move_to_disk(file, reterr);
	if (err)
		return err;
	const bool in_memory = file->memory_fd >= 0;

	for (size_t done = 0; done < size;) {
		const ssize_t n = pwrite(in_memory ? file->memory_fd : file->disk.fd, bytes + done,
					 size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && in_memory) {
			err = -errno;
			message_set(reterr, "cannot write a file in memory: %s", strerror(-err));
			return err;
		}
		if (n < 0)
			return refuse_disk(file, -errno, reterr);
		done += (size_t)n;
	}
	file->data_bytes += size;
	return 0;
}

static int flush(struct sparse_file *file, struct message *reterr)
{
	bool is_hole;
	int err;

	err = check_limits(file, 0, reterr);
	for (size_t start = 0, size; !err && start < file->filled_bytes; start += size) {
		size = run_length(file, start, &is_hole);
		if (!is_hole)
			err = write_run(file, start, size, reterr);
	}
	if (!err)
		file->size_bytes += file->filled_bytes;
	file->filled_bytes = 0;
	return err;
}

int sparse_file_advance(struct sparse_file *file, size_t bytes, struct message *reterr)
{
	file->filled_bytes += bytes;
	return file->filled_bytes < BUFFER_BYTES ? 0 : flush(file, reterr);
}

int sparse_file_finish(struct sparse_file *file, int *ret_fd, struct message *reterr)
{
	int err = flush(file, reterr);
	int *fd = file->memory_fd >= 0 ? &file->memory_fd : &file->disk.fd;

	if (!err && ftruncate(*fd, (off_t)file->size_bytes))
		err = file->memory_fd >= 0 ? -errno : refuse_disk(file, -errno, reterr);
	if (!err)
		*ret_fd = take_fd(*fd);
	return err;
}
