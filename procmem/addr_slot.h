/* SPDX-License-Identifier: MIT */
/*
 * Where an address has its slot in a table of fixed size that keeps one address a slot: whoever
 * comes last, or was there first. What a target can do by addresses that share a slot is to have
 * less remembered. For tables that grow see addr_map.h.
 */
#pragma once

#include <stddef.h>

#include "procmem/memory.h"

/* Of nr_slots, which is not 0. By the golden ratio, which spreads neighbours over the table. */
static inline size_t addr_slot(remote_addr addr, size_t nr_slots)
{
	return (size_t)(addr * 0x9e3779b97f4a7c15u >> 32) % nr_slots;
}
