/* SPDX-License-Identifier: MIT */
/*
 * A profile: the sum of many samples, as functions, frames and a weighted tree of stacks. It is a
 * sample sink, and all that the writers read. It copies what it keeps and may outlive the
 * sampler.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/processes.h"
#include "output/profile/profile_mode.h"
#include "output/profile/profile_tree.h"
#include "sampler/sample.h"

struct profile_thread {
	uint32_t process; /* index into processes; PROFILE_NONE if it was not added */
	pid_t tid;
	int64_t interpreter_id;
	bool is_main;
	char name[THREAD_NAME_MAX_BYTES]; /* its last known name */
};

/*
 * Limits of a profile, however long it runs. The nodes take at most 200 MB with their rows and
 * tables; programs with varied recursion have needed a hundredth of that. A sample whose stack
 * does not fit counts as the single frame PROFILE_OTHER_STACKS. With by_thread, at most
 * PROFILE_MAX_THREADS threads have a root of their own (10 MB); later ones share one, which is
 * outermost. Processes beyond PROFILE_MAX_PROCESSES have no row, and with by_process share a root.
 */
#define PROFILE_MAX_NODES     (1u << 22)
#define PROFILE_MAX_THREADS   (1u << 16)
#define PROFILE_MAX_PROCESSES (1u << 16)
#define PROFILE_OTHER_STACKS  "[other stacks]"

struct profile_options {
	enum profile_mode mode;
	bool by_line;	    /* a row per line instead of a row per function */
	bool by_thread;	    /* a root frame per thread */
	bool by_process;    /* a root frame per process, above those of its threads */
	bool merges_names;  /* with by_process: processes of equal names share a root */
	bool keep_plumbing; /* give the frames of plumbing.h nodes */
	bool keep_samples;  /* keep each sample, 48 bytes, besides the sums */
	bool keep_threads;  /* keep rows of threads, whatever the other options are */
	bool has_base;	    /* there will be samples of PROFILE_BASE */
	bool counts_idle;   /* the account has what PROFILE_BUSY would hide, which is shown */
	uint32_t max_nodes; /* 0: PROFILE_MAX_NODES */
};

/* One sample whose stack is in the tree. */
struct profile_sample {
	uint64_t time_ns; /* in its source's clock; CLOCK_REALTIME in recordings */
	uint64_t wall_ns; /* as in struct sample */
	uint64_t cpu_ns;
	uint64_t weight_ns; /* in the profile's mode; set by profile_add() */
	uint32_t node;	    /* innermost frame, else the root; PROFILE_NONE if it has neither */
	uint32_t thread;    /* index into threads; PROFILE_NONE if it has no row */
	uint32_t flags;	    /* enum sample_flags */
};

/*
 * Whose weights: those of the samples, or in a comparison those of the base they are compared
 * with.
 */
enum profile_side { PROFILE_SHOWN, PROFILE_BASE, NR_PROFILE_SIDES };

struct profile_weight {
	uint64_t samples, ns;
};

struct profile; /* a struct sample_sink */

/*
 * Create an empty profile; options are copied. Returns NULL if out of memory. profile_destroy()
 * accepts NULL.
 */
struct profile *profile_create(const struct profile_options *options);
void profile_destroy(struct profile *profile);

/*
 * Returns the sink for a sampler, borrowed from profile. Its sample() returns 0, or -ENOMEM
 * if the sample was not added; the profile stays usable either way.
 *
 * The sink relies on ids and slots, so samplers that feed it share them (sampler/sample_ids.h). A
 * main thread that continues after an exec, which is of the same process, id and name, keeps its
 * row. Memory grows with the distinct functions, rows and stacks, up to the limits above, and with
 * the number of simultaneous threads.
 */
struct sample_sink *profile_sink(struct profile *profile);

/*
 * Add a process, at any time before the first sample of its threads, whose process is then
 * *ret_process; PROFILE_NONE if there is no room. info is copied. Returns 0 or -ENOMEM.
 */
int profile_add_process(struct profile *profile, const struct process_info *info,
			uint32_t *ret_process);

/*
 * Find a process that the profile has from another recording (struct process_index), or add it.
 * The rest is as with profile_add_process().
 */
int profile_get_process(struct profile *profile, const struct profile_process *process,
			uint32_t *ret_process);

/*
 * Returns the process whose root a process uses: itself or, with merges_names, the first one of
 * an equal name; PROFILE_NONE for PROFILE_NONE.
 */
uint32_t profile_process_owner(const struct profile *profile, uint32_t process);

/* A process ended at end_ns, in the clock of the samples. PROFILE_NONE is ignored. */
void profile_end_process(struct profile *profile, uint32_t process, uint64_t end_ns);

/*
 * The other way in, for samples whose stacks are known as nodes. A function is found by name,
 * path, line and kind; its id is ignored. line is the executing line and only matters with
 * by_line. parent is profile_root() for outermost frames: PROFILE_NONE without by_thread and
 * by_process. It is the root of a process and of one of its threads, which has a row or not.
 * profile_add_thread() copies thread into a new row; *ret_thread is
 * PROFILE_NONE if the table is full or threads are not kept. A stack that does not fit gets the
 * node of profile_other_node().
 *
 * Each returns 0 or -ENOMEM; profile_get_function() and profile_get_node() also -E2BIG if the
 * tree is full.
 */
int profile_get_function(struct profile *profile, const struct function *function,
			 uint32_t *ret_function);
