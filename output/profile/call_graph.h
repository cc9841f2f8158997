/* SPDX-License-Identifier: MIT */
/*
 * The call graph of a profile: who calls whom, with weights. A party is a function, whichever of
 * its lines are frames, or the root of a thread.
 *
 * A recursive stack contains the same call or the same party more than once. Its samples count
 * once for each distinct call in it (seen) and once for each distinct party in it (total). first
 * splits a party's total by its outermost call, so a party's firsts add up to its total. No
 * weight exceeds that of the whole profile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/label.h"
#include "output/profile/profile.h"
#include "output/text/pair_map.h"

/* All weights are those of one side of the profile. */
struct call_party {
	uint32_t frame; /* one of its rows; PROFILE_NONE if it is in no stack */
	struct profile_weight self, total;
	uint32_t nr_active; /* scratch for the walk: its occurrences in the current stack */
};

struct call {
	/* A party, or a frame with by_line; PROFILE_NONE if the callee is outermost. */
	uint32_t caller;
	uint32_t callee; /* a party */
	struct profile_weight seen, first;
	uint32_t nr_active;
};

struct call_graph {
	const struct profile *profile; /* borrowed */
	bool by_line;		       /* callers are frames */
	struct call_party *parties;    /* owned; the functions in their order, then the roots */
	uint32_t nr_parties;
	uint32_t *party_of_frame; /* owned; indexed by frame */
	struct call *calls;	  /* owned; in the order of the tree's nodes */
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

/* Return the function of a party, or NULL if the party is the root of a thread. */
const struct profile_function *call_graph_function(const struct call_graph *graph, uint32_t party);

/*
 * Append the name of a party. A function is named with the line of its def, whatever its rows
 * are.
 */
void call_graph_label(const struct call_graph *graph, uint32_t party, struct text *text,
		      enum label_style style);
