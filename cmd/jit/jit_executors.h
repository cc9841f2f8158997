/* SPDX-License-Identifier: MIT */
/* The code of CPython's JIT in a process that publishes none of it (3.14). */
#pragma once

#include "cmd/command.h"
#include "cmd/jit/jit_target.h"
#include "procmem/message.h"

/*
 * Add it, without names, to the known code of a process, if the stacks lead to it; takes a
 * tenth of a second at most. Call it after a refresh. Returns EXIT_OK, also if there is no such
 * code, the process does not run such a CPython, or it cannot be read; EXIT_ERROR with a message
 * if out of memory.
 */
enum exit_status jit_executors_add(struct jit_target *target, struct message *reterr);
