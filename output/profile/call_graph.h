/* SPDX-License-Identifier: MIT */
/*
 * Who calls whom in a profile, and what the calls weigh. A party is a function, whatever
 * lines of it are frames, or the root of a thread.
 *
 * A stack that recurses goes through the same call, or the same party, more than once. Its
 * samples are counted once for each call in it (seen), and once for each party in it
 * (total). first splits a party's total by how its outermost call came about, so that a
 * party's firsts add up to its total; nothing is ever more than the whole profile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/label.h"
#include "output/profile/profile.h"
#include "output/text/pair_map.h"

/* Weights are of one side of the profile. */
struct call_party {
	uint32_t frame; /* one of its rows */
	struct profile_weight self, total;
	uint32_t nr_active; /* while the graph is made: how often it is in the stack */
};

struct call {
	uint32_t caller; /* a party, or with by_line a frame; PROFILE_NONE: it is outermost */
	uint32_t callee; /* a party */
	struct profile_weight seen, first;
	uint32_t nr_active;
};

struct call_graph {
	const struct profile *profile; /* borrowed */
	bool by_line;		       /* callers are frames */
	struct call_party *parties;    /* owned; in the order of the functions, then the roots */
	uint32_t nr_parties;
	uint32_t *party_of_frame; /* owned; for each frame */
	struct call *calls;	  /* owned; in the order of the tree's nodes */
	uint32_t nr_calls, max_calls;
	struct pair_map call_of_pair; /* (caller, callee) → call */
};

/*
 * Make the graph of one side, in time linear in the nodes. A party whose frame is
 * PROFILE_NONE is in no stack. 0 or -ENOMEM.
 */
int call_graph_init(struct call_graph *graph, const struct profile *profile, enum profile_side side,
		    bool by_line);

/* Free what it holds, whether call_graph_init() succeeded or not. */
void call_graph_done(struct call_graph *graph);

/* The function of a party; NULL if it is the root of a thread. */
const struct profile_function *call_graph_function(const struct call_graph *graph, uint32_t party);

/* Append the name of a party: of a function with the line of its def, whatever rows there are. */
void call_graph_label(const struct call_graph *graph, uint32_t party, struct text *text,
		      enum label_style style);
