/* SPDX-License-Identifier: MIT */
/*
 * The call graph of a profile: who calls whom, with weights. A vertex is a function, whichever of
 * its lines are frames, or the root of a thread.
 *
 * A recursive stack contains the same call or the same vertex more than once. Its samples count
 * once for each distinct call in it (seen) and once for each distinct vertex in it (total). first
 * splits a vertex's total by its outermost call, so a vertex's firsts add up to its total. No
 * weight exceeds that of the whole profile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/label.h"
#include "output/profile/profile.h"
#include "output/tables/pair_map.h"

/* All weights are those of one side of the profile. */
struct call_vertex {
	uint32_t frame; /* one of its rows; PROFILE_NONE if it is in no stack */
	struct profile_weight self, total;
	uint32_t nr_active; /* scratch for the walk: its occurrences in the current stack */
};

struct call {
	/* A vertex, or a frame with by_line; PROFILE_NONE if the callee is outermost. */
	uint32_t caller;
	uint32_t callee; /* a vertex */
	struct profile_weight seen, first;
	uint32_t nr_active;
};

struct call_graph {
	const struct profile *profile; /* borrowed */
	bool by_line;		       /* callers are frames */
	struct call_vertex *vertices;  /* owned; the functions in their order, then the roots */
	uint32_t nr_vertices;
	uint32_t *vertex_of_frame; /* owned; indexed by frame */
	struct call *calls;	   /* owned; in the order of the tree's nodes */
	uint32_t nr_calls, max_calls;
	struct pair_map call_of_pair; /* (caller, callee) → call */
};

/*
 * Build the graph of one side, in time linear in the number of nodes. Returns 0 or -ENOMEM; call
 * call_graph_done() either way.
 */
int call_graph_init(struct call_graph *graph, const struct profile *profile, enum profile_side side,
		    bool by_line);

/* Free the graph's tables, whether call_graph_init() succeeded or not. */
void call_graph_done(struct call_graph *graph);

/* Returns the function of a vertex, or NULL if the vertex is the root of a thread. */
const struct profile_function *call_graph_function(const struct call_graph *graph, uint32_t vertex);

/*
 * Append the name of a vertex. A function is named with the line of its def, whatever its rows
 * are.
 */
void call_graph_label(const struct call_graph *graph, uint32_t vertex, struct text *text,
		      enum label_style style);
