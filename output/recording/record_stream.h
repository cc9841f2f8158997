/* SPDX-License-Identifier: MIT */
/*
 * Collects the records of a recording into frames and writes them (docs/formats.md). The first
 * error is kept, and every later call returns it.
 */
#pragma once

#include <stdint.h>

#include "output/encoding/byte_buffer.h"
#include "output/recording/recording_format.h"
#include "output/recording/zstd_file.h"

/* Limit on the column ends of one frame; further columns are not compressed separately. */
enum { RECORD_STREAM_MAX_ENDS = 64 };

struct record_stream {
	struct zstd_file file;
	struct byte_buffer content; /* of the current frame */
	struct byte_buffer payload; /* of the current record */
	uint32_t ends[RECORD_STREAM_MAX_ENDS];
	uint32_t nr_ends;
	uint32_t nr_samples; /* in the current frame */
	int error;	     /* the first error; 0 if none */
};

/* Begin a recording in fd, which is borrowed, with its header. Returns 0 or -ENOMEM. */
int record_stream_init(struct record_stream *stream, int fd, uint64_t epoch_us);
void record_stream_done(struct record_stream *stream);

/* Begin a record. Append its payload to the buffer returned, which is borrowed. */
struct byte_buffer *record_stream_begin(struct record_stream *stream);

/*
 * Reserve room in the frame for the nr_samples of the next record, at most RECORDING_MAX_SAMPLES;
 * if the frame would have more than that, it is written first. Returns 0; -ENOMEM; the error of
 * the write.
 */
int record_stream_reserve(struct record_stream *stream, uint32_t nr_samples);

/*
 * End the record. The lengths of the columns and their bytes follow its payload; the columns are
 * cleared. A large frame is written. Returns 0; -ENOMEM; the error of the write.
 */
int record_stream_end(struct record_stream *stream, enum record_tag tag,
		      struct byte_buffer *columns, uint32_t nr_columns);

/* Write the frame, if it has content. Returns the same. */
int record_stream_flush(struct record_stream *stream);

/* Write the frame and the seek table. Returns the same. */
int record_stream_finish(struct record_stream *stream);
