/* SPDX-License-Identifier: MIT */
/*
 * The process that another one was forked from, as long as both run what they ran then: the
 * child has everything in its memory, at the same addresses, that its parent had at that time.
 */
#pragma once

#include "procmem/process.h"

/*
 * Open the parent of a process, if neither has called exec since the fork. That is told by the
 * auxiliary vector and the 16 random bytes that it points to, which are new with each exec. 0;
 * -ENOENT (not so); -EPERM (the memory of one of them may not be read); -ESRCH (one has ended);
 * or another errno. Source: AT_RANDOM in getauxval(3).
 */
int ancestry_parent(const struct process *child, struct process *ret_parent);
