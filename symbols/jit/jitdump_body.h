/* SPDX-License-Identifier: MIT */
/*
 * Reads what a jitdump records about a code besides its name: from its LOAD, and from the
 * DEBUG_INFO and the UNWINDING_INFO before it.
 */
#pragma once

#include "symbols/jit/jit_body.h"
#include "symbols/jit/jitdump.h"

/*
 * Read the body of a code that came from dump. The caller releases it with jit_body_done(). Lines
 * and unwind information that are damaged or belong to another code are left out. Files have
 * .eh_frame first, as perf and CPython write it, or .eh_frame_hdr first, as the specification
 * requires; the order that describes the code is used.
 *
 * Returns 0; -ENOENT if the file has changed meanwhile; -ENOMEM; or another errno.
 */
int jitdump_read_body(const struct jitdump *dump, const struct jit_code *code,
		      struct jit_body *ret_body);
