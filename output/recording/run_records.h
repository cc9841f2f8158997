/* SPDX-License-Identifier: MIT */
/* Writes what is known of a run into a recording, as it changes: INFO and COUNTERS. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/recording/record_stream.h"
#include "output/run/run.h"

/* A pair that was written, by its number in the file. */
struct run_pair {
	char *name, *value; /* owned */
	bool is_number;
	uint64_t number;
};

/* All zero, nothing has been written. */
struct run_records {
	struct run_pair *pairs; /* owned */
	uint32_t nr_pairs, max_pairs;
	uint32_t next; /* where the next pair is expected */
	bool is_final;
	struct byte_buffer info, counters; /* payloads */
};

void run_records_done(struct run_records *records);

/*
 * Write what is new of the run. As long as it goes on, is_final false, that is what has a name
 * that was not written yet, and whole numbers; later what is not has its last value. 0; -ENOMEM;
 * the error of the write.
 */
int run_records_write(struct run_records *records, const struct run *run, bool is_final,
		      struct record_stream *stream);
