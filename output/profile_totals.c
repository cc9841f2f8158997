/* SPDX-License-Identifier: MIT */
/* Self and total times of a profile's rows: profile_totals(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile.h"

/* What profile_totals() works with, all owned. */
struct tree_walk {
	uint32_t *first_child; /* one more than nodes: the last one's are the outermost nodes */
	uint32_t *next_sibling;
	uint32_t *nr_active;	   /* for each frame: how often it is on the path being walked */
	struct profile_node *sums; /* the nodes, the time of each including all that is below it */
	uint32_t nr_nodes;
};

static void tree_walk_done(struct tree_walk *walk)
{
	free(walk->first_child);
	free(walk->next_sibling);
	free(walk->nr_active);
	free(walk->sums);
}

static int tree_walk_init(struct tree_walk *walk, const struct profile *profile,
			  enum profile_side side)
{
	uint32_t nr_nodes;
	uint32_t nr_frames;
	const struct profile_node *nodes = profile_nodes(profile, &nr_nodes);
	size_t nr = nr_nodes;

	(void)profile_frames(profile, &nr_frames);
	/* One more of each, as in totals_create(). */
	*walk = (struct tree_walk){
		.first_child = calloc(nr + 1, sizeof(*walk->first_child)),
		.next_sibling = calloc(nr + 1, sizeof(*walk->next_sibling)),
		.nr_active = calloc((size_t)nr_frames + 1, sizeof(*walk->nr_active)),
		.sums = calloc(nr + 1, sizeof(*walk->sums)),
		.nr_nodes = nr_nodes,
	};
	if (!walk->first_child || !walk->next_sibling || !walk->nr_active || !walk->sums)
		return -ENOMEM;
	for (size_t i = 0; i <= nr; i++)
		walk->first_child[i] = PROFILE_NONE;
	if (nr)
		memcpy(walk->sums, nodes, nr * sizeof(*walk->sums));
	for (uint32_t i = 0; side != PROFILE_SELF && i < nr_nodes; i++)
		walk->sums[i].self_ns = profile_weight(profile, side, i).ns;
	return 0;
}

/* Link the children and sum up the weights; children come after their parents. */
static void tree_walk_link(struct tree_walk *walk)
{
	struct profile_node *sums = walk->sums;

	for (uint32_t i = walk->nr_nodes; i-- > 0;) {
		uint32_t parent = sums[i].parent;
		uint32_t owner = parent == PROFILE_NONE ? walk->nr_nodes : parent;

		walk->next_sibling[i] = walk->first_child[owner];
		walk->first_child[owner] = i;
		sums[owner].self_ns += sums[i].self_ns;
	}
}

/* Leave a node that has no (more) children; returns the next one to enter. */
static uint32_t tree_walk_leave(struct tree_walk *walk, uint32_t node)
{
	for (; node != PROFILE_NONE; node = walk->sums[node].parent) {
		walk->nr_active[walk->sums[node].frame]--;
		if (walk->next_sibling[node] != PROFILE_NONE)
			return walk->next_sibling[node];
	}
	return PROFILE_NONE;
}

/*
 * Add every node's sum to its frame's total, except below another node of that
 * frame, which has it already. Depth first and without recursion: the target
 * decides how deep the tree is.
 */
static void tree_walk_total(struct tree_walk *walk, struct profile_total *totals)
{
	uint32_t node = walk->first_child[walk->nr_nodes];

	while (node != PROFILE_NONE) {
		const struct profile_node *sum = &walk->sums[node];

		if (walk->nr_active[sum->frame]++ == 0)
			totals[sum->frame].total_ns += sum->self_ns;
		if (walk->first_child[node] != PROFILE_NONE)
			node = walk->first_child[node];
		else
			node = tree_walk_leave(walk, node);
	}
}

/* A total for every frame, with what is its own already in it. */
static struct profile_total *totals_create(const struct profile *profile, enum profile_side side)
{
	uint32_t nr_nodes;
	uint32_t nr_frames;
	const struct profile_node *nodes = profile_nodes(profile, &nr_nodes);
	struct profile_total *totals;

	(void)profile_frames(profile, &nr_frames);
	/* One more: never 0, for which calloc() may give NULL. */
	totals = calloc((size_t)nr_frames + 1, sizeof(*totals));
	if (!totals)
		return NULL;
	for (uint32_t i = 0; i < nr_nodes; i++)
		totals[nodes[i].frame].self_ns += profile_weight(profile, side, i).ns;
	return totals;
}

int profile_totals(const struct profile *profile, enum profile_side side,
		   struct profile_total **ret_totals)
{
	struct profile_total *totals = totals_create(profile, side);
	struct tree_walk walk;
	int err = tree_walk_init(&walk, profile, side);

	if (!totals)
		err = -ENOMEM;
	if (!err) {
		tree_walk_link(&walk);
		tree_walk_total(&walk, totals);
		*ret_totals = totals;
	} else {
		free(totals);
	}
	tree_walk_done(&walk);
	return err;
}
