/* SPDX-License-Identifier: MIT */
/* The code of CPython's JIT in a process that tells nobody of it (3.14). */
#pragma once

#include "cmd/command.h"
#include "cmd/jit/jit_target.h"
#include "procmem/message.h"

/*
 * Add it to what is known of a process, without names, as far as its stacks lead to it: for a tenth
 * of a second at most. To be called after a refresh. EXIT_OK, also where there is none, it is no
 * such CPython, or it cannot be read; EXIT_ERROR with a sentence: out of memory.
 */
enum exit_status jit_executors_add(struct jit_target *target, struct message *reterr);
