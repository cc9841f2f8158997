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

#include "output/profile/profile_mode.h"
#include "output/profile/profile_tree.h"
#include "sampler/sample.h"

/* A process that samples came of. Strings are owned by the profile. */
struct profile_process {
	pid_t pid;	    /* in the PID namespace it was sampled from; 0 if not known */
	char *command_line; /* as it has it, arguments separated by spaces; "" if not known */
};

struct profile_thread {
	uint32_t process; /* index into processes; PROFILE_NONE if none was added */
	pid_t tid;
	int64_t interpreter_id;
	bool is_main;
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
	bool keep_plumbing; /* frames of plumbing.h have nodes, too */
	bool keep_samples;  /* each of them, 48 bytes, not only their sums */
	bool keep_threads;  /* rows of threads, whatever the others say */
	uint32_t max_nodes; /* 0: PROFILE_MAX_NODES */
};

/* One sample whose stack is in the tree. */
struct profile_sample {
	uint64_t time_ns; /* of its source's clock: in recordings CLOCK_REALTIME */
	uint64_t wall_ns; /* as in struct sample */
	uint64_t cpu_ns;
	uint64_t weight_ns; /* of the profile's mode; set by profile_add() */
	uint32_t node;	    /* of its innermost frame; PROFILE_NONE if it has none and no root */
	uint32_t thread;    /* index into threads; PROFILE_NONE if it has no row */
	uint32_t flags;	    /* enum sample_flags */
};

/*
 * Whose weights: those of the samples themselves, or, in a comparison, those of the base that
 * they are compared with.
 */
enum profile_side { PROFILE_SELF, PROFILE_BASE, NR_PROFILE_SIDES };

struct profile_weight {
	uint64_t samples, ns;
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
 * Add a process; threads whose samples begin from now on are its own. The command line, NULL
 * if not known, is copied. 0 or -ENOMEM.
 */
int profile_add_process(struct profile *profile, pid_t pid, const char *command_line);

/*
 * The other way in, for samples whose stacks are known by their nodes. A function is found by
 * what it is (its id is not looked at); line is the executing one, which matters by_line only;
 * parent is PROFILE_NONE for outermost frames, which with by_thread belong below
 * profile_thread_root(). Of a thread a row is made, copied from thread; its *ret_thread is
 * PROFILE_NONE if rows are full, or not kept. A stack that has no place has the node that
 * profile_other_node() gives.
 *
 * 0; -ENOMEM; profile_get_function() and profile_get_node(): -E2BIG, there is no place.
 */
int profile_get_function(struct profile *profile, const struct function *function,
			 uint32_t *ret_function);
int profile_get_node(struct profile *profile, uint32_t parent, uint32_t function, int32_t line,
		     uint32_t *ret_node);
int profile_other_node(struct profile *profile, uint32_t *ret_node);
int profile_add_thread(struct profile *profile, const struct profile_thread *thread,
		       uint32_t *ret_thread);
int profile_thread_root(struct profile *profile, uint32_t thread, uint32_t *ret_node);
void profile_rename_thread(struct profile *profile, uint32_t thread, const char *name);

/* Count a sample, if the mode shows it. 0; -ENOMEM: it was not counted. */
int profile_add(struct profile *profile, enum profile_side side,
		const struct profile_sample *sample);

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
	uint64_t nr_in_jit;	  /* of those, in code of CPython's JIT */
	uint64_t wall_ns, cpu_ns; /* the weights of all samples */
	uint64_t nr_cpu_measured; /* so many have told their CPU time, be it 0 */
	uint64_t nr_approximate;  /* of those shown, with a stack that is approximate */
};

/* Everything about one side but its nodes. */
struct profile_sums {
	struct profile_account account;
	uint64_t time_ns;	   /* the weights of all samples shown */
	uint64_t nr_idle_samples;  /* of those shown have no frame in the tree */
	uint64_t idle_ns;	   /* their weights */
	uint64_t nr_other_samples; /* are counted as PROFILE_OTHER_STACKS */
};

/* The sums so far; borrowed. */
const struct profile_sums *profile_sums(const struct profile *profile, enum profile_side side);

enum profile_mode profile_mode(const struct profile *profile);

/* What it was created with; borrowed. */
const struct profile_options *profile_options(const struct profile *profile);

/* How many threads had samples. */
uint64_t profile_nr_threads(const struct profile *profile);

/*
 * The tables, each with its length; borrowed, valid until the next sample. Threads have rows with
 * by_thread, keep_samples or keep_threads only, samples are kept with keep_samples, those of
 * PROFILE_SELF, in the order that they came. The base's weights are parallel to the nodes, but may
 * be fewer: those missing are zero; a node's own are in it.
 */
const struct profile_function *profile_functions(const struct profile *profile, uint32_t *ret_nr);
const struct profile_frame *profile_frames(const struct profile *profile, uint32_t *ret_nr);
const struct profile_node *profile_nodes(const struct profile *profile, uint32_t *ret_nr);
const struct profile_weight *profile_base(const struct profile *profile, uint32_t *ret_nr);
const struct profile_process *profile_processes(const struct profile *profile, uint32_t *ret_nr);
const struct profile_thread *profile_threads(const struct profile *profile, uint32_t *ret_nr);
const struct profile_sample *profile_samples(const struct profile *profile, uint32_t *ret_nr);

/* The weight of a node on one side. */
struct profile_weight profile_weight(const struct profile *profile, enum profile_side side,
				     uint32_t node);

/* The weight of the samples without a frame in the tree that are no thread's root's. */
struct profile_weight profile_rootless_idle(const struct profile *profile, enum profile_side side);

/* Self and total time of one row; recursion counts once. */
struct profile_total {
	uint64_t self_ns;
	uint64_t total_ns;
};

/*
 * Self and total of every frame, indexed like profile_frames(); allocated
 * (free() it). 0 or -ENOMEM.
 */
int profile_totals(const struct profile *profile, enum profile_side side,
		   struct profile_total **ret_totals);
