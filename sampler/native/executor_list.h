/* SPDX-License-Identifier: MIT */
/*
 * Finds code that CPython's own JIT has made: executors, as CPython calls them. The interpreter's
 * loop calls an executor; it runs the Python frame that the loop ran, and writes the frame's
 * instruction back only before something that may fail.
 *
 * Where CPython publishes executors they are known by name: in 3.15 on the list for debuggers,
 * and in a jitdump in builds that write them there. 3.14 does not publish them. There they are
 * found as CPython itself finds them: all executors of an interpreter are on one list, and each
 * one has the address of its code. Any code object with an executor leads to the list.
 *
 * The list is read when an unknown address is looked up, as often as refresh_backoff.h allows. The
 * target runs meanwhile: an executor whose neighbour does not point back to it ends the list.
 *
 * Source: Python/jit_publish.c, Python/perf_jit_trampoline.c of CPython 3.15.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/code/code.h"
#include "symbols/jit/refresh_backoff.h"

/* Limit on executors; those beyond stay unknown. A program that kept creating functions had 420. */
#define EXECUTOR_LIST_MAX 8192

/* Machine code of an executor: [start_addr, end_addr). */
struct executor_range {
	remote_addr start_addr, end_addr;
};

/* All zero: nothing is known. Private. */
struct executor_list {
	const struct code_cache *codes; /* used while reading; borrowed */
	struct executor_range *ranges; /* ascending by address, except while they are read; owned */
	uint32_t nr_ranges, max_ranges;
	remote_addr type_addr;		/* the type of executors; 0: unknown */
	struct refresh_backoff backoff; /* limits how often the list is read */
};

/* Free the list, which is empty afterwards. */
void executor_list_done(struct executor_list *list);

/*
 * Read the list again, as far as the code objects of codes lead to it. Their build must have the
 * trait has_unnamed_executors. What cannot be read, or stored, stays unknown.
 */
void executor_list_read(struct executor_list *list, const struct code_cache *codes);

/*
 * Whether addr is in the code of a known executor of the same code objects; may read the list
 * again. now_ns: CLOCK_MONOTONIC.
 */
bool executor_list_has(struct executor_list *list, const struct code_cache *codes, remote_addr addr,
		       uint64_t now_ns);

/* Whether name is one that CPython gives code of its JIT. */
bool executor_is_name(const char *name);
