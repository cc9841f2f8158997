/* SPDX-License-Identifier: MIT */
/*
 * Finding CPython in a running process: the address of _PyRuntime and the build
 * it belongs to. Never executes the target's program and never opens a path that
 * was not checked against the mapping it is said to be.
 */
#pragma once

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "procmem/message.h"
#include "procmem/process.h"
#include "sampler/python/offsets.h"
#include "symbols/image.h"

struct runtime {
	remote_addr addr;     /* of _PyRuntime */
	const char *found_by; /* "section", "symbol" or "cookie"; static */
	char image_path[256]; /* of the file it lies in, as the target has it; cut if longer */
	char build_id[2 * BUILD_ID_MAX_BYTES + 1]; /* of that file, in hex; "" if not known */
	struct py_build build;
};

/*
 * Find the interpreter. Order: section .PyRuntime, symbol _PyRuntime — in the
 * executable, then in files called libpython…, then in all others — and last the
 * cookie of 3.13 and newer in every writable mapping of a file.
 *
 * 0; -ENOENT with a sentence (no CPython in it), -ENOTSUP with a sentence (one
 * that is not supported), -EPERM (ask process_explain_eperm()), -ENOMEM; -ESRCH: it
 * has ended or called exec meanwhile, so that nothing can be said of it (a kernel
 * thread, which has no mappings, looks as if it had).
 */
int runtime_find(const struct process *process, const struct maps *maps,
		 struct remote_memory *memory, struct runtime *ret_runtime, struct message *reterr);
