/* SPDX-License-Identifier: MIT */
/*
 * A file of independently compressed zstd frames, with a seek table in a skippable frame at its
 * end (zstd, contrib/seekable_format; docs/formats.md).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Beyond this many frames, 12 days at one a second, the file gets no table: it would take 8 MB. */
#define ZSTD_FILE_MAX_ROWS (1u << 20)

/* The table is a skippable frame of rows and a footer, which ends in its own magic number. */
#define SKIPPABLE_MAGIC	 0x184D2A5Eu
#define SEEK_TABLE_MAGIC 0x8F92EAB1u
enum { SKIPPABLE_HEADER_BYTES = 8, SEEK_ROW_BYTES = 8, SEEK_FOOTER_BYTES = 9 };

struct zstd_file_row {
	uint32_t compressed_bytes, content_bytes;
};

struct zstd_file {
	int fd;			     /* borrowed */
	struct ZSTD_CCtx_s *context; /* owned */
	uint8_t *room;		     /* owned; one compressed frame */
	size_t room_bytes;
	struct zstd_file_row *rows; /* owned */
	uint32_t nr_rows, max_rows;
	uint64_t nr_frames;
	uint64_t bytes; /* written so far */
	/* between zstd_file_fork() and zstd_file_join(), what the file was before */
	struct {
		int fd;
		uint32_t nr_rows;
		uint64_t nr_frames, bytes;
	} before;
};

/* Write to fd from its current position. Returns 0 or -ENOMEM. */
int zstd_file_init(struct zstd_file *file, int fd);
void zstd_file_done(struct zstd_file *file);

/*
 * Append a frame. The ascending offsets in ends divide the content into columns, each compressed
 * as blocks of its own. Returns 0; -ENOMEM; the error of the write.
 */
int zstd_file_append(struct zstd_file *file, const uint8_t *content, uint32_t content_bytes,
		     const uint32_t *ends, uint32_t nr_ends);

/*
 * Write the table. Nothing may be appended afterwards. Returns 0; -ENOMEM; the error of the
 * write.
 */
int zstd_file_finish(struct zstd_file *file);

/*
 * Copy what was written, which is readable from offset 0 of from_fd, to to_fd, which is borrowed.
 * What is appended from now on, and the table, goes to that copy, until zstd_file_join() continues
 * with the file as it was. Returns 0; the error of the read or write, and nothing has changed.
 */
int zstd_file_fork(struct zstd_file *file, int from_fd, int to_fd);
void zstd_file_join(struct zstd_file *file);
