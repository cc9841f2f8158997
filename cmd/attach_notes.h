/* SPDX-License-Identifier: MIT */
/* What attach tells the user of a run, on stderr and beside the profile. */
#pragma once

#include "cmd/attach.h"

/* What is sampled, when it begins. Nothing with --quiet. */
void attach_notes_begin(const struct attach *attach);

/*
 * What there is and what was lost, in one line, and what has to be known to read the
 * profile; with --verbose all counters. Nothing with --quiet.
 */
void attach_notes_end(const struct attach *attach, enum sampler_end end);

/* Why a run that went well has no sample: one sentence with the remedy. */
void attach_explain_no_sample(const struct attach *attach, enum sampler_end end,
			      struct message *reterr);

/* Why a run with samples has nothing to show in its mode: one sentence with the remedy. */
void attach_explain_none_shown(const struct attach *attach, struct message *reterr);
