/* SPDX-License-Identifier: MIT */
/*
 * Which code of a process CPython's own JIT has made, executors as CPython calls them: called by
 * the loop, they run the Python frame that it ran, and write its instruction back only before what
 * may fail.
 *
 * They are told by the names that CPython gives them where it tells of them: in 3.15 on the list
 * for debuggers, in builds that write them to a jitdump there. 3.14 tells nowhere; there they are
 * found as CPython itself finds them: all executors of an interpreter are on one list, and each
 * names its code. Any code object that one was made for leads to the list. Source:
 * Python/jit_publish.c, Python/perf_jit_trampoline.c of CPython 3.15.
 *
 * It is read when an address is asked for that is in none, and not each time, but as look_pace.h
 * says. The target goes on meanwhile: an executor whose neighbour does not point back to it is the
 * end of what is known.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/code/code.h"
#include "symbols/jit/look_pace.h"

/* Seen: 420 where functions were made all the time. Those beyond are not known. */
#define EXECUTOR_LIST_MAX 8192

/* Machine code of an executor: [start_addr, end_addr). */
struct executor_range {
	remote_addr start_addr, end_addr;
};

/* All zero nothing is known. Private. */
struct executor_list {
	const struct code_cache *codes; /* of the reading under way; borrowed */
	struct executor_range *ranges;	/* by rising address, but while they are read; owned */
	uint32_t nr_ranges, max_ranges;
	remote_addr type_addr; /* of executors; 0: not known */
	struct look_pace pace; /* of readings */
};

/* Frees the list, which is empty then. */
void executor_list_done(struct executor_list *list);

/*
 * Read it anew, as far as the code objects of codes lead to it, which are those of a build whose
 * traits say has_unnamed_executors. What cannot be read, or held, is not known.
 */
void executor_list_read(struct executor_list *list, const struct code_cache *codes);

/*
 * Whether an address is in the code of an executor that is known, of the same code objects; read
 * anew as said above. now_ns: CLOCK_MONOTONIC.
 */
bool executor_list_has(struct executor_list *list, const struct code_cache *codes, remote_addr addr,
		       uint64_t now_ns);

/* Whether that is what CPython calls code of its JIT. */
bool executor_is_name(const char *name);
