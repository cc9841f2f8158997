/* SPDX-License-Identifier: MIT */
/*
 * What frames run that CPython has not made itself: extensions link frames from the C stack
 * or the heap whose executable is a code object or any other object (executable_kinds.h).
 * This is the cache of such objects by address, with the proof that what is there is still what
 * was there.
 *
 * No counter tells when they come and go, so all that was read of the objects of the last look
 * is read again within each look, in one call, and must be the same. A code object's type is read
 * again in the same way: the code clock tells when another code object took its place, not when
 * another object did.
 *
 * Programs without such frames pay for the first look at None, which all shims run, alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/python/code.h"

/*
 * So many addresses may have held an executable, about 1.5 kB of ours each; what was read
 * of all together may take so much. What is new beyond is not taken (LOSS_CODE); before the
 * next tick all that was read is forgotten, and read anew for those still in use.
 */
#define MAX_EXECUTABLES	      (1u << 14)
#define EXECUTABLES_MAX_BYTES (16u << 20)

/*
 * So many new ones, most of them of looks that did not hold, are looked through at once.
 */
#define EXECUTABLES_OF_A_TURN 128u

struct executable_cache;

/*
 * Free the cache of codes, or forget what was read if there was no room: whether there was
 * anything. Accept NULL.
 */
void executable_cache_destroy(struct executable_cache *cache);
bool executable_cache_relieve(struct executable_cache *cache);

/* Whether so many are new that those not in use are to be dropped. Accepts NULL. */
bool executable_cache_is_due(const struct executable_cache *cache);

/*
 * Drop the entries that were not asked for since this was called last, as
 * code_cache_drop_unused() does, which calls it: where code comes and goes, its memory holds
 * ever other things. Out of memory, all are kept. Accepts NULL.
 */
void executable_cache_drop_unused(struct executable_cache *cache);

/* Whether a frame with that executable is known to be not shown: NULL, None, 3.12's trampoline. */
static inline bool executable_is_nothing(const struct code_cache *codes, remote_addr addr)
{
	if (!addr)
		return true;
	for (uint32_t i = 0; i < codes->nr_nothings && i < MAX_NOTHINGS; i++)
		if (codes->nothings[i] == addr)
			return true;
	return false;
}

/*
 * The executable at addr for a frame of the look whose clock that is: a code object, or an entry
 * that is `foreign` and has a function and nothing else; NULL if its frames are not shown.
 *
 * 0; -EBADMSG or -EFAULT (there is no object), -EAGAIN (it changed while it was read),
 * -E2BIG (no room), -ENOMEM, -ESRCH, -EPERM. *ret_code is valid as that of
 * code_cache_get() is.
 */
int executable_get(struct code_cache *codes, remote_addr addr, const struct code_clock *clock,
		   struct code **ret_code);
