/* SPDX-License-Identifier: MIT */
/*
 * What a jitdump tells of a code beside its name: out of its LOAD, and of the DEBUG_INFO and the
 * UNWINDING_INFO before it.
 */
#pragma once

#include "symbols/jit/jit_body.h"
#include "symbols/jit/jitdump.h"

/*
 * Read what dump tells of a code that came from it; jit_body_done() what was read. Lines and
 * unwind information that are damaged, or are of another code, are left out. The latter stands
 * in files as perf and CPython write it, .eh_frame first, or as the specification has it,
 * .eh_frame_hdr first; which one is told by what it says of the code. 0; -ENOENT (the file has
 * changed meanwhile); -ENOMEM; or another errno.
 */
int jitdump_read_body(const struct jitdump *dump, const struct jit_code *code,
		      struct jit_body *ret_body);
