/* SPDX-License-Identifier: MIT */
/* The run that record_tape records and replay_tape repeats. */
#pragma once

#include <stdio.h>

#include "procmem/memory.h"

/*
 * Load the offsets, dump all threads and run a few ticks. Writes to out: the dump as text, then
 * the ticks as collapsed stacks with lines. version_hex is as in build_load(). Returns 0 or the
 * first error.
 */
int tape_run(struct remote_memory *memory, remote_addr runtime_addr, uint32_t version_hex,
	     FILE *out);
