/* SPDX-License-Identifier: MIT */
/* What has to be known of samples lest they be misread, for people. */
#pragma once

#include "output/artefact.h"
#include "output/text.h"

/*
 * Append one line without its newline, in words alone: that what threads did inside of the
 * kernel is missing (unprivileged runs with C frames), that a run tells short bursts too rarely
 * (loss_hides_bursts()), what [unknown] stands for and which share of the runs' stacks has it, and
 * which share of the samples shown ran in code of CPython's JIT,
 * so that their lines may be some statements late (SAMPLE_IN_JIT). Nothing if there is nothing
 * to be said.
 */
void caveats_append(struct text *text, const struct artefact *artefact);
