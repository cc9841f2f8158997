/* SPDX-License-Identifier: MIT */
#include "output/recording/zstd_reader.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

#include "output/recording/recording_format.h"
#include "output/recording/zstd_file.h"
#include "procmem/byte_cursor.h"

enum { INPUT_BYTES = 128 << 10, MIN_CONTENT_BYTES = 64 << 10 };

int zstd_reader_init(struct zstd_reader *reader, int fd)
{
	*reader = (struct zstd_reader){
		.fd = fd,
		.context = ZSTD_createDCtx(),
		.input = malloc(INPUT_BYTES),
	};
	if (!reader->context || !reader->input) {
		zstd_reader_done(reader);
		return -ENOMEM;
	}
	(void)ZSTD_DCtx_setParameter(reader->context, ZSTD_d_windowLogMax, RECORDING_WINDOW_LOG);
	return 0;
}

void zstd_reader_done(struct zstd_reader *reader)
{
	(void)ZSTD_freeDCtx(reader->context);
	free(reader->input);
	free(reader->content);
	*reader = (struct zstd_reader){.fd = -1};
}

void zstd_reader_seek(struct zstd_reader *reader, uint64_t offset)
{
	reader->offset = offset;
}

/* Read the next bytes of the file, at least one. Returns -ENOENT at its end. */
static int read_input(const struct zstd_reader *reader, uint64_t offset, ZSTD_inBuffer *in)
{
	ssize_t nr;

	do {
		nr = pread(reader->fd, reader->input, INPUT_BYTES, (off_t)offset);
	} while (nr < 0 && errno == EINTR);
	if (nr <= 0)
		return nr ? -errno : -ENOENT;
	*in = (ZSTD_inBuffer){reader->input, (size_t)nr, 0};
	return 0;
}

/* Grow the content buffer. Returns -EBADMSG at its limit. */
static int grow_content(struct zstd_reader *reader, ZSTD_outBuffer *out)
{
	size_t max = reader->max_content ? 2 * reader->max_content : MIN_CONTENT_BYTES;
	uint8_t *content;

	if (reader->max_content >= RECORDING_FRAME_MAX_BYTES)
		return -EBADMSG;
	content = realloc(reader->content, max);
	if (!content)
		return -ENOMEM;
	reader->content = content;
	reader->max_content = max;
	out->dst = content;
	out->size = max;
	return 0;
}

/* Decompress the input. *ret_ended: the frame ended. */
static int decompress(struct zstd_reader *reader, ZSTD_inBuffer *in, ZSTD_outBuffer *out,
		      bool *ret_ended)
{
	size_t left;

	*ret_ended = false;
	do {
		if (out->pos == out->size) {
			int err = grow_content(reader, out);

			if (err)
				return err;
		}
		left = ZSTD_decompressStream(reader->context, out, in);
		if (ZSTD_isError(left))
			return -EBADMSG;
		*ret_ended = left == 0;
	} while (left && (in->pos < in->size || out->pos == out->size));
	return 0;
}

/* Read one frame of any kind. */
static int read_frame(struct zstd_reader *reader, size_t *ret_bytes)
{
	ZSTD_inBuffer in;
	ZSTD_outBuffer out = {reader->content, reader->max_content, 0};
	uint64_t offset = reader->offset;
	bool ended = false;

	(void)ZSTD_DCtx_reset(reader->context, ZSTD_reset_session_only);
	while (!ended) {
		int err = read_input(reader, offset, &in);

		if (err == -ENOENT && offset > reader->offset)
			err = -EBADMSG;
		if (!err)
			err = decompress(reader, &in, &out, &ended);
		if (err)
			return err;
		offset += in.pos;
	}
	reader->offset = offset;
	*ret_bytes = out.pos;
	return 0;
}

/* Read bytes of the file as a little-endian number; 0 if they are missing. */
static uint64_t read_fixed(const struct zstd_reader *reader, uint64_t offset, unsigned int bytes)
{
	uint8_t content[sizeof(uint64_t)];
	struct byte_cursor cursor = {.at = content, .end = content + bytes};

	if (pread(reader->fd, content, bytes, (off_t)offset) != (ssize_t)bytes)
		return 0;
	return byte_cursor_fixed(&cursor, bytes);
}

uint32_t zstd_reader_seek_rows(const struct zstd_reader *reader, uint64_t file_bytes)
{
	uint64_t footer_offset, rows, table_bytes;

	if (file_bytes < SKIPPABLE_HEADER_BYTES + SEEK_FOOTER_BYTES)
		return 0;
	footer_offset = file_bytes - SEEK_FOOTER_BYTES;
	rows = read_fixed(reader, footer_offset, 4);
	table_bytes = rows * SEEK_ROW_BYTES + SEEK_FOOTER_BYTES;
	if (read_fixed(reader, footer_offset + 5, 4) != SEEK_TABLE_MAGIC ||
	    rows > ZSTD_FILE_MAX_ROWS || table_bytes + SKIPPABLE_HEADER_BYTES > file_bytes ||
	    read_fixed(reader, file_bytes - table_bytes - 4, 4) != table_bytes ||
	    read_fixed(reader, file_bytes - table_bytes - 8, 4) != SKIPPABLE_MAGIC)
		return 0;
	return (uint32_t)rows;
}

int zstd_reader_next(struct zstd_reader *reader, const uint8_t **ret_content, size_t *ret_bytes)
{
	const uint64_t offset = reader->offset;
	int err;

	do {
		err = read_frame(reader, ret_bytes);
	} while (!err && !*ret_bytes);
	*ret_content = reader->content;
	if (err)
		reader->offset = offset;
	return err;
}
