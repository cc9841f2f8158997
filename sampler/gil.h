/* SPDX-License-Identifier: MIT */
/*
 * What can be told from a GIL: who holds it, and which threads cannot have run Python code
 * between two looks at it.
 *
 * The interpreter counts how often the GIL went to another thread than the one that had it
 * last. Frames change only under the GIL, so a thread that had it at neither look, with the
 * count not moved by more than one in between, is where it was.
 *
 * A free-threaded build has a GIL as well once it was switched on for good, by PYTHON_GIL=1 or an
 * extension that needs it. One that an import has switched on for its own time is not counted as
 * one: when it is off again threads run that never take it.
 *
 * Source: CPython take_gil(), _PyEval_EnableGILTransient(), _PyEval_EnableGILPermanent() and
 * _PyEval_DisableGIL(), Python/ceval_gil.c (3.7 to 3.11: ceval_gil.h); struct _gil_runtime_state,
 * where last_holder, locked and switch_number follow one another.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "symbols/elf/image_source.h"

/* Of the struct, from last_holder on. */
enum { GIL_BYTES = 24, GIL_SWITCHES_OFFSET = 16 };

/* In free-threaded builds, an int: how many have switched it on, or GIL_ON_FOR_GOOD. */
enum { GIL_ENABLED_BEFORE_HOLDER = 16, GIL_ON_FOR_GOOD = INT_MAX };

struct gil {
	bool known; /* it was read, and somebody has held it */
	bool held;
	bool is_counted;	      /* nr_switches counts (3.7+) */
	remote_addr last_holder_addr; /* thread state that holds it, or had it last */
	uint64_t nr_switches;	      /* how often it went to another one */
};

/* Where a GIL's words lie. */
struct gil_place {
	remote_addr addr; /* of the first of them; 0: there is no GIL */
	/*
	 * So many bytes behind it is last_holder, or what 3.6 has instead. If any, it begins with
	 * the int that tells whether there is a GIL.
	 */
	uint32_t holder_offset;
	/*
	 * So many bytes behind that is the int that tells whether it is held. 0 (3.6): there is but
	 * the thread state that is current.
	 */
	uint32_t locked_offset;
};

/* How many bytes there are to be read at its addr. */
static inline uint32_t gil_place_bytes(const struct gil_place *place)
{
	const uint32_t bytes = place->locked_offset ? GIL_BYTES : sizeof(uint64_t);

	return place->holder_offset + bytes;
}

/*
 * The GIL as the words of its place say. One that nobody ever held is not known: it is that of an
 * interpreter that shares another one's. Nor is a free one of 3.6, or one that is not on for good.
 */
struct gil gil_decode(const struct gil_place *place, const uint8_t *words);

/*
 * Where CPython 3.6 names the thread state that holds the GIL. Its GIL has no struct, only static
 * variables, but the program exports _PyThreadState_Current: NULL while nobody holds the GIL. There
 * is no count of switches, so it proves nothing of the time between two looks. The address of the
 * variable, which belongs to the file that has interp_head_addr; 0 if the file cannot be opened or
 * does not export it.
 *
 * Source: CPython 3.6 Python/pystate.c, Python/ceval.c (PyThreadState_Swap() behind take_gil()).
 */
remote_addr gil_find_current(const struct maps *maps, struct image_source *images,
			     remote_addr interp_head_addr);

/* Its holder's thread state; 0 if nobody holds it, or that is not known. */
static inline remote_addr gil_holder_addr(const struct gil *gil)
{
	return gil->known && gil->held ? gil->last_holder_addr : 0;
}

/* Whether so much as one other thread may have run between two looks. */
static inline bool gil_moved(const struct gil *before, const struct gil *now)
{
	return !before->known || !now->known || before->nr_switches != now->nr_switches ||
	       before->last_holder_addr != now->last_holder_addr;
}

/*
 * Whether more threads may have run in between than those that had it at the two looks. One
 * switch is one from the thread that had it to another one; a count that tells of one, with
 * the same thread as before, is what was copied while the words were written.
 */
static inline bool gil_unclear(const struct gil *before, const struct gil *now)
{
	if (!now->is_counted)
		return true;
	return gil_moved(before, now) &&
	       (!before->known || !now->known || now->nr_switches != before->nr_switches + 1 ||
		now->last_holder_addr == before->last_holder_addr);
}

/* Whether a thread is one of the two that are known to have had it. */
static inline bool gil_names(const struct gil *before, const struct gil *now,
			     remote_addr thread_addr)
{
	return (before->known && before->last_holder_addr == thread_addr) ||
	       (now->known && now->last_holder_addr == thread_addr);
}
