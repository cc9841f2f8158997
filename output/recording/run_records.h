/* SPDX-License-Identifier: MIT */
/* Writes the pairs of a run into a recording as they change: records INFO and COUNTERS. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/recording/record_stream.h"
#include "output/run/run.h"

/* A pair that was written, indexed by its number in the file. */
struct run_pair {
	char *name, *value; /* owned */
	bool is_number;
	uint64_t number;
};

/* Empty when all zero. */
struct run_records {
	struct run_pair *pairs; /* owned */
	uint32_t nr_pairs, max_pairs;
	uint32_t next; /* index expected for the next pair */
	bool is_final;
	struct byte_buffer info, counters; /* payloads */
};

void run_records_done(struct run_records *records);

/*
 * Write what changed since the last call. While the run goes on (is_final is false), these are
 * new names and changed whole numbers; other values are written once more at the end. Returns 0;
 * -ENOMEM; the error of the write.
 */
int run_records_write(struct run_records *records, const struct run *run, bool is_final,
		      struct record_stream *stream);
