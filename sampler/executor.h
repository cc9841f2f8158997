/* SPDX-License-Identifier: MIT */
/*
 * The code of CPython's own JIT in stacks, executors as CPython calls them: called by the loop,
 * they run the Python frame that it ran, and write its instruction back only before what may fail.
 *
 * They are told by the names that CPython gives them where it tells of them: in 3.15 on the list
 * for debuggers, in builds that write them to a jitdump there. 3.14 tells nowhere; there they are
 * found as CPython itself finds them (executor_list.h). Source: Python/jit_publish.c,
 * Python/perf_jit_trampoline.c of CPython 3.15.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/merged_stack.h"

/* Whether that is what CPython calls code of its JIT. */
bool executor_is_name(const char *name);

/*
 * Whether the innermost Python frame of a merged stack runs in an executor, or in C functions that
 * one has called. natives are those that merged has indexes of.
 */
bool executor_runs(const struct merged_frame *merged, uint32_t nr_merged,
		   const struct native_frame *natives);
