/* SPDX-License-Identifier: MIT */
/*
 * The aggregate of many samples: functions, frames and the tree of stacks with
 * their weights. A sample sink; every writer reads this and nothing else.
 *
 * It copies what it keeps: it may outlive the sampler.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile_mode.h"
#include "sampler/sample.h"

#define PROFILE_NONE UINT32_MAX /* no parent, no line, no thread */

/* A function, by its id in the samples. */
struct profile_function {
	char *qualname;
	char *path;
};

/* A row of the profile: a function, or one line of it if rows are lines. */
struct profile_frame {
	uint32_t function; /* index into functions; PROFILE_NONE for a thread's root */
	int32_t line;	   /* executing line if rows are lines, else the function's first */
	uint32_t thread;   /* index into threads for a thread's root; PROFILE_NONE for the
			    one that threads without a row of their own share, and else */
};

/*
 * A node of the stack tree: a frame below its caller. Parents come before children.
 *
 * A sample without a Python frame has no node, except that with by_thread it
 * counts as the self of its thread's root.
 */
struct profile_node {
	uint32_t parent; /* PROFILE_NONE for outermost frames */
	uint32_t frame;
	uint64_t self_samples; /* samples whose innermost frame this is */
	uint64_t self_ns;      /* their weights, of the profile's mode */
};

struct profile_thread {
	pid_t tid;
	int64_t interpreter_id;
	char name[THREAD_NAME_MAX_BYTES]; /* the last one that it was known by */
};

/*
 * What a profile holds at most, however long it runs: so many nodes take 200 MB with their
 * rows and tables, and programs that recurse in many ways had a hundredth of it. A sample
 * whose stack has no place counts as a stack of PROFILE_OTHER_STACKS alone. With by_thread so
 * many threads have a root of their own, 10 MB; those that come later share one.
 */
#define PROFILE_MAX_NODES    (1u << 22)
#define PROFILE_MAX_THREADS  (1u << 16)
#define PROFILE_OTHER_STACKS "[other stacks]"

struct profile_options {
	enum profile_mode mode;
	bool by_line;	    /* a row per line instead of a row per function */
	bool by_thread;	    /* a root frame per thread */
	uint32_t max_nodes; /* 0: PROFILE_MAX_NODES */
};

struct profile; /* a struct sample_sink */

/*
 * An empty profile; options are copied. NULL if out of memory. profile_destroy()
 * accepts NULL.
 */
struct profile *profile_create(const struct profile_options *options);
void profile_destroy(struct profile *profile);

/*
 * The sink to hand to a sampler; borrowed from profile. Its sample() returns 0, or
 * -ENOMEM when the sample was not added; the profile stays usable either way.
 *
 * It relies on the ids and slots of one sampler. Memory grows with the distinct functions,
 * rows and stacks, up to the limits above, and with the threads that there are at once.
 */
struct sample_sink *profile_sink(struct profile *profile);

/*
 * What follows is another sampler's, whose ids mean other functions and threads: of the
 * same process after an exec. Functions of the same name and path are the same, and so
 * is a main thread that is called as it was.
 */
void profile_change_sampler(struct profile *profile);

/* What was taken in, whether the mode shows it or not. */
struct profile_account {
	uint64_t nr_samples;
	uint64_t nr_shown;	  /* by the mode */
	uint64_t wall_ns, cpu_ns; /* the weights of all samples */
	uint64_t nr_cpu_measured; /* so many have told their CPU time, be it 0 */
};

/* The accounts so far; borrowed. */
const struct profile_account *profile_account(const struct profile *profile);

enum profile_mode profile_mode(const struct profile *profile);

/* How many of the samples shown had no Python frame. */
uint64_t profile_nr_idle_samples(const struct profile *profile);

/* How many are counted as PROFILE_OTHER_STACKS. */
uint64_t profile_nr_other_samples(const struct profile *profile);

/* How many threads had samples. */
uint64_t profile_nr_threads(const struct profile *profile);

/*
 * The time that all samples shown stand for, the sum of their weights, and of that the idle
 * ones'.
 */
uint64_t profile_time_ns(const struct profile *profile);
uint64_t profile_idle_ns(const struct profile *profile);

/*
 * The tables, each with its length; borrowed, valid until the next sample. Threads have rows
 * with by_thread only.
 */
const struct profile_function *profile_functions(const struct profile *profile, uint32_t *ret_nr);
const struct profile_frame *profile_frames(const struct profile *profile, uint32_t *ret_nr);
const struct profile_node *profile_nodes(const struct profile *profile, uint32_t *ret_nr);
const struct profile_thread *profile_threads(const struct profile *profile, uint32_t *ret_nr);

/* Self and total time of one row; recursion counts once. */
struct profile_total {
	uint64_t self_ns;
	uint64_t total_ns;
};

/*
 * Self and total of every frame, indexed like profile_frames(); allocated
 * (free() it). 0 or -ENOMEM.
 */
int profile_totals(const struct profile *profile, struct profile_total **ret_totals);
