/* SPDX-License-Identifier: MIT */
/* What the parts of gecko.c share: its state, and JSON by the column. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/artefact.h"
#include "output/profile/origin.h"
#include "output/profile/thread_samples.h"
#include "output/text/json.h"
#include "output/text/string_table.h"
#include "output/text/text.h"

/* Categories have the numbers of origins; this is the one behind them. */
enum { GECKO_IDLE = NR_ORIGINS };

/* Decimals of nanoseconds told in these. */
enum { GECKO_MS = 6, GECKO_US = 3 };

/* What writing needs besides the profile. */
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
	struct string_table libraries;	  /* paths of modules of native functions */
	const struct thread_slice *slice; /* the thread being written */
	struct text text;
	int error; /* the first one, but for the stream's, which json has */
};

/* A column of a table: a value for each of its rows. */
struct gecko_column {
	const char *name;
	void (*value)(struct gecko_writer *writer, uint32_t row);
};

/* A member that is an array of as many values. */
void gecko_column(struct gecko_writer *writer, const struct gecko_column *column, uint32_t nr_rows);

/* Columns up to one without a name, and how long they are, in an object that has begun. */
void gecko_columns(struct gecko_writer *writer, const struct gecko_column *columns,
		   uint32_t nr_rows);

/* A member and its value; of _fixed nanoseconds as so many decimals of a larger unit. */
void gecko_string(struct gecko_writer *writer, const char *key, const char *value);
void gecko_u64(struct gecko_writer *writer, const char *key, uint64_t value);
void gecko_bool(struct gecko_writer *writer, const char *key, bool value);
void gecko_fixed(struct gecko_writer *writer, const char *key, uint64_t ns, unsigned decimals);

/* The number of a string in a table of them, as a value; it is borrowed until the end. */
void gecko_string_number(struct gecko_writer *writer, struct string_table *table,
			 const char *string);

/* The tables that all threads refer to, of the whole profile: the member "shared". */
void gecko_shared(struct gecko_writer *writer);

/* The threads, with their samples and markers: the member "threads". */
void gecko_threads(struct gecko_writer *writer);
