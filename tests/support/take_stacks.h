/* SPDX-License-Identifier: MIT */
/* What record_tape does while it records, and replay_tape once more. */
#pragma once

#include <stdio.h>

#include "procmem/memory.h"

/*
 * Load the offsets, dump all threads, take a few ticks, and write both results to
 * out: the dump as text, the ticks as collapsed stacks with lines. version_hex:
 * as build_load() takes it. 0 or the first error.
 */
int take_stacks(struct remote_memory *memory, remote_addr runtime_addr, uint32_t version_hex,
		FILE *out);
