/* SPDX-License-Identifier: MIT */
#include "tests/support/tape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "procmem/cleanup.h"

#define MAGIC "pysample tape 1\n"

enum { MAGIC_BYTES = 16, HEADER_BYTES = 32, PIECE_HEADER_BYTES = 16, ZSTD_LEVEL = 19 };

/* Limit while recording: the same place may be read many times before pieces are merged. */
#define RECORDED_MAX_BYTES (1u << 30)

/* Map the pieces of a decompressed tape. */
static int map_pieces(const uint8_t *text, size_t size, uint32_t nr_pieces,
		      struct fake_memory *fake)
{
	size_t offset = HEADER_BYTES;
	remote_addr end_addr = 0;

	for (uint32_t i = 0; i < nr_pieces; i++) {
		uint64_t addr, size_bytes, last_addr;

		if (size - offset < PIECE_HEADER_BYTES)
			return -EBADMSG;
		addr = field_u64(text, offset);
		size_bytes = field_u64(text, offset + 8);
		offset += PIECE_HEADER_BYTES;
		if (!size_bytes || size_bytes > size - offset || addr < end_addr ||
		    __builtin_add_overflow(addr, size_bytes, &last_addr))
			return -EBADMSG;
		fake_memory_map_bytes(fake, addr, text + offset, size_bytes);
		offset += size_bytes;
		end_addr = last_addr;
	}
	return offset == size ? 0 : -EBADMSG;
}

int tape_parse(const void *bytes, size_t size_bytes, struct tape *ret_tape)
{
	unsigned long long size = ZSTD_getFrameContentSize(bytes, size_bytes);
	cleanup_free uint8_t *text = NULL;
	struct tape tape = {0};
	int err;

	if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN ||
	    size < HEADER_BYTES)
		return -EBADMSG;
	if (size > TAPE_MAX_BYTES)
		return -E2BIG;
	text = malloc(size);
	if (!text)
		return -ENOMEM;
	if (ZSTD_decompress(text, size, bytes, size_bytes) != size ||
	    memcmp(text, MAGIC, MAGIC_BYTES) != 0)
		return -EBADMSG;
	tape.runtime_addr = field_u64(text, 16);
	tape.version_hex = field_u32(text, 24);
	if (field_u32(text, 28) > TAPE_MAX_PIECES)
		return -E2BIG;
	fake_memory_init(&tape.fake);
	err = map_pieces(text, size, field_u32(text, 28), &tape.fake);
	if (err)
		fake_memory_done(&tape.fake);
	else
		*ret_tape = tape;
	return err;
}

int tape_load(const char *path, struct tape *ret_tape)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	cleanup_free uint8_t *bytes = NULL;
	struct stat st;
	ssize_t length;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > TAPE_MAX_BYTES)
		return -E2BIG;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	length = read(fd, bytes, (size_t)st.st_size);
	if (length < 0)
		return -errno;
	return tape_parse(bytes, (size_t)length, ret_tape);
}

void tape_done(struct tape *tape)
{
	if (!tape)
		return;
	fake_memory_done(&tape->fake);
}

static void keep_piece(struct tape_recorder *recorder, const struct remote_range *range)
{
	uint8_t *bytes;

	if (recorder->error || !range->done_bytes)
		return;
	if (recorder->nr_pieces == recorder->max_pieces) {
		size_t max_pieces = recorder->max_pieces ? recorder->max_pieces * 2 : 256;
		struct tape_piece *pieces =
			reallocarray(recorder->pieces, max_pieces, sizeof(*pieces));

		if (!pieces) {
			recorder->error = -ENOMEM;
			return;
		}
		recorder->pieces = pieces;
		recorder->max_pieces = max_pieces;
	}
	bytes = malloc(range->done_bytes);
	if (!bytes) {
		recorder->error = -ENOMEM;
		return;
	}
	memcpy(bytes, range->buffer, range->done_bytes);
	recorder->pieces[recorder->nr_pieces++] = (struct tape_piece){
		.addr = range->addr,
		.size_bytes = range->done_bytes,
		.bytes = bytes,
	};
}

