/* SPDX-License-Identifier: MIT */
/*
 * The code of CPython's own JIT in stacks, executors as CPython calls them: called by the loop, they
 * run the Python frame that it ran, and write its instruction back only before what may fail.
 *
 * They are told by the names that CPython gives them where it tells of them: in 3.15 on the list for
 * debuggers, in builds that write them to a jitdump there. 3.14 tells nowhere; there it is code
 * that was made at run time, without a name, and that the loop has called itself. Source:
 * Python/jit_publish.c, Python/perf_jit_trampoline.c of CPython 3.15.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/sample.h"

/* Whether that is what CPython calls code of its JIT. */
bool executor_is_name(const char *name);

/*
 * Whether the innermost Python frame of frames (outermost first), with C frames, runs in an
 * executor. unnamed_name is what code without a name is called; NULL: none of it is an executor.
 */
bool executor_runs(const struct frame *frames, uint32_t nr_frames, const char *unnamed_name);
