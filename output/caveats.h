/* SPDX-License-Identifier: MIT */
/* What has to be known of samples lest they be misread, for people. */
#pragma once

#include "output/artefact.h"
#include "output/text/text.h"

/*
 * Append what is to be said of nr approximate samples among nr_all: nothing if there is none. The
 * sentence begins with "approximate".
 */
void caveats_append_approximate(struct text *text, uint64_t nr, uint64_t nr_all);

/*
 * Append one line without its newline, in words alone: which share of the samples shown is
 * approximate (SAMPLE_APPROXIMATE), that what threads did inside of the kernel is missing
 * (unprivileged runs with C frames), that a run tells short bursts too rarely
 * (loss_hides_bursts()), what [unknown] stands for and which share of the runs' stacks has it, and
 * which share of the samples shown ran in code of CPython's JIT,
 * so that their lines may be some statements late (SAMPLE_IN_JIT). Nothing if there is nothing
 * to be said.
 */
void caveats_append(struct text *text, const struct artefact *artefact);
