/* SPDX-License-Identifier: MIT */
/*
 * Plumbing: C functions that are on the stacks of every Python program. They start a process, a
 * thread or the interpreter, or pass a call on to the function that does the work. A profile
 * omits their frames and charges their time to their callers, unless its options set
 * keep_plumbing.
 */
#pragma once

#include <stdbool.h>

#include "sampler/sample.h"

/* Whether a function is plumbing. Its id and line are ignored. */
bool plumbing_is(const struct function *function);
