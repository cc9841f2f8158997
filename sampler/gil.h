/* SPDX-License-Identifier: MIT */
/*
 * What a GIL shows: which thread holds it, and which threads cannot have run Python code between
 * two looks at it.
 *
 * The interpreter counts how often a thread other than the last holder takes the GIL. Frames
 * change only under the GIL. So a thread that had it at neither look, while the count rose by at
 * most one, is where it was.
 *
 * A free-threaded build also has a GIL once it is switched on for good, by PYTHON_GIL=1 or by an
 * extension that needs it. A GIL that an import has switched on temporarily does not count:
 * threads that never take it run once it is off again.
 *
 * Source: CPython take_gil(), _PyEval_EnableGILTransient(), _PyEval_EnableGILPermanent() and
 * _PyEval_DisableGIL(), Python/ceval_gil.c (3.7 to 3.11: ceval_gil.h); struct _gil_runtime_state,
 * where last_holder, locked and switch_number are adjacent.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/elf/image_source.h"

/* Bytes read of struct _gil_runtime_state, from last_holder on. */
enum { GIL_BYTES = 24, GIL_SWITCHES_OFFSET = 16 };

/*
 * Where `enabled` is in free-threaded builds, in bytes before last_holder: how many threads
 * switched the GIL on, or GIL_ON_FOR_GOOD.
 */
enum { GIL_ENABLED_BEFORE_HOLDER = 16, GIL_ON_FOR_GOOD = INT_MAX };

struct gil {
	bool is_known; /* it was read, and some thread has held it */
	bool is_held;
	bool is_counted;	      /* nr_switches is valid (3.7+) */
	remote_addr last_holder_addr; /* the thread state that holds it, or held it last */
	uint64_t nr_switches;	      /* how often another thread state took it */
};

/* Where a GIL's words are. */
struct gil_place {
	remote_addr addr; /* of the first word; 0: there is no GIL */
	/*
	 * From addr to last_holder, or to its counterpart in 3.6. If not 0, the first word is the
	 * int that says whether there is a GIL.
	 */
	uint32_t holder_offset;
	/*
	 * From last_holder to the int that says whether the GIL is held. 0 (3.6): the only word
	 * is the current thread state.
	 */
	uint32_t locked_offset;
};

/* Number of bytes to read at addr. */
static inline uint32_t gil_place_bytes(const struct gil_place *place)
{
	const uint32_t bytes = place->locked_offset ? GIL_BYTES : sizeof(uint64_t);

	return place->holder_offset + bytes;
}

/*
 * Decode the words of a place. is_known is false for a GIL that was never held, which belongs to an
 * interpreter that shares another one's; for a free one of 3.6; and for one that is not on for
 * good.
 */
struct gil gil_decode(const struct gil_place *place, const uint8_t *words);

/*
 * Find the variable in which CPython 3.6 names the thread state that holds the GIL. Its GIL has
 * no struct, only static variables, but the program exports _PyThreadState_Current: NULL while
 * the GIL is free. It has no count of switches, so it proves nothing about the time between two
 * looks. Returns the variable's address, in the file that has interp_head_addr; 0 if the file
 * cannot be opened or does not export it.
 *
 * Source: CPython 3.6 Python/pystate.c, Python/ceval.c (PyThreadState_Swap() after take_gil()).
 */
remote_addr gil_find_current(const struct maps *maps, struct image_source *images,
			     remote_addr interp_head_addr);

/* The thread state that holds it; 0: none, or unknown. */
static inline remote_addr gil_holder_addr(const struct gil *gil)
{
	return gil->is_known && gil->is_held ? gil->last_holder_addr : 0;
}

/* Whether any other thread may have run between two looks. */
static inline bool gil_switched(const struct gil *before, const struct gil *now)
{
	return !before->is_known || !now->is_known || before->nr_switches != now->nr_switches ||
	       before->last_holder_addr != now->last_holder_addr;
}

/*
 * Whether threads other than the two that had it at the two looks may have run in between. One
 * switch goes from the last holder to another thread. A count that rose by one with the same
 * holder was copied while the words were written.
 */
static inline bool gil_may_have_third_holder(const struct gil *before, const struct gil *now)
{
	if (!now->is_counted)
		return true;
	return gil_switched(before, now) && (!before->is_known || !now->is_known ||
					     now->nr_switches != before->nr_switches + 1 ||
					     now->last_holder_addr == before->last_holder_addr);
}

/* Whether a thread is one of the two known holders. */
static inline bool gil_is_known_holder(const struct gil *before, const struct gil *now,
				       remote_addr thread_addr)
{
	return (before->is_known && before->last_holder_addr == thread_addr) ||
	       (now->is_known && now->last_holder_addr == thread_addr);
}
