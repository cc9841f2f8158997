/* SPDX-License-Identifier: MIT */
/*
 * What a refresh of a live view shows of a profile with two sides (live.h): its functions or
 * lines, and for one of them its callers, the tree of what it calls, and its lines.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/profile/profile.h"

/* A function or, with by_line, one of its lines. Weights are by side. */
struct live_row {
	uint32_t id; /* a function of the profile or, with by_line, a frame of it */
	int32_t line; /* with by_line the line that was executing, else that of the def; 0: unknown */
	const struct profile_function *function; /* borrowed from the profile */
	struct profile_total weights[NR_PROFILE_SIDES];
};

struct live_figures {
	const struct profile *profile; /* borrowed; must not change */
	bool by_line;
	struct live_row *rows; /* owned; with samples on any side */
	uint32_t nr_rows;
};

/* Compute the rows. Returns 0 or -ENOMEM; call live_figures_done() either way. */
int live_figures_init(struct live_figures *figures, const struct profile *profile, bool by_line);
void live_figures_done(struct live_figures *figures);

/* What rows are sorted by. */
enum live_order { LIVE_BY_OWN, LIVE_BY_TOTAL, LIVE_BY_NAME };

/* Sort the rows by a weight of one side, the largest first, or by name. */
void live_figures_sort(struct live_figures *figures, enum profile_side side, enum live_order order);

/* Keep only the rows whose function's name or path has this text in it, in any case; "": all. */
void live_figures_filter(struct live_figures *figures, const char *text);

/* A caller, or a node of the tree of calls. */
struct live_call {
	const struct profile_function *function; /* borrowed from the profile; NULL: no caller */
	uint32_t depth; /* below the function, which is 0; 0 for a caller */
	uint64_t own_ns, total_ns;
};

/* A line of the function. */
struct live_line {
	int32_t line;
	struct profile_total weight;
};

/* One function, on one side. */
struct live_detail {
	struct live_call *callers; /* owned; the largest first */
	uint32_t nr_callers;
	/*
	 * Owned; the function and all that it called, whoever called it, each node before those
	 * below it, and of these the largest first. Nodes with less than 0.5 % of the function's
	 * time are left out, and those below LIVE_MAX_DEPTH.
	 */
	struct live_call *tree;
	uint32_t nr_tree;
	struct live_line *lines; /* owned; in their order */
	uint32_t nr_lines;
};

/* Deeper trees do not fit on a screen, and recursion makes them much deeper. */
enum { LIVE_MAX_DEPTH = 64 };

/* Compute the detail of a row's function. Returns 0 or -ENOMEM; call live_detail_done() either way. */
int live_detail_init(struct live_detail *detail, const struct live_figures *figures,
		     const struct live_row *row, enum profile_side side);
void live_detail_done(struct live_detail *detail);
