/* SPDX-License-Identifier: MIT */
/* The recordings that a command reads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/recording/recording.h"
#include "procmem/temp_file.h"

struct input {
	const char *path; /* borrowed, as given; "-": stdin */
	int fd;
	struct temp_file temp_file; /* the file of fd, if path is a pipe */
};

/* Several recordings. */
struct inputs {
	struct input *list;	       /* owned */
	struct recording **recordings; /* owned; parallel to list */
	uint32_t nr;
};

/*
 * Open recordings, and print a note for each unfinished one unless quiet. Returns false after
 * printing an error. inputs_close() must follow in any case.
 */
bool inputs_open(struct inputs *inputs, const char *const *paths, uint32_t nr, bool quiet);
void inputs_close(struct inputs *inputs);

/* Returns the name of an input for messages. */
const char *input_name(const struct input *input);
