/* SPDX-License-Identifier: MIT */
/* Understands the stream of a recording, a frame at a time: docs/formats.md. Untrusted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/recording/recorded.h"
#include "output/recording/recording_format.h"
#include "output/recording/sample_columns.h"
#include "output/run/run.h"

/* A pair of INFO, by its number. */
struct told_pair {
	char *name; /* owned */
	bool is_number;
	uint64_t number;
};

/* Initialise with what is to be called, or told, and the rest zero. */
struct recording_decoder {
	const struct recording_ops *ops; /* borrowed; NULL: nothing is handed on */
	void *context;
	struct run_told *told; /* borrowed; takes what INFO says; NULL: nothing does */
	uint32_t flags;	       /* that all samples have, whatever is stored */

	bool has_header, has_end;
	uint64_t epoch_us;
	uint64_t nr_samples;
	uint32_t nr_frame_samples; /* of the frame so far */
	uint32_t nr_processes, nr_threads;
	size_t command_bytes; /* of the processes' command lines */
	struct slot_table slots;

	struct told_pair *pairs; /* owned */
	uint32_t nr_pairs, max_pairs;

	int32_t *first_lines; /* owned; of functions */
	uint32_t nr_functions, max_functions;
	uint32_t nr_nodes;
	char **paths; /* owned, with their strings */
	uint32_t nr_paths, max_paths;
	size_t strings_bytes; /* of functions, until they are forgotten */

	char name[RECORDING_MAX_STRING_BYTES + 1]; /* strings of the last record */
	char value[RECORDING_MAX_STRING_BYTES + 1];
};

void recording_decoder_done(struct recording_decoder *decoder);

/*
 * The version that the content of a first frame says it has; 0: it is no recording's.
 */
unsigned int recording_version(const uint8_t *content, size_t bytes);

/*
 * Take the content of the next frame. 0; what a call of ops returned; -ENOMEM; -EBADMSG: it
 * breaks a rule, and nothing behind can be understood.
 */
int recording_decoder_take(struct recording_decoder *decoder, const uint8_t *content, size_t bytes);
