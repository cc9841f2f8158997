/* SPDX-License-Identifier: MIT */
/*
 * Whether the numbers of a build can be true: by themselves, and by the interpreter
 * that they are said to be of.
 */
#pragma once

#include "sampler/cpython/layout/offsets.h"

/* Whether each used field is aligned, and inside of its struct and our buffers. */
bool build_consistent(const struct py_build *build);

/* What a look at the interpreter says of a build. */
enum build_live {
	BUILD_LIVE_UNKNOWN,	/* there is no interpreter or thread to look at (yet) */
	BUILD_LIVE_CONTRADICTS, /* a list does not lead where it must */
	BUILD_LIVE_FOREIGN, /* threads are their interpreters', but no frame has a code object */
	BUILD_LIVE_FITS,    /* threads are their interpreters'; there may be no frame */
	BUILD_LIVE_PROVEN,  /* and one has a stack, and a frame with a named code object */
};

/*
 * Follow the runtime to its newest interpreter, that to its newest threads, and one of these to one
 * of its frames and its code object, told by the names of types or, where those are not in the
 * memory (a core file's), by their flags. The build is consistent. Lists change while they are
 * followed: what contradicts is looked at again, twice and at once. What was seen in one try (that
 * a thread fits, a code object) holds for all. Takes a bounded number of reads.
 */
enum build_live build_check_live(struct remote_memory *memory, remote_addr runtime_addr,
				 const struct py_build *build);

/*
 * The same of a build that is refused if it is contradicted, though by its version and its
 * own numbers it is right: what contradicts is looked at up to ten times, with pauses of
 * a millisecond, and is BUILD_LIVE_FITS if ever a thread was found to fit: threads that
 * come and go are no reason for a refusal.
 */
enum build_live build_check_known(struct remote_memory *memory, remote_addr runtime_addr,
				  const struct py_build *build);

/* The address of a code object that build_check_live() finds to be whole; 0 if it finds none. */
remote_addr build_find_code(struct remote_memory *memory, remote_addr runtime_addr,
			    const struct py_build *build);

/*
 * As build_check_live(), of a build of which only the runtime's, interpreters', threads' and
 * chunks' fields are known: BUILD_LIVE_PROVEN if a thread has an id and a data stack.
 */
enum build_live build_check_threads(struct remote_memory *memory, remote_addr runtime_addr,
				    const struct py_build *build);

/*
 * Set next_code_version by the interpreter, if there is one: nothing tells it, and debug
 * builds have it elsewhere than release builds. The u64 before func_state is
 * dtoa.preallocated_next, which points into the array of 288 doubles before itself. Where
 * that holds for no place or for several, the field is absent.
 *
 * Source: CPython 3.13–3.15 Include/internal/pycore_interp.h, pycore_dtoa.h.
 */
void build_find_code_version(struct remote_memory *memory, remote_addr runtime_addr,
			     struct py_build *build);
