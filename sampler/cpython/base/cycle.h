/* SPDX-License-Identifier: MIT */
/* Detects a cycle in a linked list of the target, by Brent's method. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"

/* The state of one traversal; all zero before the first element. */
struct cycle_detector {
	remote_addr kept_addr; /* an earlier element; the distance to it doubles */
	uint64_t nr;	       /* elements visited so far */
};

/*
 * Visit the next element, at addr (not 0). Returns true if the list is known to be cyclic, after at
 * most three times as many elements as it has distinct ones.
 */
static inline bool cycle_detector_visit(struct cycle_detector *cycle, remote_addr addr)
{
	if (addr == cycle->kept_addr)
		return true;
	if ((cycle->nr & (cycle->nr - 1)) == 0)
		cycle->kept_addr = addr;
	cycle->nr++;
	return false;
}
