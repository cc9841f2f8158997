/* SPDX-License-Identifier: MIT */
/*
 * The processed profile format of the Firefox Profiler, version 60, compressed: for
 * profiler.firefox.com, its command line and Perfetto. docs/formats.md describes the part that is
 * written.
 *
 * Source: github.com/firefox-devtools/profiler, src/types/profile.ts,
 * docs-developer/CHANGELOG-formats.md
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the kept samples of a profile and flush. Each has its time, its weight in milliseconds
 * and, if measured, its CPU time. Functions are separate rows, so a profile by line shows
 * functions and lines. Periods in which a thread collects garbage, holds the GIL or waits for it
 * are markers, as are those of JIT code and approximate stacks.
 *
 * Returns 0; -ENOMEM; the stream's error as negative errno.
 */
int gecko_write(const struct artefact *artefact, FILE *out);
