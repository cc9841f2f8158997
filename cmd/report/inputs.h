/* SPDX-License-Identifier: MIT */
/* The recordings that a command reads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/recording/recording.h"
#include "procmem/core/spool.h"

struct input {
	const char *path; /* as it was given, borrowed; "-": stdin */
	int fd;
	struct spool spool; /* what fd is, of a stdin that cannot be read twice */
};

/* Some of them. */
struct inputs {
	struct input *list;	       /* owned */
	struct recording **recordings; /* owned, parallel */
	uint32_t nr;
};

/*
 * Open recordings, with a note for each that was not finished, unless quiet. False after an error
 * was printed; inputs_close() is to be called either way.
 */
bool inputs_open(struct inputs *inputs, const char *const *paths, uint32_t nr, bool quiet);
void inputs_close(struct inputs *inputs);

/* What to call one in a sentence. */
const char *input_name(const struct input *input);
