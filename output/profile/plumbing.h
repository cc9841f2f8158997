/* SPDX-License-Identifier: MIT */
/*
 * Plumbing: C functions that are on the stacks of every Python program and say nothing about this one. They
 * start a process, a thread or the interpreter, or pass a call on to the function that does the
 * work. A profile leaves their frames out, and charges their time to their callers, unless its
 * options say keep_plumbing.
 */
#pragma once

#include <stdbool.h>

#include "sampler/sample.h"

/* Whether a function is plumbing. Its id and its line are not looked at. */
bool plumbing_is(const struct function *function);
