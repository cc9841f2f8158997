/* SPDX-License-Identifier: MIT */
/* Sums over a profile's rows: profile_totals(), profile_rootless_idle(). */
#include <errno.h>
#include <stdlib.h>

#include "output/profile/profile.h"
#include "output/profile/tree_walk.h"
#include "procmem/cleanup.h"

/*
 * Add each node's sum to its frame's total, except below another node of the same frame, whose
 * sum includes it. nr_active counts each frame's occurrences on the current path.
 */
static void add_totals(const struct tree_walk *walk, uint32_t *nr_active,
		       struct profile_total *totals)
{
	for (struct tree_step step = TREE_STEP_BEGIN; tree_walk_next(walk, &step);) {
		uint32_t frame = walk->nodes[step.node].frame;

		if (step.is_exit) {
			nr_active[frame]--;
		} else if (nr_active[frame]++ == 0) {
			totals[frame].total_ns += walk->sums[step.node].ns;
			totals[frame].total_samples += walk->sums[step.node].samples;
		}
	}
}

static void add_selves(const struct profile *profile, enum profile_side side,
		       struct profile_total *totals)
{
	uint32_t nr;
	const struct profile_node *nodes = profile_nodes(profile, &nr);

	for (uint32_t i = 0; i < nr; i++)
		totals[nodes[i].frame].self_ns += profile_weight(profile, side, i).ns;
}

int profile_totals(const struct profile *profile, enum profile_side side,
		   struct profile_total **ret_totals)
{
	cleanup_free uint32_t *nr_active = NULL;
	struct profile_total *totals;
	struct tree_walk walk;
	uint32_t nr_frames;
	int err = tree_walk_init(&walk, profile, side);

	(void)profile_frames(profile, &nr_frames);
	/* One more, because calloc() may return NULL for 0. */
	nr_active = calloc((size_t)nr_frames + 1, sizeof(*nr_active));
	totals = calloc((size_t)nr_frames + 1, sizeof(*totals));
	if (!nr_active || !totals)
		err = -ENOMEM;
	if (!err) {
		add_totals(&walk, nr_active, totals);
		add_selves(profile, side, totals);
		*ret_totals = totals;
	} else {
		free(totals);
	}
	tree_walk_done(&walk);
	return err;
}

struct profile_weight profile_rootless_idle(const struct profile *profile, enum profile_side side)
{
	const struct profile_sums *sums = profile_sums(profile, side);
	struct profile_weight idle = {sums->nr_frameless, sums->frameless_ns};
	uint32_t nr;
	const struct profile_frame *frames = profile_frames(profile, &nr);
	const struct profile_node *nodes = profile_nodes(profile, &nr);

	for (uint32_t i = 0; i < nr; i++)
		if (frames[nodes[i].frame].function == PROFILE_NONE) {
			struct profile_weight root = profile_weight(profile, side, i);

			idle.samples -= root.samples;
			idle.ns -= root.ns;
		}
	return idle;
}
