/* SPDX-License-Identifier: MIT */
/*
 * pprof's format, compressed: a message perftools.profiles.Profile. What of it we write is in
 * docs/formats.md.
 *
 * Source: output/formats/proto/profile.proto
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the kept samples of a profile, and flush: a pprof sample for each stack of each thread,
 * with how many samples it was seen in and their time.
 *
 * The message is written piece by piece, so memory does not grow with it. Names are UTF-8
 * without control characters, as label_append_escaped() makes them. 0; -ENOMEM; the stream's
 * error as negative errno.
 */
int pprof_write(const struct artefact *artefact, FILE *out);
