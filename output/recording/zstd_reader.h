/* SPDX-License-Identifier: MIT */
/* Reads the zstd frames of an untrusted file in sequence. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct zstd_reader {
	int fd;			     /* borrowed; read with pread(2) */
	struct ZSTD_DCtx_s *context; /* owned */
	uint8_t *input;		     /* owned; bytes of the file */
	uint8_t *content;	     /* owned; the last frame */
	size_t max_content;
	uint64_t offset; /* of the next frame in the file */
};

/* Read a file from its beginning. Returns 0 or -ENOMEM. */
int zstd_reader_init(struct zstd_reader *reader, int fd);
void zstd_reader_done(struct zstd_reader *reader);

/* Continue at an offset. */
void zstd_reader_seek(struct zstd_reader *reader, uint64_t offset);

/*
 * Returns the number of frames in the seek table at the end of a file of file_bytes bytes; 0 if
 * there is no table or it cannot be read. The rows are not checked.
 */
uint32_t zstd_reader_seek_rows(const struct zstd_reader *reader, uint64_t file_bytes);

/*
 * Read the next frame that is not skippable. Its content is borrowed until the next call. Returns
 * 0; -ENOENT at the end of the file; -EBADMSG if the frame is cut off, damaged, or larger than
 * RECORDING_FRAME_MAX_BYTES; -ENOMEM; the file's error. After an error offset is unchanged.
 */
int zstd_reader_next(struct zstd_reader *reader, const uint8_t **ret_content, size_t *ret_bytes);
