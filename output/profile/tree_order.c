/* SPDX-License-Identifier: MIT */
#include "output/profile/tree_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"

/* What frames are compared by. */
struct naming {
	const struct profile *profile;
};

/* By name, then path and line; roots first, in order of arrival. */
static int compare_frames(const void *a, const void *b, void *context)
{
	const struct profile *profile = ((const struct naming *)context)->profile;
	uint32_t nr;
	const struct profile_function *functions = profile_functions(profile, &nr);
	const struct profile_frame *one = &profile_frames(profile, &nr)[*(const uint32_t *)a];
	const struct profile_frame *other = &profile_frames(profile, &nr)[*(const uint32_t *)b];
	int order;

	if (one->root && one->root == other->root)
		return one->owner < other->owner ? -1 : one->owner > other->owner;
	if (one->root || other->root)
		return one->root > other->root ? -1 : 1;
	order = strcmp(functions[one->function].qualname, functions[other->function].qualname);
	if (!order)
		order = strcmp(functions[one->function].path, functions[other->function].path);
	return order ? order : one->line < other->line ? -1 : one->line > other->line;
}

/*
 * Relink the children of each node in the order of their frames. Linear in the nodes: the nodes
 * of each frame are pushed on their parents' lists, from the last frame to the first.
 */
static void relink_children(struct tree_walk *walk, const uint32_t *order, uint32_t nr_frames,
			    uint32_t *first_of_frame, uint32_t *next_of_frame)
{
	for (uint32_t i = 0; i < nr_frames; i++)
		first_of_frame[i] = PROFILE_NONE;
	for (uint32_t i = 0; i < walk->nr_nodes; i++) {
		next_of_frame[i] = first_of_frame[walk->nodes[i].frame];
		first_of_frame[walk->nodes[i].frame] = i;
	}
	for (uint32_t i = 0; i <= walk->nr_nodes; i++)
		walk->first_child[i] = PROFILE_NONE;
	for (uint32_t i = nr_frames; i-- > 0;)
		for (uint32_t node = first_of_frame[order[i]]; node != PROFILE_NONE;
		     node = next_of_frame[node]) {
			uint32_t parent = walk->nodes[node].parent;
			uint32_t owner = parent == PROFILE_NONE ? walk->nr_nodes : parent;

			walk->next_sibling[node] = walk->first_child[owner];
			walk->first_child[owner] = node;
		}
}

int tree_order_by_name(struct tree_walk *walk, const struct profile *profile)
{
	uint32_t nr;
	const struct profile_frame *frames = profile_frames(profile, &nr);
	cleanup_free uint32_t *order = calloc((size_t)nr + 1, sizeof(*order));
	cleanup_free uint32_t *first_of_frame = calloc((size_t)nr + 1, sizeof(*first_of_frame));
	cleanup_free uint32_t *next_of_frame =
		calloc((size_t)walk->nr_nodes + 1, sizeof(*next_of_frame));
	struct naming naming = {profile};

	if (!order || !first_of_frame || !next_of_frame)
		return -ENOMEM;
	for (uint32_t i = 0; frames && i < nr; i++)
		order[i] = i;
	qsort_r(order, nr, sizeof(*order), compare_frames, &naming);
	relink_children(walk, order, nr, first_of_frame, next_of_frame);
	return 0;
}
