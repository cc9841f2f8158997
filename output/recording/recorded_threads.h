/* SPDX-License-Identifier: MIT */
/* The threads of a recording, in their state at its end, and its time range. */
#pragma once

#include <stdint.h>

#include "output/profile/profile.h"
#include "output/recording/recording.h"

/* Empty when all zero. Indices are those of the recording. */
struct recorded_threads {
	struct profile_thread *threads; /* owned; process is that of recording_processes() */
	uint32_t nr_threads, max_threads;
	uint64_t nr_samples;
	uint64_t first_ns, last_ns; /* of the samples, in CLOCK_REALTIME; 0 if there are none */
};

/*
 * Read them, from the beginning of the recording to its end or tear. Returns 0; -ENOMEM; the
 * file's error. Call recorded_threads_done() either way.
 */
int recorded_threads_read(struct recording *recording, struct recorded_threads *ret_threads);
void recorded_threads_done(struct recorded_threads *threads);
