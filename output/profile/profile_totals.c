/* SPDX-License-Identifier: MIT */
/* Sums over a profile's rows: profile_totals() and its siblings. */
#include <errno.h>
#include <stdlib.h>

#include "output/profile/profile.h"
#include "output/profile/tree_walk.h"
#include "procmem/cleanup.h"

/* What totals are of: the frames or the functions of a profile, by their indices. */
struct rows {
	const struct profile_frame *frames; /* borrowed */
	bool are_functions;
	uint32_t nr;
};

static struct rows rows_of(const struct profile *profile, bool are_functions)
{
	struct rows rows = {.are_functions = are_functions};

	rows.frames = profile_frames(profile, &rows.nr);
	if (are_functions)
		(void)profile_functions(profile, &rows.nr);
	return rows;
}

/* Returns the row of a frame; PROFILE_NONE: the root of a thread is no function. */
static uint32_t row_of(const struct rows *rows, uint32_t frame)
{
	return rows->are_functions ? rows->frames[frame].function : frame;
}

/*
 * Add each node's sum to its row's total, except below another node of the same row, whose sum
 * includes it. nr_active counts each row's occurrences on the current path.
 */
static void add_totals(const struct tree_walk *walk, const struct rows *rows, uint32_t *nr_active,
		       struct profile_total *totals)
{
	for (struct tree_step step = TREE_STEP_BEGIN; tree_walk_next(walk, &step);) {
		const uint32_t row = row_of(rows, walk->nodes[step.node].frame);

		if (row == PROFILE_NONE)
			continue;
		if (step.is_exit) {
			nr_active[row]--;
		} else if (nr_active[row]++ == 0) {
			totals[row].total_ns += walk->sums[step.node].ns;
			totals[row].total_samples += walk->sums[step.node].samples;
		}
	}
}

static void add_selves(const struct profile *profile, enum profile_side side,
		       const struct rows *rows, struct profile_total *totals)
{
	uint32_t nr;
	const struct profile_node *nodes = profile_nodes(profile, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		const uint32_t row = row_of(rows, nodes[i].frame);

		if (row != PROFILE_NONE)
			totals[row].self_ns += profile_weight(profile, side, i).ns;
	}
}

static int compute(const struct profile *profile, enum profile_side side, const struct rows *rows,
		   struct profile_total **ret_totals)
{
	/* One more, because calloc() may return NULL for 0. */
	cleanup_free uint32_t *nr_active = calloc((size_t)rows->nr + 1, sizeof(*nr_active));
	struct profile_total *totals = calloc((size_t)rows->nr + 1, sizeof(*totals));
	struct tree_walk walk;
	int err = tree_walk_init(&walk, profile, side);

	if (!nr_active || !totals)
		err = -ENOMEM;
	if (!err) {
		add_totals(&walk, rows, nr_active, totals);
		add_selves(profile, side, rows, totals);
		*ret_totals = totals;
	} else {
		free(totals);
	}
	tree_walk_done(&walk);
	return err;
}

int profile_totals(const struct profile *profile, enum profile_side side,
		   struct profile_total **ret_totals)
{
	const struct rows rows = rows_of(profile, false);

	return compute(profile, side, &rows, ret_totals);
}

int profile_function_totals(const struct profile *profile, enum profile_side side,
			    struct profile_total **ret_totals)
{
	const struct rows rows = rows_of(profile, true);

	return compute(profile, side, &rows, ret_totals);
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
