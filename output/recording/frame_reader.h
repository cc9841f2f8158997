/* SPDX-License-Identifier: MIT */
/* Reads the zstd frames of a file one after the other; the file is untrusted. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct frame_reader {
	int fd;			     /* borrowed; read with pread(2) */
	struct ZSTD_DCtx_s *context; /* owned */
	uint8_t *input;		     /* owned; bytes of the file */
	uint8_t *content;	     /* owned; of the last frame */
	size_t max_content;
	uint64_t offset; /* of the next frame in the file */
};

/* For a file, from its beginning. 0 or -ENOMEM. */
int frame_reader_init(struct frame_reader *reader, int fd);
void frame_reader_done(struct frame_reader *reader);

/* Go on at an offset. */
void frame_reader_seek(struct frame_reader *reader, uint64_t offset);

/*
 * How many frames the seek table at the end of a file of so many bytes has; 0 if there is none,
 * or it cannot be read. What its rows say is not looked at.
 */
uint32_t frame_reader_seek_rows(const struct frame_reader *reader, uint64_t file_bytes);

/*
 * The next frame that is not skippable; its content is borrowed until the next call. 0;
 * -ENOENT: there is none; -EBADMSG: it is not whole, not what was compressed, or larger than
 * RECORDING_FRAME_MAX_BYTES; -ENOMEM; the file's error. Without a frame, offset stays.
 */
int frame_reader_next(struct frame_reader *reader, const uint8_t **ret_content, size_t *ret_bytes);
