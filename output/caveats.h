/* SPDX-License-Identifier: MIT */
/* Caveats: what readers must know to interpret the samples correctly. */
#pragma once

#include "output/artefact.h"
#include "output/text/text.h"

/*
 * Append a sentence about nr approximate samples among nr_all, which begins with "approximate".
 * Nothing if nr is 0.
 */
void caveats_append_approximate(struct text *text, uint64_t nr, uint64_t nr_all);

/*
 * Append a sentence about the samples that PROFILE_BUSY hides (nr_idle): how many threads waited, and how
 * long. Nothing if there are none.
 */
void caveats_append_idle(struct text *text, const struct profile_account *account);

/*
 * Append all caveats as one line of plain words, without a newline. Nothing if there are none.
 * They report:
 *
 * - how many threads waited, and how long, if that is hidden;
 * - the share of the samples shown that is approximate (SAMPLE_APPROXIMATE);
 * - runs sampled at the kernel's tick, which misrepresent what is in step with it;
 * - runs whose C and Python frames are probably, but not provably, of one instant;
 * - runs without activity in the kernel (unprivileged, with C frames);
 * - runs that under-represent short bursts (loss_hides_bursts());
 * - what [unknown] stands for, and the share of the runs' stacks that contain it;
 * - the share of the samples shown that ran in code of CPython's JIT, whose lines may be a few
 *   statements late (SAMPLE_IN_JIT).
 */
void caveats_append(struct text *text, const struct artefact *artefact);
