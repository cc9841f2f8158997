/* SPDX-License-Identifier: MIT */
/* Decodes the untrusted stream of a recording frame by frame (docs/formats.md). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/recording/recording_format.h"
#include "output/recording/recording_ops.h"
#include "output/recording/samples_reader.h"
#include "output/run/run.h"

/* A pair of INFO, indexed by its number. */
struct info_pair {
	char *name; /* owned */
	bool is_number;
	uint64_t number;
};

/* Where in the stream the decoder is. */
struct decoder_position {
	bool has_header, has_end;
	uint64_t epoch_us;
	uint64_t nr_samples;
	uint32_t nr_frame_samples; /* in the frame so far */
};

/* The pairs of INFO, by number. */
struct decoder_pairs {
	struct info_pair *rows; /* owned */
	uint32_t nr, max;
};

/* What was sampled, and the slots that threads are in. */
struct decoder_threads {
	struct process_rows processes;
	uint32_t nr;
	size_t process_bytes; /* sum over the processes' names and command lines */
	struct slot_table slots;
};

/* The functions, paths and nodes since the last reset. */
struct decoder_tree {
	int32_t *first_lines; /* owned; by function */
	uint32_t nr_functions, max_functions;
	uint32_t nr_nodes;
	char **paths; /* owned, with their strings */
	uint32_t nr_paths, max_paths;
	size_t strings_bytes; /* of functions and paths */
};

/* Initialise ops, context, run and flags, the rest zero. */
struct recording_decoder {
	const struct recording_ops *ops; /* borrowed; NULL: items are only checked */
	void *context;
	struct stored_run *run; /* borrowed; receives the pairs of INFO; or NULL */
	uint32_t flags;		/* added to every sample's flags */

	struct decoder_position position;
	struct decoder_pairs pairs;
	struct decoder_threads threads;
	struct decoder_tree tree;

	char name[RECORDING_MAX_STRING_BYTES + 1]; /* strings of the last record */
	char value[RECORDING_MAX_STRING_BYTES + 1];
};

void recording_decoder_done(struct recording_decoder *decoder);

/* Returns the version in the content of a first frame; 0 if it is no recording. */
unsigned int recording_version(const uint8_t *content, size_t bytes);

/*
 * Decode the content of the next frame. Returns 0; the result of an ops call; -ENOMEM; -EBADMSG
 * if it breaks a rule, after which nothing can be decoded.
 */
int recording_decoder_decode(struct recording_decoder *decoder, const uint8_t *content,
			     size_t bytes);
