/* SPDX-License-Identifier: MIT */
/*
 * The slot of an address in a fixed-size table that keeps one address per slot. On a collision the
 * table keeps either the first address or the last, so a target that forces collisions only makes
 * it remember less. For tables that grow, see addr_map.h.
 */
#pragma once

#include <stddef.h>

#include "procmem/hash.h"
#include "procmem/memory.h"

/*
 * Returns a slot index below nr_slots, which must not be 0. Multiplying by the golden ratio
 * spreads neighbouring addresses over the table.
 */
static inline size_t addr_slot(remote_addr addr, size_t nr_slots)
{
	return (size_t)(addr * HASH_GOLDEN_RATIO >> 32) % nr_slots;
}
