/* SPDX-License-Identifier: MIT */
/* Telling a list of the target's that goes in a circle, by Brent's method. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"

/* A list that is followed; all zero before its first element. */
struct circle {
	remote_addr kept_addr; /* of an element before: how far back doubles */
	uint64_t nr;	       /* elements so far */
};

/*
 * Whether the list comes to an element, at addr, which is not 0, where it was before. True
 * after at most three times as many elements as are different.
 */
static inline bool circle_closes(struct circle *circle, remote_addr addr)
{
	if (addr == circle->kept_addr)
		return true;
	if ((circle->nr & (circle->nr - 1)) == 0)
		circle->kept_addr = addr;
	circle->nr++;
	return false;
}
