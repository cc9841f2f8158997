/* SPDX-License-Identifier: MIT */
#include "output/recording/zstd_file.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

#include "output/encoding/byte_buffer.h"
#include "procmem/array.h"

/*
 * Columns hold short numbers in little order: searching for short repetitions costs more bytes
 * than it saves. Level 3 takes as long and gains nothing; 9 takes twice as long for 1 %.
 */
enum { COMPRESSION_LEVEL = 1, MIN_MATCH_BYTES = 7 };

/* Upper limit for one more block: its header and that of its literals. */
enum { BLOCK_HEADER_BYTES = 16 };

int zstd_file_init(struct zstd_file *file, int fd)
{
	*file = (struct zstd_file){.fd = fd, .context = ZSTD_createCCtx()};
	if (!file->context)
		return -ENOMEM;
	(void)ZSTD_CCtx_setParameter(file->context, ZSTD_c_checksumFlag, 1);
	(void)ZSTD_CCtx_setParameter(file->context, ZSTD_c_compressionLevel, COMPRESSION_LEVEL);
	(void)ZSTD_CCtx_setParameter(file->context, ZSTD_c_minMatch, MIN_MATCH_BYTES);
	return 0;
}

void zstd_file_done(struct zstd_file *file)
{
	(void)ZSTD_freeCCtx(file->context);
	free(file->room);
	free(file->rows);
	*file = (struct zstd_file){.fd = -1};
}

/* Write all bytes, in as many calls as it takes; *bytes_written counts them. */
static int write_to(int fd, const uint8_t *bytes, size_t nr, uint64_t *bytes_written)
{
	while (nr) {
		ssize_t written = write(fd, bytes, nr);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? -errno : -EIO;
		*bytes_written += (uint64_t)written;
		bytes += written;
		nr -= (size_t)written;
	}
	return 0;
}

static int write_all(struct zstd_file *file, const uint8_t *bytes, size_t nr)
{
	return write_to(file->fd, bytes, nr, &file->bytes);
}

/* Reserve room for the worst case of content of this size. */
static int room_reserve(struct zstd_file *file, uint32_t content_bytes, uint32_t nr_ends)
{
	size_t needed = ZSTD_compressBound(content_bytes) + (size_t)nr_ends * BLOCK_HEADER_BYTES;
	uint8_t *room;

	if (needed <= file->room_bytes)
		return 0;
	room = realloc(file->room, 2 * needed);
	if (!room)
		return -ENOMEM;
	file->room = room;
	file->room_bytes = 2 * needed;
	return 0;
}

/* Compress content up to end. The last part ends the frame. */
static int compress_part(struct zstd_file *file, ZSTD_inBuffer *in, size_t end, bool is_last,
			 ZSTD_outBuffer *out)
{
	size_t left;

	in->size = end;
	do {
		left = ZSTD_compressStream2(file->context, out, in,
					    is_last ? ZSTD_e_end : ZSTD_e_flush);
		if (ZSTD_isError(left) || (left && out->pos == out->size))
			return -ENOMEM;
	} while (left || in->pos < in->size);
	return 0;
}

/* Compress a frame into the room; *ret_bytes is its size. */
static int compress(struct zstd_file *file, const uint8_t *content, uint32_t content_bytes,
		    const uint32_t *ends, uint32_t nr_ends, size_t *ret_bytes)
{
	ZSTD_inBuffer in = {content, 0, 0};
	ZSTD_outBuffer out = {file->room, file->room_bytes, 0};
	int err = 0;

	(void)ZSTD_CCtx_reset(file->context, ZSTD_reset_session_only);
	(void)ZSTD_CCtx_setPledgedSrcSize(file->context, content_bytes);
	for (uint32_t i = 0; !err && i < nr_ends && ends[i] < content_bytes; i++)
		err = compress_part(file, &in, ends[i], false, &out);
	if (!err)
		err = compress_part(file, &in, content_bytes, true, &out);
	*ret_bytes = out.pos;
	return err;
}

/* Add a frame to the table, unless there are too many frames for one. */
static int rows_add(struct zstd_file *file, struct zstd_file_row row)
{
	struct zstd_file_row *rows;

	if (++file->nr_frames > ZSTD_FILE_MAX_ROWS)
		return 0;
	rows = array_reserve(file->rows, file->nr_rows + 1, &file->max_rows, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	file->rows = rows;
	rows[file->nr_rows++] = row;
	return 0;
}

int zstd_file_append(struct zstd_file *file, const uint8_t *content, uint32_t content_bytes,
		     const uint32_t *ends, uint32_t nr_ends)
{
	size_t bytes = 0;
	int err = room_reserve(file, content_bytes, nr_ends);

	if (!err)
		err = compress(file, content, content_bytes, ends, nr_ends, &bytes);
	if (!err)
		err = write_all(file, file->room, bytes);
	return err ? err : rows_add(file, (struct zstd_file_row){(uint32_t)bytes, content_bytes});
}

int zstd_file_finish(struct zstd_file *file)
{
	struct byte_buffer table = {0};
	int err = 0;

	if (file->nr_frames > ZSTD_FILE_MAX_ROWS)
		return 0;
	byte_buffer_fixed(&table, SKIPPABLE_MAGIC, 4);
	byte_buffer_fixed(&table, file->nr_rows * SEEK_ROW_BYTES + SEEK_FOOTER_BYTES, 4);
	for (uint32_t i = 0; i < file->nr_rows; i++) {
		byte_buffer_fixed(&table, file->rows[i].compressed_bytes, 4);
		byte_buffer_fixed(&table, file->rows[i].content_bytes, 4);
	}
	byte_buffer_fixed(&table, file->nr_rows, 4);
	byte_buffer_fixed(&table, 0, 1);
	byte_buffer_fixed(&table, SEEK_TABLE_MAGIC, 4);
	err = table.failed ? -ENOMEM : write_all(file, table.bytes, table.nr);
	byte_buffer_done(&table);
	return err;
}

int zstd_file_fork(struct zstd_file *file, int from_fd, int to_fd)
{
	uint64_t copied = 0;
	int err = 0;

	while (!err && copied < file->bytes) {
		uint8_t block[1 << 14];
		const uint64_t left = file->bytes - copied;
		const ssize_t nr = pread(
			from_fd, block, left < sizeof(block) ? left : sizeof(block), (off_t)copied);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			return nr ? -errno : -EIO;
		err = write_to(to_fd, block, (size_t)nr, &copied);
	}
	if (err)
		return err;
	file->before.fd = file->fd;
	file->before.nr_rows = file->nr_rows;
	file->before.nr_frames = file->nr_frames;
	file->before.bytes = file->bytes;
	file->fd = to_fd;
	return 0;
}

void zstd_file_join(struct zstd_file *file)
{
	file->fd = file->before.fd;
	file->nr_rows = file->before.nr_rows;
	file->nr_frames = file->before.nr_frames;
	file->bytes = file->before.bytes;
}
