/* SPDX-License-Identifier: MIT */
/* What the parts of gecko.c share: the writer's state, and JSON by columns. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/artefact.h"
#include "output/profile/origin.h"
#include "output/profile/thread_samples.h"
#include "output/text/json.h"
#include "output/text/string_table.h"
#include "output/text/text.h"

/* The category of samples without frames, after those of the origins. */
enum { GECKO_IDLE = NR_ORIGINS };

/* Decimals to write nanoseconds with, as milliseconds or microseconds. */
enum { GECKO_MS = 6, GECKO_US = 3 };

/* State of the writer. */
struct gecko_writer {
	struct json json;
	const struct profile *profile;
	struct thread_samples samples;
	const struct profile_function *functions;
	const struct profile_frame *frames;
	const struct profile_node *nodes;
	const struct profile_sample *rows;
	uint32_t nr_functions, nr_frames, nr_nodes;
	struct string_table strings;
	struct string_table sources;	  /* paths of files */
	struct string_table libraries;	  /* paths of native functions' modules */
	const struct thread_slice *slice; /* the thread being written */
	struct text text;
	int error; /* the first one, except the stream's, which is in json */
};

/* A column of a table: one value a row. */
struct gecko_column {
	const char *name;
	void (*value)(struct gecko_writer *writer, uint32_t row);
};

/* Write a member that is an array of nr_rows values. */
void gecko_column(struct gecko_writer *writer, const struct gecko_column *column, uint32_t nr_rows);

/* Write columns, up to one without a name, and their length into an open object. */
void gecko_columns(struct gecko_writer *writer, const struct gecko_column *columns,
		   uint32_t nr_rows);

/* Write a member. gecko_fixed() writes nanoseconds in a larger unit, with that many decimals. */
void gecko_string(struct gecko_writer *writer, const char *key, const char *value);
void gecko_u64(struct gecko_writer *writer, const char *key, uint64_t value);
void gecko_bool(struct gecko_writer *writer, const char *key, bool value);
void gecko_fixed(struct gecko_writer *writer, const char *key, uint64_t ns, unsigned decimals);

/*
 * Write the number of a string in a table of strings, which it is added to. The string is
 * borrowed until the end.
 */
void gecko_string_number(struct gecko_writer *writer, struct string_table *table,
			 const char *string);

/* Write the member "shared": the tables that all threads refer to. */
void gecko_shared(struct gecko_writer *writer);

/* Write the member "threads": the threads with their samples and markers. */
void gecko_threads(struct gecko_writer *writer);
