/* SPDX-License-Identifier: MIT */
/*
 * Callgrind's format, for KCachegrind, QCachegrind and callgrind_annotate: for each function
 * its lines with what they took themselves, and the calls made from them.
 *
 * Costs are samples and the time of the mode. A call's count is the samples that it was seen
 * in, each once however often the call is in its stack. The cost of a call is that of the
 * samples whose outermost call of the callee it is: so the calls into a function cost what
 * the function took in total, and in programs that recurse nothing comes to more than 100 %.
 * The calls deeper in a stack are there, and cost 0; calls of a function by itself are left
 * out. What is outermost is called by "[all]", for readers that sum up the calls into a
 * function do so of those that nobody calls only in part.
 *
 * Source: docs.kde.org/KCachegrind/callgrind-format, and callgrind_annotate 3.19: inclusive
 * costs are those of the calls into a function, if there are any.
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the profile to out and flush it. Names are escaped as for a screen and compressed.
 * Functions of one name in one file have ":line" behind it, and those that have no line the
 * path; names without a file are in "???". If there are other kinds of functions than
 * Python's, each has an object (ob=): native and kernel ones their module, JIT ones "[jit]",
 * Python's "[python]".
 *
 * 0; -ENOMEM; the stream's error as negative errno.
 */
int callgrind_write(const struct artefact *artefact, FILE *out);
