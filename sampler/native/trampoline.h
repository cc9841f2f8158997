/* SPDX-License-Identifier: MIT */
/*
 * The trampolines of -X perf and -X perf_jit as frames: CPython calls each Python function
 * through one of its own, which is called "py::QUALNAME:FILE" in what it writes of them, and does
 * nothing but call the loop. While that runs the function they are one activation.
 *
 * Of -X perf_jit the file lacks the last ones, as CPython writes 4096 bytes at a time: of a
 * process that runs half of all samples had one of those. Where they are not found in the buffer of
 * its C library (symbols/file_tail.h) they are known by their bytes
 * (symbols/perf_trampoline.h), and what they are called by the frames that they were seen with.
 * Source: Python/perf_trampoline.c, Python/perf_jit_trampoline.c.
 */
#pragma once

#include <stdbool.h>

#include "procmem/memory.h"
#include "sampler/sample.h"
#include "sampler/sampler.h"

/* What one is called that nothing has told of yet. */
#define TRAMPOLINE_UNNAMED "[trampoline]"

/* So many are remembered, each where its address says: programs have some hundred that are hot. */
enum { TRAMPOLINE_NAMES_MAX = 1024 };

/* What functions trampolines call, by where they begin. All zero nothing is known. */
struct trampoline_names {
	struct trampoline_name {
		remote_addr addr;
		const struct function *python;
	} entries[TRAMPOLINE_NAMES_MAX];
};

/* Whether code of that name may be a trampoline. */
bool trampoline_is_name(const char *name);

/* Whether a trampoline of that name calls that function. */
bool trampoline_calls(const struct function *trampoline, const struct function *python);

/* The trampoline that begins at addr has called a function of Python. The last word counts. */
void trampoline_names_learn(struct trampoline_names *names, remote_addr addr,
			    const struct function *python);

/*
 * The function, of sampler, that stands for the trampoline at addr: by the name that CPython
 * would write, else TRAMPOLINE_UNNAMED. NULL: out of memory.
 */
const struct function *trampoline_names_function(const struct trampoline_names *names,
						 remote_addr addr, struct sampler *sampler);
