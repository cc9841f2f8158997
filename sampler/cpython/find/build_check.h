/* SPDX-License-Identifier: MIT */
/*
 * Checks the numbers of a build, by themselves and against the interpreter that they are meant to
 * describe.
 */
#pragma once

#include "sampler/cpython/layout/offsets.h"

/* Whether each field used is aligned and inside both its struct and our buffers. */
bool build_consistent(const struct py_build *build);

/* What the interpreter shows about a build. */
enum build_live {
	BUILD_LIVE_UNKNOWN,	/* there is no interpreter or thread to check (yet) */
	BUILD_LIVE_CONTRADICTS, /* a list does not lead where it must */
	BUILD_LIVE_NO_CODE,	/* threads name their interpreter, but no frame has a code object */
	BUILD_LIVE_UNPROVEN,	/* the same, but no frame, or stack, is as it must be */
	BUILD_LIVE_FITS,	/* threads name their interpreter; none has a frame */
	BUILD_LIVE_PROVEN,	/* FITS, with a stack and a frame with a named code object */
};

/*
 * Follow the lists from the runtime to its newest interpreters and their newest threads, and from
 * these to their frames and a code object. Types are recognised by name or, if the memory lacks the
 * names (a core file), by their flags. The build must be consistent.
 *
 * Lists change while they are followed. Unless a try proves the build or finds nothing to check, it
 * is repeated at once, up to three times in all. A thread that fits, or a code object, needs to be
 * found in one try only. The number of reads is bounded.
 */
enum build_live build_check_live(struct remote_memory *memory, remote_addr runtime_addr,
				 const struct py_build *build);

/*
 * The same for a build that is right by its version and its own numbers, so that only a certain
 * contradiction may refuse it. The check is repeated up to ten times, the last seven after a pause
 * of 1 ms. If the lists contradict the build to the end but a thread fitted in any try, the answer
 * is that of the other tries: threads that come and go are no reason for a refusal.
 */
enum build_live build_check_repeatedly(struct remote_memory *memory, remote_addr runtime_addr,
				       const struct py_build *build);

/* The address of a code object that build_check_live() found to be whole; 0 if it found none. */
remote_addr build_find_code(struct remote_memory *memory, remote_addr runtime_addr,
			    const struct py_build *build);

/*
 * Like build_check_live(), for a build of which only the fields of the runtime, interpreters,
 * threads and chunks are known: BUILD_LIVE_PROVEN if a thread has an id and a data stack.
 */
enum build_live build_check_threads(struct remote_memory *memory, remote_addr runtime_addr,
				    const struct py_build *build);

/*
 * Find next_code_version in the interpreter, if there is one, because debug offsets lack it and
 * debug builds have it elsewhere than release builds. The u64 before func_state is
 * dtoa.preallocated_next, which points into the array of 288 doubles before itself. If that is true
 * of no place or of several, the field becomes absent.
 *
 * Source: CPython 3.13–3.15 Include/internal/pycore_interp.h, pycore_dtoa.h.
 */
void build_find_code_version(struct remote_memory *memory, remote_addr runtime_addr,
			     struct py_build *build);
