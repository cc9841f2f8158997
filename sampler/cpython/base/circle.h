/* SPDX-License-Identifier: MIT */
/* Detects a cycle in a linked list of the target, by Brent's method. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"

/* The state of one traversal; all zero before the first element. */
struct circle {
	remote_addr kept_addr; /* an earlier element; the distance to it doubles */
	uint64_t nr;	       /* elements visited so far */
};

/*
 * Visit the next element, at addr (not 0). Returns true if the list is known to be cyclic, after at
 * most three times as many elements as it has distinct ones.
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
