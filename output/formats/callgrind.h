/* SPDX-License-Identifier: MIT */
/*
 * Callgrind's format, for KCachegrind, QCachegrind and callgrind_annotate: for each function the
 * self cost of its lines and the calls made from them.
 *
 * Costs are samples and the time of the mode. The count of a call is the number of samples with
 * it; a sample counts once, however often its stack contains the call. The cost of a call is that
 * of the samples in which it is the outermost call of its callee. So the calls into a function
 * add up to its total, and recursion never makes a function exceed 100 %. Deeper calls are listed
 * with cost 0; calls of a function by itself are left out. The caller of the outermost functions
 * is "[all]", because readers sum the calls into a function and would otherwise miss the part
 * without a caller.
 *
 * Source: docs.kde.org/KCachegrind/callgrind-format, and callgrind_annotate 3.19: inclusive costs
 * are those of the calls into a function, if there are any.
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the profile to out and flush it. Names are escaped as for a screen and compressed. If
 * several functions of a file share a name, ":line" is appended, or the path for those without a
 * line. Names without a file are in "???". If not all functions are Python's, each has an object
 * (ob=): native and kernel functions their module, JIT functions "[jit]", Python functions
 * "[python]".
 *
 * Returns 0; -ENOMEM; the stream's error as negative errno.
 */
int callgrind_write(const struct artefact *artefact, FILE *out);
