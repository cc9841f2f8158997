/* SPDX-License-Identifier: MIT */
/* The order in which a tree of stacks is drawn. */
#pragma once

#include "output/profile/tree_walk.h"

/*
 * Link the children of each node by name, then path and line, with the roots of threads first.
 * tree_walk_init() leaves them in the order of the nodes. Linear in the nodes, after a sort of
 * the frames. Returns 0, or -ENOMEM with the order unchanged.
 */
int tree_order_by_name(struct tree_walk *walk, const struct profile *profile);
