/* SPDX-License-Identifier: MIT */
/* A small profile with times and every kind of name, for tests of writers. */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "output/profile/profile.h"
#include "tests/support/processes.h"

#define NS_PER_US 1000ull

/* The functions in its stacks. */
enum {
	TIMED_MODULE, /* its name has an angle bracket */
	TIMED_FIB,
	TIMED_NASTY,  /* characters that formats must escape, bytes that are not UTF-8, no path */
	TIMED_MEMCPY, /* native */
	TIMED_GC,
	TIMED_EMPTY, /* no name */
	NR_TIMED_FUNCTIONS,
};

#define TIMED_NASTY_NAME "</script>;\"\\ \n\033[2J\xff\xf0\x9f\x90\x8d"

/* The threads of its samples. */
enum { TIMED_WORKER, TIMED_MAIN, NR_TIMED_THREADS };

struct timed_frame {
	uint32_t function;
	int32_t line;
};

struct timed_sample {
	uint32_t thread;
	uint64_t time_ns, wall_ns, cpu_ns;
	uint32_t flags;
	uint32_t nr_frames;
	struct timed_frame frames[4];
};

static inline uint32_t timed_node(struct profile *profile, uint32_t root, const uint32_t *functions,
				  const struct timed_sample *sample)
{
	uint32_t node = root;

	for (uint32_t i = 0; i < sample->nr_frames; i++)
		cr_assert(zero(int, profile_get_node(profile, node,
						     functions[sample->frames[i].function],
						     sample->frames[i].line, &node)));
	return node;
}

/* A profile of these samples. The worker is its first thread. */
static inline struct profile *timed_profile(const struct profile_options *options,
					    const struct timed_sample *samples, size_t nr)
{
	static const struct function functions[NR_TIMED_FUNCTIONS] = {
		[TIMED_MODULE] = {0, 1, "<module>", "app.py", FUNCTION_PYTHON},
		[TIMED_FIB] = {0, 10, "Math.fib", "lib/math.py", FUNCTION_PYTHON},
		[TIMED_NASTY] = {0, 0, TIMED_NASTY_NAME, "", FUNCTION_PYTHON},
		[TIMED_MEMCPY] = {0, 0, "memcpy", "/lib/libc.so.6", FUNCTION_NATIVE},
		[TIMED_GC] = {0, 0, SAMPLE_GC_NAME, "", FUNCTION_COLLECTOR},
		[TIMED_EMPTY] = {0, 7, "", "app.py", FUNCTION_PYTHON},
	};
	static const struct profile_thread threads[NR_TIMED_THREADS] = {
		[TIMED_WORKER] = {.tid = 4250, .name = "worker \"1\"\n"},
		[TIMED_MAIN] = {.tid = 4242, .name = "MainThread", .is_main = true},
	};
	struct profile *profile = profile_create(options);
	uint32_t index[NR_TIMED_FUNCTIONS];
	uint32_t rows[NR_TIMED_THREADS];
	uint32_t roots[NR_TIMED_THREADS];

	cr_assert(profile != NULL);
	cr_assert(zero(int, add_process(profile, 4242, "python3 app.py")));
	for (size_t i = 0; i < NR_TIMED_FUNCTIONS; i++)
		cr_assert(zero(int, profile_get_function(profile, &functions[i], &index[i])));
	for (size_t i = 0; i < NR_TIMED_THREADS; i++) {
		cr_assert(zero(int, profile_add_thread(profile, &threads[i], &rows[i])));
		cr_assert(zero(int, profile_root(profile, PROFILE_NONE, rows[i], &roots[i])));
	}
	for (size_t i = 0; i < nr; i++) {
		const struct timed_sample *sample = &samples[i];
		const struct profile_sample row = {
			.time_ns = sample->time_ns,
			.wall_ns = sample->wall_ns,
			.cpu_ns = sample->cpu_ns,
			.flags = sample->flags,
			.thread = rows[sample->thread],
			.node = timed_node(profile, roots[sample->thread], index, sample),
		};

		cr_assert(zero(int, profile_add(profile, PROFILE_SHOWN, &row)));
	}
	return profile;
}
