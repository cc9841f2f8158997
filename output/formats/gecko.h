/* SPDX-License-Identifier: MIT */
/*
 * The processed format of the Firefox Profiler, version 60, compressed: what
 * profiler.firefox.com, its command line and Perfetto open. What of it we write is in
 * docs/formats.md.
 *
 * Source: github.com/firefox-devtools/profiler, src/types/profile.ts,
 * docs-developer/CHANGELOG-formats.md
 */
#pragma once

#include <stdio.h>

#include "output/artefact.h"

/*
 * Write the kept samples of a profile, and flush: each with its time, its weight in
 * milliseconds and, where it was measured, its CPU time. Functions are rows of their own, so
 * a profile by line shows both. Stretches in which a thread collects garbage, has the GIL or
 * waits for it are markers.
 *
 * 0; -ENOMEM; the stream's error as negative errno.
 */
int gecko_write(const struct artefact *artefact, FILE *out);
