/* SPDX-License-Identifier: MIT */
/*
 * Identifies the threads of a core file. The interpreter knows a thread by its pthread_t, which
 * on Linux is its thread pointer; the core file has the thread id that belongs to it. (The ids
 * that the interpreter keeps are those of the process's own namespace, and are missing before
 * 3.11.)
 */
#pragma once

#include "procmem/core/core.h"
#include "sampler/sample.h"

struct core_thread_index;

/* A sink that adds to samples what the core file knows of their threads. */
struct core_threads {
	struct sample_sink sink;
	struct sample_sink *next; /* borrowed, as is core */
	struct core *core;
	struct core_thread_index *index; /* sorted by thread pointer; owned */
	size_t nr_python;		 /* threads of the core that run Python */
	size_t nr_incomplete;		 /* stacks that could not be followed to the bottom */
	size_t nr_bridged;		 /* stacks that lack links between frames */
	size_t nr_with_gaps;	 /* stacks with frames that are missing, wholly or in part */
	size_t nr_without_stack; /* threads whose C stack is not in the core */
	size_t nr_astray;	 /* threads whose stack pointer leads to no stack */
	size_t nr_samples;
	int list_err; /* result of sampler_list_error(), set by the caller */
};

/*
 * Emit samples to next with their tid, and with whether the thread is the main one, crashed,
 * or lacks its C stack. core and next are borrowed until core_threads_done(), which accepts a
 * zeroed struct. Returns 0 or -ENOMEM.
 */
int core_threads_init(struct core_threads *threads, struct core *core, struct sample_sink *next);
void core_threads_done(struct core_threads *threads);

/* Returns the core's thread with that ident, borrowed from the core; NULL if there is none. */
const struct core_thread *core_threads_find(const struct core_threads *threads, uint64_t ident);

/* Returns the sample flags of the core's thread at index: SAMPLE_CRASHED or 0. */
uint32_t core_thread_flags(const struct core *core, size_t index);
