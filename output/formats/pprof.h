/* SPDX-License-Identifier: MIT */
/*
 * The format of pprof, compressed: a message perftools.profiles.Profile. docs/formats.md
 * describes the part that is written.
 *
 * Source: output/formats/proto/profile.proto
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the kept samples of a profile and flush. Each stack of each thread is a pprof sample with
 * its number of samples and their time. Stacks with samples in JIT code or with approximate
 * samples are separate pprof samples, with labels that say so.
 *
 * The message is written piece by piece, so memory does not grow with it. Names are UTF-8 without
 * control characters (label_append_escaped()). Returns 0; -ENOMEM; the stream's error as negative
 * errno.
 */
int pprof_write(const struct artefact *artefact, FILE *out);
