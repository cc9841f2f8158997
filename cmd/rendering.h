/* SPDX-License-Identifier: MIT */
/* Makes outputs from recordings. */
#pragma once

#include "cmd/command.h"
#include "cmd/outputs.h"
#include "output/artefact.h"
#include "output/recording/recording.h"
#include "output/recording/replay.h"

/* All pointers are borrowed. rendering_write() sets the last two. */
struct rendering {
	struct recording *const *recordings;
	uint32_t nr_recordings;
	struct recording *const *bases; /* the base of a comparison; none: no comparison */
	uint32_t nr_bases;
	struct replay_filter filter; /* for both */
	/*
	 * by_process counts only if samples of several processes of one recording pass the
	 * filter, so that two runs of one program are merged and compared without roots.
	 */
	struct profile_options profile;
	struct artefact_options layout;
	/*
	 * What passed the filter, and what the mode shows of it; if all outputs keep every sample,
	 * PROFILE_BUSY shows all.
	 */
	struct profile_account accounts[NR_PROFILE_SIDES];
	bool has_accounts;
};

/*
 * Make a profile of the recordings with these options; the caller destroys it. Returns 0, or an
 * error of replay().
 */
int rendering_profile(const struct rendering *rendering, const struct profile_options *options,
		      struct profile **ret_profile);

/*
 * Write the open outputs that are made from a profile and not written yet, with one profile for
 * all outputs that can share it. Returns EXIT_OK; EXIT_NO_SAMPLE if the profile has nothing of
 * the recordings, or nothing of the bases (nothing was written or printed); EXIT_ERROR after
 * printing an error for each that failed.
 */
enum exit_status rendering_write(struct rendering *rendering, struct outputs *outputs);
