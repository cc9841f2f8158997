/* SPDX-License-Identifier: MIT */
/*
 * Random samples, reproducible by seed, and what a recording of them must contain. The
 * expectation is derived from the samples alone, by the rules of docs/formats.md.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/recording/recorder.h"

enum { RANDOM_FUNCTIONS = 40, RANDOM_THREADS = 6, RANDOM_MAX_DEPTH = 12 };

/* The id of the first process; each further one has the next. */
enum { RANDOM_FIRST_PID = 7 };

struct random_options {
	uint64_t seed;
	uint32_t nr_ticks;
	double rate_hz;	   /* 0: as fast as possible */
	bool measures_cpu; /* some samples have CPU weights */
	bool is_wild;	   /* odd weights, times that go backwards, threads that come and go */
};

/* A sample as a reader must return it. */
struct expected_sample {
	uint64_t time_us; /* on the clock of the ticks */
	uint64_t wall_us, cpu_us;
	uint32_t thread; /* numbered in order of appearance */
	uint32_t flags;
	uint32_t nr_frames;
	struct frame frames[RANDOM_MAX_DEPTH];
};

/* A thread in its slot. */
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
	uint32_t last_process;	  /* the first was added before */
	uint64_t now_ns, tick_ns; /* current time; time of the last tick */
	uint64_t unit_us;
	struct expected_sample *expected; /* owned */
	uint32_t nr_expected, max_expected;
	char (*thread_names)[THREAD_NAME_MAX_BYTES]; /* owned; the last of each, by number */
	uint32_t *thread_processes;		     /* owned; by number */
};

void random_samples_init(struct random_samples *samples, const struct random_options *options);
void random_samples_done(struct random_samples *samples);

/* The description of the run for the recorder. */
struct run random_samples_run(const struct random_samples *samples);

/*
 * Pass all samples to a recorder, which has one process, of RANDOM_FIRST_PID, and add others. Returns 0 or the first
 * error.
 */
int random_samples_play(struct random_samples *samples, struct recorder *recorder);
