/* SPDX-License-Identifier: MIT */
/*
 * What a thread does beside its stack, decoded from the copies of a tick: whether it holds
 * the GIL or waits for it, handles an exception, and collects garbage.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/frames/frames.h"
#include "sampler/snapshot.h"

/* What is known of None, which has one address for good. All zero: nothing yet. */
struct known_none {
	remote_addr addr;
	remote_addr other_addr; /* what was last found to be something else */
};

/*
 * The flags of enum sample_flags that a copied thread state tells, GIL and exceptions.
 *
 * An exception counts while it is on its way up, and while the thread is in the block that
 * handles it, also in functions called from there. The thread state has the outermost item of
 * the list of those; what only a generator handles is found by following the list, and only
 * if follow is set: up to EXC_ITEMS_MAX reads, a moment later than the copy.
 *
 * Up to 3.12 an item is None once something was handled. Which object that is is read, until
 * it is known, once for each other object met there: three words.
 *
 * Source: Include/cpython/pystate.h (_PyErr_StackItem), Python/errors.c
 * (_PyErr_GetTopmostException()), Python/ceval_gil.c (take_gil()).
 */
uint32_t thread_state_flags(const struct snapshot *snapshot, const struct snapshot_thread *thread,
			    bool follow, struct known_none *none);

/*
 * The address of the exception that a thread handles, the innermost one; else of that which is
 * on its way up; 0: there is none, or it cannot be told. Follows the list as
 * thread_state_flags() does.
 *
 * Source: _PyErr_GetTopmostException() in Python/errors.c.
 */
remote_addr thread_state_exception(const struct snapshot *snapshot,
				   const struct snapshot_thread *thread, struct known_none *none);

/* The list is as long as there are generators that run one another; more is damage. */
#define EXC_ITEMS_MAX 64

#define NOT_COLLECTING UINT32_MAX

/*
 * Above how many of the visible frames of a thread's stack the collector runs;
 * NOT_COLLECTING if it does not, so far as can be told.
 *
 * 3.15 tells the frame that began the collection; what stands above it are finalisers. Since
 * 3.7 it is told that there is one: it is taken to be by the thread that holds the GIL,
 * innermost. 3.6, and 3.13 and 3.14 without the GIL, tell nothing that would do.
 *
 * Source: Python/gc.c of 3.15, Modules/gcmodule.c and Python/gc.c before.
 */
uint32_t thread_state_collector(const struct snapshot *snapshot,
				const struct snapshot_thread *thread,
				const struct frame_list *list);
