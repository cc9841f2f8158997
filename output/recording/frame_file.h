/* SPDX-License-Identifier: MIT */
/*
 * A file of zstd frames that are compressed independently of each other, with a seek table
 * in a skippable frame at its end (zstd, contrib/seekable_format): docs/formats.md.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* After so many frames, 12 days of one each second, there is no table: it would take 8 MB. */
#define FRAME_FILE_MAX_ROWS (1u << 20)

/* Of the table: a skippable frame of rows and a footer, which ends in a number of its own. */
#define SKIPPABLE_MAGIC	 0x184D2A5Eu
#define SEEK_TABLE_MAGIC 0x8F92EAB1u
enum { SKIPPABLE_HEADER_BYTES = 8, SEEK_ROW_BYTES = 8, SEEK_FOOTER_BYTES = 9 };

struct frame_file_row {
	uint32_t compressed_bytes, content_bytes;
};

struct frame_file {
	int fd;			     /* borrowed */
	struct ZSTD_CCtx_s *context; /* owned */
	uint8_t *room;		     /* owned; what was compressed of one frame */
	size_t room_bytes;
	struct frame_file_row *rows; /* owned */
	uint32_t nr_rows, max_rows;
	uint64_t nr_frames;
	uint64_t bytes; /* written so far */
};

/* For files in fd, which is written from where it stands. 0 or -ENOMEM. */
int frame_file_init(struct frame_file *file, int fd);
void frame_file_done(struct frame_file *file);

/*
 * Append a frame. Where a column of the content ends, in ascending order in ends, what
 * follows is of another kind, and compressed on its own. 0; -ENOMEM; the error of the write.
 */
int frame_file_append(struct frame_file *file, const uint8_t *content, uint32_t content_bytes,
		      const uint32_t *ends, uint32_t nr_ends);

/* Write the table; nothing may be appended then. 0; -ENOMEM; the error of the write. */
int frame_file_finish(struct frame_file *file);
