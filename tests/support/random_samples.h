/* SPDX-License-Identifier: MIT */
/*
 * Samples as no program has them, each run of them told by its seed, and what a recording of
 * them has to say: worked out here from the samples alone, in the words of docs/formats.md.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/recording/recorder.h"

enum { RANDOM_FUNCTIONS = 40, RANDOM_THREADS = 6, RANDOM_MAX_DEPTH = 12 };

struct random_options {
	uint64_t seed;
	uint32_t nr_ticks;
	double rate_hz;	   /* 0: as fast as can be */
	bool measures_cpu; /* some samples have CPU weights */
	bool is_wild;	   /* odd weights, times that go back, threads that come and go */
};

/* A sample as it has to be read. */
struct expected_sample {
	uint64_t time_us; /* of the ticks' clock */
	uint64_t wall_us, cpu_us;
	uint32_t thread; /* counted as they began */
	uint32_t flags;
	uint32_t nr_frames;
	struct frame frames[RANDOM_MAX_DEPTH];
};

/* A thread that plays, in its slot. */
struct random_thread {
	struct sample_thread info;
	uint32_t number; /* as in struct expected_sample */
	bool has_last;
	uint64_t last_ns, last_us, wall_rest_ns;
	int64_t cpu_rest_ns;
	uint32_t nr_frames;
	struct frame frames[RANDOM_MAX_DEPTH];
};

struct random_samples {
	struct random_options options;
	uint64_t random;
	struct function functions[RANDOM_FUNCTIONS];
	char names[RANDOM_FUNCTIONS][16];
	struct random_thread threads[RANDOM_THREADS];
	uint32_t nr_begun, next_id;
	uint64_t now_ns, tick_ns; /* what time is, and that of the last tick */
	uint64_t unit_us;
	struct expected_sample *expected; /* owned */
	uint32_t nr_expected, max_expected;
	char (*thread_names)[THREAD_NAME_MAX_BYTES]; /* owned; the last of each, by number */
};

void random_samples_init(struct random_samples *samples, const struct random_options *options);
void random_samples_done(struct random_samples *samples);

/* What a recorder of them is to be told of the run. */
struct run random_samples_run(const struct random_samples *samples);

/* Hand all of them to a recorder. 0 or the first error. */
int random_samples_play(struct random_samples *samples, struct recorder *recorder);
