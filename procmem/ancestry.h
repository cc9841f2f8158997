/* SPDX-License-Identifier: MIT */
/*
 * Finds the parent that a process was forked from, provided that neither has called exec since.
 * The child then holds everything that its parent's memory held at the fork, at the same
 * addresses.
 */
#pragma once

#include "procmem/process.h"

/*
 * Open the parent of a process if neither has called exec since the fork. Two processes run the
 * same program if their auxiliary vectors and the 16 random bytes that AT_RANDOM points to are
 * equal; each exec makes new ones.
 *
 * Returns 0, -ENOENT if there is no such parent or one of them has called exec, -EPERM if the
 * memory of one of them may not be read, -ESRCH if one has ended, or another errno. Source:
 * AT_RANDOM in getauxval(3).
 */
int ancestry_parent(const struct process *child, struct process *ret_parent);
