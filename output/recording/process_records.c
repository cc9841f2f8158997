/* SPDX-License-Identifier: MIT */
#include "output/recording/process_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/profile.h"
#include "output/recording/recording_format.h"
#include "procmem/array.h"

/*
 * Names are 128 bytes at most, so this is room for those of all processes. Command lines, which
 * are longer, do not use it.
 */
#define NAMES_BYTES ((size_t)RECORDING_MAX_PROCESSES * 128)

enum { US_NS = 1000 };

void process_records_done(struct process_records *records)
{
	process_rows_done(&records->added);
	free(records->numbers);
	*records = (struct process_records){0};
}

/* Returns the string; NULL if all would exceed max_bytes. */
static const char *admit(struct process_records *records, const char *string, size_t max_bytes)
{
	const size_t bytes = string ? strnlen(string, RECORDING_MAX_STRING_BYTES) : 0;

	if (records->strings_bytes > max_bytes || bytes > max_bytes - records->strings_bytes)
		return NULL;
	records->strings_bytes += bytes;
	return string;
}

int process_records_add(struct process_records *records, const struct process_info *info,
			uint32_t *ret_process)
{
	const uint32_t index = records->added.nr;
	struct process_info admitted = *info;
	uint32_t *numbers;
	int err;

	*ret_process = PROFILE_NONE;
	if (index == RECORDING_MAX_PROCESSES)
		return 0;
	numbers =
		array_reserve(records->numbers, index + 1, &records->max_numbers, sizeof(*numbers));
	if (!numbers)
		return -ENOMEM;
	records->numbers = numbers;
	numbers[index] = PROFILE_NONE;
	admitted.name = admit(records, info->name, RECORDING_MAX_COMMAND_BYTES);
	admitted.command_line =
		admit(records, info->command_line, RECORDING_MAX_COMMAND_BYTES - NAMES_BYTES);
	err = process_rows_add(&records->added, &admitted);
	if (!err)
		*ret_process = index;
	return err;
}

static int write_end(const struct process_records *records, uint32_t process,
		     struct record_stream *stream)
{
	struct byte_buffer *payload = record_stream_begin(stream);

	byte_buffer_uint(payload, records->numbers[process]);
	byte_buffer_uint(payload, records->added.rows[process].end_ns / US_NS);
	return record_stream_end(stream, RECORD_PROCESS_END, NULL, 0);
}

int process_records_end(struct process_records *records, uint32_t process, uint64_t end_ns,
			struct record_stream *stream)
{
	if (process >= records->added.nr)
		return 0;
	records->added.rows[process].end_ns = end_ns;
	return records->numbers[process] == PROFILE_NONE ? 0 : write_end(records, process, stream);
}

int process_records_write(struct process_records *records, uint32_t process,
			  struct record_stream *stream, uint32_t *ret_number)
{
	const struct profile_process *row;
	struct byte_buffer *payload;
	int err = 0;

	*ret_number = process < records->added.nr ? records->numbers[process] : PROFILE_NONE;
	if (process >= records->added.nr || *ret_number != PROFILE_NONE)
		return 0;
	row = &records->added.rows[process];
	payload = record_stream_begin(stream);
	byte_buffer_int(payload, row->pid);
	byte_buffer_string(payload, row->command_line, RECORDING_MAX_STRING_BYTES);
	byte_buffer_int(payload, row->parent_pid);
	byte_buffer_string(payload, row->name, RECORDING_MAX_STRING_BYTES);
	byte_buffer_uint(payload, row->start_ns / US_NS);
	err = record_stream_end(stream, RECORD_PROCESS, NULL, 0);
	if (err)
		return err;
	*ret_number = records->numbers[process] = records->nr_written++;
	return row->end_ns ? write_end(records, process, stream) : 0;
}
