/* SPDX-License-Identifier: MIT */
/* The order in which a tree of stacks is drawn. */
#pragma once

#include "output/profile/tree_walk.h"

/*
 * Link the children of each node, which the profile's order decides otherwise, in that of
 * their functions' names, then paths and lines, roots of threads first. Linear in the nodes.
 * 0; -ENOMEM, and they are as before.
 */
int tree_order_by_name(struct tree_walk *walk, const struct profile *profile);