int profile_get_node(struct profile *profile, uint32_t parent, uint32_t function, int32_t line,
		     uint32_t *ret_node);
int profile_other_node(struct profile *profile, uint32_t *ret_node);
int profile_add_thread(struct profile *profile, const struct profile_thread *thread,
		       uint32_t *ret_thread);
int profile_root(struct profile *profile, uint32_t process, uint32_t thread, uint32_t *ret_node);

/* Count a sample, if the mode shows it. Returns 0, or -ENOMEM if it was not counted. */
int profile_add(struct profile *profile, enum profile_side side,
		const struct profile_sample *sample);

/*
 * The sink in two steps: find the node of a sample and the row of its thread, as for profile_add(),
 * whether the mode shows the sample or not. Nothing is counted. Returns 0 or -ENOMEM.
 */
int profile_place(struct profile *profile, const struct sample *sample,
		  struct profile_sample *ret_placed);

/* Take a sample back that profile_add() has counted for PROFILE_BASE. */
void profile_remove_base(struct profile *profile, const struct profile_sample *sample);

/* Count a thread that has samples of nr_idle, once. */
void profile_add_idle_thread(struct profile *profile, enum profile_side side);

/* Totals of the samples received, shown by the mode or not. */
struct profile_account {
	uint64_t nr_samples;
	uint64_t nr_shown;	  /* shown by the mode */
	uint64_t nr_in_jit;	  /* of those, in code of CPython's JIT */
	uint64_t wall_ns, cpu_ns; /* the weights of all samples */
	uint64_t nr_cpu_measured; /* samples with a measured CPU time, even if it is 0 */
	uint64_t nr_approximate;  /* of those shown, with an approximate stack */
	/* Hidden by PROFILE_BUSY, or with counts_idle: */
	uint64_t nr_idle;	  /* samples of threads that wait */
	uint64_t idle_ns;	  /* their wall_ns */
	uint64_t nr_idle_threads; /* threads with such samples */
};

/* Whether there is nothing to write: no sample is shown, and none is hidden because it waits. */
static inline bool profile_account_is_empty(const struct profile_account *account)
{
	return !account->nr_shown && !account->nr_idle;
}

/* Add the totals of other samples. */
void profile_account_add(struct profile_account *sum, const struct profile_account *account);

/* Everything about one side but its nodes. */
struct profile_sums {
	struct profile_account account;
	uint64_t time_ns;	   /* weight of all samples shown */
	uint64_t nr_frameless;	   /* samples shown without a frame in the tree */
	uint64_t frameless_ns;	   /* their weights */
	uint64_t nr_other_samples; /* samples shown that count as PROFILE_OTHER_STACKS */
};

/*
 * Count a sample of a mode in the account and, if is_shown, its weight_ns. has_frames: it has a
 * node that is not a root. The caller counts nr_other_samples and nr_idle_threads.
 */
void profile_sums_add(struct profile_sums *sums, enum profile_mode mode,
		      const struct profile_sample *sample, bool is_shown, bool has_frames);

/* Returns the sums so far; borrowed. */
const struct profile_sums *profile_sums(const struct profile *profile, enum profile_side side);

enum profile_mode profile_mode(const struct profile *profile);

/* Returns the options it was created with; borrowed. */
const struct profile_options *profile_options(const struct profile *profile);

/* Returns how many threads had samples. */
uint64_t profile_nr_threads(const struct profile *profile);

/*
 * The tables, each with its length; borrowed, valid until the next sample. Threads have rows with
 * by_thread, keep_samples or keep_threads only. Samples are kept with keep_samples only, those of
 * PROFILE_SHOWN in order of arrival. profile_base() holds the base's self weights by node; it may
 * be shorter than the nodes, and missing entries are zero.
 */
const struct profile_function *profile_functions(const struct profile *profile, uint32_t *ret_nr);
const struct profile_frame *profile_frames(const struct profile *profile, uint32_t *ret_nr);
const struct profile_node *profile_nodes(const struct profile *profile, uint32_t *ret_nr);
const struct profile_weight *profile_base(const struct profile *profile, uint32_t *ret_nr);
const struct profile_process *profile_processes(const struct profile *profile, uint32_t *ret_nr);
const struct profile_thread *profile_threads(const struct profile *profile, uint32_t *ret_nr);
const struct profile_sample *profile_samples(const struct profile *profile, uint32_t *ret_nr);

/* Returns the self weight of a node on one side. */
struct profile_weight profile_weight(const struct profile *profile, enum profile_side side,
				     uint32_t node);

/* Returns the weight of samples that have neither a frame in the tree nor a thread's root. */
struct profile_weight profile_rootless_idle(const struct profile *profile, enum profile_side side);

/* Self and total time of one row; a recursive frame counts once per stack. */
struct profile_total {
	uint64_t self_ns;
	uint64_t total_ns;
	uint64_t total_samples; /* may be the first of their threads, which have no time */
};

/*
 * Compute self and total of every frame, indexed like profile_frames(). The caller frees
 * *ret_totals. Returns 0 or -ENOMEM.
 */
int profile_totals(const struct profile *profile, enum profile_side side,
		   struct profile_total **ret_totals);

/* The same of every function, whichever of its lines are frames, indexed like profile_functions(). */
int profile_function_totals(const struct profile *profile, enum profile_side side,
			    struct profile_total **ret_totals);
