/* SPDX-License-Identifier: MIT */
#include "output/recording/record_stream.h"

#include <errno.h>

/* A frame of this size is written. */
enum { FRAME_FULL_BYTES = 256 << 10 };

/* Smaller columns would gain nothing from separate compression. */
enum { COLUMN_LEAST_BYTES = 128 };

int record_stream_init(struct record_stream *stream, int fd, uint64_t epoch_us)
{
	int err;

	*stream = (struct record_stream){0};
	err = zstd_file_init(&stream->file, fd);
	byte_buffer_append(&stream->content, RECORDING_MAGIC, RECORDING_MAGIC_BYTES);
	byte_buffer_fixed(&stream->content, RECORDING_VERSION, 2);
	byte_buffer_fixed(&stream->content, epoch_us, 8);
	return stream->content.failed ? -ENOMEM : err;
}

void record_stream_done(struct record_stream *stream)
{
	zstd_file_done(&stream->file);
	byte_buffer_done(&stream->content);
	byte_buffer_done(&stream->payload);
}

struct byte_buffer *record_stream_begin(struct record_stream *stream)
{
	byte_buffer_clear(&stream->payload);
	return &stream->payload;
}

int record_stream_reserve(struct record_stream *stream, uint32_t nr_samples)
{
	int err = stream->error;

	if (nr_samples > RECORDING_MAX_SAMPLES - stream->nr_samples)
		err = record_stream_flush(stream);
	stream->nr_samples += nr_samples;
	return err;
}

/* End a column at the current end of the content. */
static void mark_end(struct record_stream *stream)
{
	const uint32_t end = stream->content.nr;
	const uint32_t last = stream->nr_ends ? stream->ends[stream->nr_ends - 1] : 0;

	if (end > last && stream->nr_ends < RECORD_STREAM_MAX_ENDS)
		stream->ends[stream->nr_ends++] = end;
}

/* Append a column. Its failure becomes that of the content. */
static void append_column(struct record_stream *stream, struct byte_buffer *column)
{
	if (column->nr >= COLUMN_LEAST_BYTES)
		mark_end(stream);
	byte_buffer_append(&stream->content, column->bytes, column->nr);
	if (column->nr >= COLUMN_LEAST_BYTES)
		mark_end(stream);
	stream->content.failed |= column->failed;
	byte_buffer_clear(column);
}

int record_stream_end(struct record_stream *stream, enum record_tag tag,
		      struct byte_buffer *columns, uint32_t nr_columns)
{
	struct byte_buffer *content = &stream->content;
	uint64_t bytes;

	for (uint32_t i = 0; i < nr_columns; i++)
		byte_buffer_uint(&stream->payload, columns[i].nr);
	bytes = stream->payload.nr;
	for (uint32_t i = 0; i < nr_columns; i++)
		bytes += columns[i].nr;
	byte_buffer_uint(content, tag);
	byte_buffer_uint(content, bytes);
	byte_buffer_append(content, stream->payload.bytes, stream->payload.nr);
	for (uint32_t i = 0; i < nr_columns; i++)
		append_column(stream, &columns[i]);
	if (!stream->error && (content->failed || stream->payload.failed))
		stream->error = -ENOMEM;
	return content->nr >= FRAME_FULL_BYTES ? record_stream_flush(stream) : stream->error;
}

int record_stream_flush(struct record_stream *stream)
{
	if (!stream->error && stream->content.nr)
		stream->error = zstd_file_append(&stream->file, stream->content.bytes,
						 stream->content.nr, stream->ends, stream->nr_ends);
	byte_buffer_clear(&stream->content);
	stream->nr_ends = 0;
	stream->nr_samples = 0;
	return stream->error;
}

int record_stream_finish(struct record_stream *stream)
{
	if (!record_stream_flush(stream))
		stream->error = zstd_file_finish(&stream->file);
	return stream->error;
}
