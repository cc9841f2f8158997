/* SPDX-License-Identifier: MIT */
/*
 * Who the threads of a core file are. The interpreter knows a thread by its pthread_t, which
 * on Linux is its thread pointer, and the core file has the id that belongs to that. (What the
 * interpreter says itself of ids is of the process's own namespace, and missing before 3.11.)
 */
#pragma once

#include "procmem/core/core.h"
#include "sampler/sample.h"

struct core_thread_index;

/* A sink that tells the next one of the threads what the core file tells of them. */
struct core_threads {
	struct sample_sink sink;
	struct sample_sink *next; /* borrowed, as is: */
	struct core *core;
	struct core_thread_index *index; /* by rising thread pointer; owned */
	size_t nr_python;		 /* threads of the core that run Python */
	size_t nr_broken;		 /* stacks that could not be followed to the bottom */
	size_t nr_bridged;		 /* stacks with links that are missing */
	size_t nr_gapped;		 /* stacks with frames that are missing, or parts of them */
	size_t nr_without_stack;	 /* whose C stack is not in the core */
	size_t nr_astray;		 /* whose stack pointer leads to no stack */
	size_t nr_samples;
	int list_err; /* of sampler_list_error(), set by the caller */
};

/*
 * Hand samples on to next with their tid, and whether it is the main one, crashed, and
 * lacks its C stack. core and next are borrowed until core_threads_done(), which accepts
 * one that is zero. 0 or -ENOMEM.
 */
int core_threads_init(struct core_threads *threads, struct core *core, struct sample_sink *next);
void core_threads_done(struct core_threads *threads);

/* The thread of the core with that ident, borrowed from the core; NULL: there is none. */
const struct core_thread *core_threads_find(const struct core_threads *threads, uint64_t ident);

/* What is known of the core's thread of that index by itself: SAMPLE_CRASHED, or 0. */
uint32_t core_thread_flags(const struct core *core, size_t index);
