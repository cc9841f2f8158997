/* SPDX-License-Identifier: MIT */
/*
 * C functions of every Python program that say nothing of this one: those that start a process, a
 * thread and the interpreter, and those through which CPython hands on each call. A profile leaves
 * their frames out and gives their time to who called them, unless it keeps_plumbing.
 */
#pragma once

#include <stdbool.h>

#include "sampler/sample.h"

/* Whether a function is one of them. Of a function only kind, qualname and path are looked at. */
bool plumbing_is(const struct function *function);
