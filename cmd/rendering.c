/* SPDX-License-Identifier: MIT */
#include "cmd/rendering.h"

#include <errno.h>
#include <string.h>

#include "cmd/print.h"
#include "procmem/cleanup.h"

/* Add recordings to one side of a profile. */
static int replay_all(const struct rendering *rendering, struct recording *const *recordings,
		      uint32_t nr_recordings, struct profile *profile, enum profile_side side)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < nr_recordings; i++)
		err = replay(recordings[i], &rendering->filter, profile, side);
	return err;
}

int rendering_profile(const struct rendering *rendering, const struct profile_options *options,
		      struct profile **ret_profile)
{
	struct profile *profile = profile_create(options);
	int err = profile ? 0 : -ENOMEM;

	if (!err)
		err = replay_all(rendering, rendering->recordings, rendering->nr_recordings,
				 profile, PROFILE_SHOWN);
	if (!err)
		err = replay_all(rendering, rendering->bases, rendering->nr_bases, profile,
				 PROFILE_BASE);
	if (err)
		profile_destroy(profile);
	else
		*ret_profile = profile;
	return err;
}

/* Copy the runs of recordings. The caller frees the array. Returns NULL if out of memory. */
static struct run *copy_runs(struct recording *const *recordings, uint32_t nr)
{
	struct run *runs = calloc((size_t)nr + 1, sizeof(*runs)); /* + 1: never 0 bytes */

	for (uint32_t i = 0; runs && i < nr; i++)
		runs[i] = *recording_run(recordings[i]);
	return runs;
}

/* Give each process a root only if one of the recordings has several. */
static int choose_roots(struct rendering *rendering)
{
	struct recording *const *const lists[] = {rendering->recordings, rendering->bases};
	const uint32_t nrs[] = {rendering->nr_recordings, rendering->nr_bases};
	bool are_several = false;
	int err = 0;

	rendering->profile.merges_names = rendering->nr_bases > 0;
	if (!rendering->profile.by_process)
		return 0;
	for (int side = 0; side < 2; side++)
		for (uint32_t i = 0; !err && !are_several && i < nrs[side]; i++)
			err = replay_has_several_processes(lists[side][i], &rendering->filter,
							   &rendering->profile, &are_several);
	rendering->profile.by_process = are_several;
	return err;
}

static void set_shown_mode(struct run *runs, uint32_t nr, enum profile_mode mode)
{
	for (uint32_t i = 0; i < nr; i++)
		runs[i].info.shown_mode = mode;
}

/* Keep the accounts of a profile. Returns whether a requested side has nothing to show. */
static bool keep_accounts(struct rendering *rendering, const struct profile *profile)
{
	const struct profile_account *shown = &profile_sums(profile, PROFILE_SHOWN)->account;
	const struct profile_account *base = &profile_sums(profile, PROFILE_BASE)->account;

	/* Those of a profile that hides samples say more. */
	if (profile_mode(profile) == rendering->profile.mode || !rendering->has_accounts) {
		rendering->accounts[PROFILE_SHOWN] = *shown;
		rendering->accounts[PROFILE_BASE] = *base;
		rendering->has_accounts = true;
	}
	return profile_account_is_empty(shown) ||
	       (rendering->nr_bases && profile_account_is_empty(base));
}

/* Write the outputs whose profile has the same options as the next one's. */
static enum exit_status write_next(struct rendering *rendering, struct artefact *artefact,
				   struct run *runs, struct run *base_runs, struct outputs *outputs)
{
	struct profile_options options =
		output_profile_options(outputs_next(outputs), &rendering->profile);
	enum exit_status status = EXIT_NO_SAMPLE;
	struct profile *profile = NULL;
	int err;

	options.keep_threads = true;
	err = rendering_profile(rendering, &options, &profile);
	if (err) {
		print_error("cannot read the recording: %s", strerror(-err));
		outputs_skip(outputs, &options, &rendering->profile);
		return EXIT_ERROR;
	}
	artefact->profile = profile;
	set_shown_mode(runs, rendering->nr_recordings, options.mode);
	set_shown_mode(base_runs, rendering->nr_bases, options.mode);
	if (!keep_accounts(rendering, profile))
		status = outputs_write(outputs, artefact, &rendering->profile);
	profile_destroy(profile);
	return status;
}

enum exit_status rendering_write(struct rendering *rendering, struct outputs *outputs)
{
	cleanup_free struct run *runs = copy_runs(rendering->recordings, rendering->nr_recordings);
	cleanup_free struct run *base_runs = copy_runs(rendering->bases, rendering->nr_bases);
	struct artefact artefact = {
		.has_base = rendering->nr_bases > 0,
		.runs = runs,
		.nr_runs = rendering->nr_recordings,
		.base_runs = base_runs,
		.nr_base_runs = rendering->nr_bases,
		.options = rendering->layout,
	};
	enum exit_status status = EXIT_OK;
	int err;

	artefact.options.hides_idle = rendering->profile.mode == PROFILE_BUSY;
	if (!runs || !base_runs) {
		print_error("out of memory");
		return EXIT_ERROR;
	}
	err = choose_roots(rendering);
	if (err) {
		print_error("cannot read the recording: %s", strerror(-err));
		return EXIT_ERROR;
	}
	while (outputs_next(outputs)) {
		const enum exit_status written =
			write_next(rendering, &artefact, runs, base_runs, outputs);

		if (written == EXIT_NO_SAMPLE)
			return status == EXIT_OK ? written : status;
		if (written != EXIT_OK)
			status = written;
	}
	return status;
}
