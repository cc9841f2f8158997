/* SPDX-License-Identifier: MIT */
/* How much of a recording is of each process. */
#pragma once

#include <stdint.h>

#include "output/recording/recording.h"

struct process_amounts {
	uint32_t nr_threads;
	uint64_t nr_samples;
	uint64_t wall_ns, cpu_ns; /* the weights of its samples */
};

/*
 * Read the recording once and sum up its processes: *ret_amounts is parallel to
 * recording_processes() and freed by the caller. Returns 0; -ENOMEM; -ESTALE if the file has
 * changed; the file's error.
 */
int process_amounts_read(struct recording *recording, struct process_amounts **ret_amounts);