static int recorder_read_ranges(struct remote_memory *memory, struct remote_range *ranges,
				size_t nr_ranges)
{
	struct tape_recorder *recorder = (struct tape_recorder *)memory;
	int err = remote_memory_read_ranges(recorder->inner, ranges, nr_ranges);

	for (size_t i = 0; !err && i < nr_ranges; i++)
		keep_piece(recorder, &ranges[i]);
	return err;
}

void tape_recorder_init(struct tape_recorder *recorder, struct remote_memory *inner)
{
	static const struct remote_memory_ops ops = {.read_ranges = recorder_read_ranges};

	*recorder = (struct tape_recorder){.memory.ops = &ops, .inner = inner};
}

void tape_recorder_done(struct tape_recorder *recorder)
{
	if (!recorder)
		return;
	for (size_t i = 0; i < recorder->nr_pieces; i++)
		free(recorder->pieces[i].bytes);
	free(recorder->pieces);
	*recorder = (struct tape_recorder){0};
}

static int compare_pieces(const void *a, const void *b)
{
	const struct tape_piece *first = a;
	const struct tape_piece *second = b;

	return (first->addr > second->addr) - (first->addr < second->addr);
}

/*
 * Write the pieces to text, which has room for all of them, and join those that touch or overlap.
 * Returns the size; *ret_nr_merged is the number of pieces written.
 */
static size_t merge_pieces(const struct tape_recorder *recorder, uint8_t *text,
			   uint32_t *ret_nr_merged)
{
	size_t offset = HEADER_BYTES;
	size_t header = 0; /* offset of the current piece's header */
	remote_addr start_addr = 0, end_addr = 0;

	*ret_nr_merged = 0;
	for (size_t i = 0; i < recorder->nr_pieces; i++) {
		const struct tape_piece *piece = &recorder->pieces[i];
		uint64_t known = end_addr - piece->addr;
		uint64_t merged_bytes;

		if (!*ret_nr_merged || piece->addr > end_addr) {
			header = offset;
			offset += PIECE_HEADER_BYTES;
			start_addr = piece->addr;
			known = 0;
			++*ret_nr_merged;
		}
		if (known < piece->size_bytes) {
			memcpy(text + offset, piece->bytes + known, piece->size_bytes - known);
			offset += piece->size_bytes - known;
			end_addr = piece->addr + piece->size_bytes;
		}
		merged_bytes = end_addr - start_addr;
		memcpy(text + header, &start_addr, 8);
		memcpy(text + header + 8, &merged_bytes, 8);
	}
	return offset;
}

static int write_compressed(const uint8_t *text, size_t size, const char *path)
{
	size_t bound = ZSTD_compressBound(size);
	cleanup_free uint8_t *bytes = malloc(bound);
	FILE *file;
	int err = 0;

	if (!bytes)
		return -ENOMEM;
	bound = ZSTD_compress(bytes, bound, text, size, ZSTD_LEVEL);
	if (ZSTD_isError(bound))
		return -ENOMEM;
	file = fopen(path, "we");
	if (!file)
		return -errno;
	if (fwrite(bytes, 1, bound, file) != bound)
		err = -errno;
	if (fclose(file) != 0 && !err)
		err = -errno;
	return err;
}

int tape_recorder_save(struct tape_recorder *recorder, remote_addr runtime_addr,
		       uint32_t version_hex, const char *path)
{
	cleanup_free uint8_t *text = NULL;
	size_t size = HEADER_BYTES;
	uint32_t nr_merged;

	if (recorder->error)
		return recorder->error;
	for (size_t i = 0; i < recorder->nr_pieces && size < RECORDED_MAX_BYTES; i++)
		size += PIECE_HEADER_BYTES + recorder->pieces[i].size_bytes;
	if (size >= RECORDED_MAX_BYTES)
		return -E2BIG;
	text = malloc(size);
	if (!text)
		return -ENOMEM;
	qsort(recorder->pieces, recorder->nr_pieces, sizeof(*recorder->pieces), compare_pieces);
	size = merge_pieces(recorder, text, &nr_merged);
	if (size > TAPE_MAX_BYTES || nr_merged > TAPE_MAX_PIECES)
		return -E2BIG;
	memcpy(text, MAGIC, MAGIC_BYTES);
	memcpy(text + 16, &runtime_addr, 8);
	memcpy(text + 24, &version_hex, 4);
	memcpy(text + 28, &nr_merged, 4);
	return write_compressed(text, size, path);
}
