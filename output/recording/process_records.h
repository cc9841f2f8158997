/* SPDX-License-Identifier: MIT */
/*
 * Writes the processes of a recording, each with its first thread, so that those without samples
 * are not in it: records PROCESS and PROCESS_END.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "output/profile/processes.h"
#include "output/recording/record_stream.h"

/* Empty when all zero. */
struct process_records {
	struct process_rows added;
	uint32_t *numbers; /* owned; parallel: its number in the file; PROFILE_NONE: not written */
	uint32_t max_numbers;
	uint32_t nr_written;
	size_t strings_bytes; /* sum over those added */
};

void process_records_done(struct process_records *records);

/*
 * Add a process, as recorder_add_process() does. Returns 0 or -ENOMEM.
 */
int process_records_add(struct process_records *records, const struct process_info *info,
			uint32_t *ret_process);

/* A process ended. Returns 0; -ENOMEM; the error of a write. */
int process_records_end(struct process_records *records, uint32_t process, uint64_t end_ns,
			struct record_stream *stream);

/*
 * Write a process unless it is written. *ret_number is its number in the file; PROFILE_NONE if it
 * was not added. Returns 0; -ENOMEM; the error of a write.
 */
int process_records_write(struct process_records *records, uint32_t process,
			  struct record_stream *stream, uint32_t *ret_number);
