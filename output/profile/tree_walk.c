/* SPDX-License-Identifier: MIT */
#include "output/profile/tree_walk.h"

#include <errno.h>
#include <stdlib.h>

void tree_walk_done(struct tree_walk *walk)
{
	free(walk->first_child);
	free(walk->next_sibling);
	free(walk->sums);
	*walk = (struct tree_walk){0};
}

/* Children come after their parents, so going backwards each sum is complete when it is added. */
static void tree_walk_link(struct tree_walk *walk)
{
	for (uint32_t i = walk->nr_nodes; i-- > 0;) {
		uint32_t parent = walk->nodes[i].parent;
		uint32_t owner = parent == PROFILE_NONE ? walk->nr_nodes : parent;

		walk->next_sibling[i] = walk->first_child[owner];
		walk->first_child[owner] = i;
		walk->sums[owner].samples += walk->sums[i].samples;
		walk->sums[owner].ns += walk->sums[i].ns;
	}
}

int tree_walk_init(struct tree_walk *walk, const struct profile *profile, enum profile_side side)
{
	uint32_t nr_nodes;
	const struct profile_node *nodes = profile_nodes(profile, &nr_nodes);
	size_t room = (size_t)nr_nodes + 1;

	*walk = (struct tree_walk){
		.nodes = nodes,
		.nr_nodes = nr_nodes,
		.first_child = calloc(room, sizeof(*walk->first_child)),
		.next_sibling = calloc(room, sizeof(*walk->next_sibling)),
		.sums = calloc(room, sizeof(*walk->sums)),
	};
	if (!walk->first_child || !walk->next_sibling || !walk->sums)
		return -ENOMEM;
	for (uint32_t i = 0; i <= nr_nodes; i++)
		walk->first_child[i] = PROFILE_NONE;
	for (uint32_t i = 0; i < nr_nodes; i++)
		walk->sums[i] = profile_weight(profile, side, i);
	tree_walk_link(walk);
	return 0;
}

bool tree_walk_next(const struct tree_walk *walk, struct tree_step *step)
{
	uint32_t here = step->node == PROFILE_NONE ? walk->nr_nodes : step->node;
	uint32_t next = step->is_exit ? walk->next_sibling[here] : walk->first_child[here];

	if (next != PROFILE_NONE)
		*step = (struct tree_step){next, false};
	else if (here == walk->nr_nodes)
		return false;
	else if (!step->is_exit)
		step->is_exit = true;
	else
		step->node = walk->nodes[here].parent;
	return step->node != PROFILE_NONE;
}
