/* SPDX-License-Identifier: MIT */
/*
 * The records of a recording that is written, gathered into frames: docs/formats.md. Once
 * something has failed, every call says so.
 */
#pragma once

#include <stdint.h>

#include "output/recording/frame_file.h"
#include "output/recording/recording_format.h"
#include "output/text/byte_buffer.h"

/* Ends of columns in one frame; further ones are not compressed on their own. */
enum { RECORD_STREAM_MAX_ENDS = 64 };

struct record_stream {
	struct frame_file file;
	struct byte_buffer content; /* of the frame */
	struct byte_buffer payload; /* of the record */
	uint32_t ends[RECORD_STREAM_MAX_ENDS];
	uint32_t nr_ends;
	uint32_t nr_samples; /* of the frame */
	int error;	     /* of what failed; 0 */
};

/* For a recording in fd, which is borrowed, with its header. 0 or -ENOMEM. */
int record_stream_init(struct record_stream *stream, int fd, uint64_t epoch_us);
void record_stream_done(struct record_stream *stream);

/* Begin a record: append its payload to what is returned, which is borrowed. */
struct byte_buffer *record_stream_begin(struct record_stream *stream);

/*
 * Have room for samples in the frame, at most RECORDING_MAX_SAMPLES, whose record comes next: what
 * was gathered is written if they would be too many. 0; -ENOMEM; the error of the write.
 */
int record_stream_reserve(struct record_stream *stream, uint32_t nr_samples);

/*
 * End it. Its payload goes on with the lengths of the columns and these, which are cleared. What
 * was gathered is written if it is much. 0; -ENOMEM; the error of the write.
 */
int record_stream_end(struct record_stream *stream, enum record_tag tag,
		      struct byte_buffer *columns, uint32_t nr_columns);

/* Write what was gathered, if anything. The same. */
int record_stream_flush(struct record_stream *stream);

/* And the table of contents. The same. */
int record_stream_finish(struct record_stream *stream);
