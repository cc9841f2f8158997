/* SPDX-License-Identifier: MIT */
/*
 * What a live view shows: the sums of all samples since the start or the last reset, the sums of
 * the recent ones, and the threads with their states. It is a sample sink.
 *
 * Both sums are one profile with two sides: PROFILE_SHOWN has all samples, PROFILE_BASE those of
 * the last LIVE_WINDOW_NS. Recent samples are kept until they leave the window, and are then taken
 * back, so each counts fully until it is that old, and figures do not jump.
 *
 * Memory is bounded however long it runs: LIVE_MAX_NODES nodes, LIVE_MAX_RECENT recent samples,
 * one entry for each simultaneous thread, and PROFILE_MAX_PROCESSES processes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/profile.h"
#include "sampler/sample.h"

/* The sides of the profile. */
#define LIVE_ALL    PROFILE_SHOWN
#define LIVE_RECENT PROFILE_BASE

/* The recent time. At a low rate it is LIVE_WINDOW_TICKS ticks. */
#define LIVE_WINDOW_NS ((uint64_t)5 * NS_PER_S)
enum { LIVE_WINDOW_TICKS = 5 };

/*
 * Each node takes some 100 bytes, and a refresh some 50 ns. Stacks beyond count as
 * PROFILE_OTHER_STACKS until the next reset.
 */
enum { LIVE_MAX_NODES = 1 << 17 };

/* 12 MB: five seconds of 500 threads at 100 Hz. Of more, the oldest leave the window earlier. */
enum { LIVE_MAX_RECENT = 1 << 18 };

/* What a thread does, by the flags of a sample. */
enum live_state {
	LIVE_HOLDS_GIL,
	LIVE_WAITS_FOR_GIL,
	LIVE_RUNS, /* neither, but on a CPU or ready to run: it runs C code, or there is no GIL */
	LIVE_WAITS,
	NR_LIVE_STATES,
};

enum live_state live_state_of(uint32_t flags);

/* One word, as in the screens and in JSON; stable. */
const char *live_state_name(enum live_state state);

/* A thread that has recent samples. */
struct live_thread {
	bool is_used;
	struct sample_thread thread;
	uint32_t flags, node; /* of its last sample; PROFILE_NONE: it has no frames */
	uint32_t nr_recent;
	uint64_t state_ns[NR_LIVE_STATES]; /* recent wall time in each state */
	uint64_t gc_ns;			   /* recent wall time in the garbage collector */
};

/* A process; its index is that of its threads. */
struct live_process {
	pid_t pid;  /* 0: there is none */
	char *name; /* owned; not escaped */
};

struct live; /* a struct sample_sink */

struct live_options {
	enum profile_mode mode;
	bool keep_plumbing;
	uint64_t interval_ns; /* between two ticks */
};

/* Create an empty aggregate. Returns NULL if out of memory. live_destroy() accepts NULL. */
struct live *live_create(const struct live_options *options);
void live_destroy(struct live *live);

/* Returns the sink, borrowed. Its sample() returns 0 or -ENOMEM. */
struct sample_sink *live_sink(struct live *live);

/*
 * A process has this index from now on; the name is copied. An index beyond PROFILE_MAX_PROCESSES
 * is ignored. Returns 0 or -ENOMEM.
 */
int live_set_process(struct live *live, uint32_t index, const struct process_info *info);

/* Let samples leave the window: it is now_ns. */
void live_advance(struct live *live, uint64_t now_ns);

/* Forget all samples, and count in another mode from now on. Returns 0, or -ENOMEM unchanged. */
int live_reset(struct live *live, enum profile_mode mode);

/* Returns the sums; borrowed until the next sample or reset. */
const struct profile *live_profile(const struct live *live);

/* Returns how much of the window has passed since the first sample; 0 without any. */
uint64_t live_recent_ns(const struct live *live);

/* Returns the threads by slot; unused slots are among them. Borrowed until the next sample. */
const struct live_thread *live_threads(const struct live *live, uint32_t *ret_nr);

/* Returns one more than the highest index of a process. */
uint32_t live_nr_processes(const struct live *live);

/* Returns a process; NULL if it is unknown. Borrowed until it changes. */
const struct live_process *live_process(const struct live *live, uint32_t index);

/* What the threads did recently, all together. */
struct live_summary {
	uint32_t nr_threads, nr_processes;
	uint32_t nr_idle; /* of the threads, by their last samples */
	/* Parts of the recent time; of several interpreters and threads they add up. */
	double gil_share, gil_wait_share, gc_share;
};

void live_summarize(const struct live *live, struct live_summary *ret_summary);

/* Returns the part of a whole; 0 of nothing. */
static inline double live_share(uint64_t part_ns, uint64_t whole_ns)
{
	return whole_ns ? (double)part_ns / (double)whole_ns : 0;
}
