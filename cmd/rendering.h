/* SPDX-License-Identifier: MIT */
/* Making outputs of recordings. */
#pragma once

#include "cmd/command.h"
#include "cmd/outputs.h"
#include "output/artefact.h"
#include "output/recording/recording.h"
#include "output/recording/replay.h"

/* All borrowed. left is set by rendering_write(). */
struct rendering {
	struct recording *const *recordings;
	uint32_t nr_recordings;
	struct recording *const *bases; /* what they are compared with; none: with nothing */
	uint32_t nr_bases;
	struct replay_filter filter; /* of both */
	struct profile_options profile;
	struct artefact_options layout;
	struct profile_account left[NR_PROFILE_SIDES]; /* what passed, and what the mode shows */
};

/* A profile of them with these options; the caller destroys it. 0, or an error of replay(). */
int rendering_profile(const struct rendering *rendering, const struct profile_options *options,
		      struct profile **ret_profile);

/*
 * Write the outputs, opened, that are made from a profile and were not written yet: one profile
 * after the other, for all that can share it. EXIT_OK; EXIT_NO_SAMPLE: nothing of the recordings,
 * or of the bases, is in the profile, and nothing was written or printed; EXIT_ERROR after an
 * error was printed for each that failed.
 */
enum exit_status rendering_write(struct rendering *rendering, struct outputs *outputs);
