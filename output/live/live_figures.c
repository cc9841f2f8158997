/* SPDX-License-Identifier: MIT */
#include "output/live/live_figures.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/call_graph.h"
#include "output/tables/pair_map.h"
#include "procmem/array.h"
#include "procmem/cleanup.h"

/* The rows. */

/* Add the functions or lines that have samples; totals are by side and id. */
static void add_rows(struct live_figures *figures, struct profile_total *const *totals, uint32_t nr)
{
	uint32_t nr_all;
	const struct profile_frame *frames = profile_frames(figures->profile, &nr_all);
	const struct profile_function *functions = profile_functions(figures->profile, &nr_all);

	for (uint32_t i = 0; i < nr; i++) {
		const uint32_t function = figures->by_line ? frames[i].function : i;

		if (function == PROFILE_NONE ||
		    (!totals[PROFILE_SHOWN][i].total_ns && !totals[PROFILE_BASE][i].total_ns))
			continue;
		figures->rows[figures->nr_rows++] = (struct live_row){
			.id = i,
			.line = figures->by_line ? frames[i].line : functions[i].first_line,
			.function = &functions[function],
			.weights = {[PROFILE_SHOWN] = totals[PROFILE_SHOWN][i],
				    [PROFILE_BASE] = totals[PROFILE_BASE][i]},
		};
	}
}

int live_figures_init(struct live_figures *figures, const struct profile *profile, bool by_line)
{
	struct profile_total *totals[NR_PROFILE_SIDES] = {NULL};
	uint32_t nr;
	int err = 0;

	*figures = (struct live_figures){.profile = profile, .by_line = by_line};
	for (int side = 0; !err && side < NR_PROFILE_SIDES; side++)
		err = by_line ? profile_totals(profile, side, &totals[side])
			      : profile_function_totals(profile, side, &totals[side]);
	if (by_line)
		(void)profile_frames(profile, &nr);
	else
		(void)profile_functions(profile, &nr);
	if (!err)
		figures->rows = calloc((size_t)nr + 1, sizeof(*figures->rows));
	if (figures->rows)
		add_rows(figures, totals, nr);
	else
		err = -ENOMEM;
	for (int side = 0; side < NR_PROFILE_SIDES; side++)
		free(totals[side]);
	return err;
}

void live_figures_done(struct live_figures *figures)
{
	free(figures->rows);
	*figures = (struct live_figures){.profile = NULL};
}

struct order {
	enum profile_side side;
	enum live_order order;
};

static int compare(uint64_t a, uint64_t b)
{
	return a == b ? 0 : a < b ? 1 : -1;
}

/* By the order; then by the other weights, so that equal ones do not change places. */
static int compare_rows(const void *left, const void *right, void *context)
{
	const struct live_row *a = left, *b = right;
	const struct order *order = context;
	const struct profile_total *weight_a = &a->weights[order->side];
	const struct profile_total *weight_b = &b->weights[order->side];
	const struct profile_total *all_a = &a->weights[PROFILE_SHOWN];
	const struct profile_total *all_b = &b->weights[PROFILE_SHOWN];
	int result = 0;

	if (order->order == LIVE_BY_NAME)
		result = strcmp(a->function->qualname, b->function->qualname);
	else if (order->order == LIVE_BY_TOTAL)
		result = compare(weight_a->total_ns, weight_b->total_ns);
	if (!result && order->order != LIVE_BY_NAME)
		result = compare(weight_a->self_ns, weight_b->self_ns);
	if (!result)
		result = compare(weight_a->total_ns, weight_b->total_ns);
	if (!result)
		result = compare(all_a->self_ns, all_b->self_ns);
	if (!result)
		result = compare(all_a->total_ns, all_b->total_ns);
	return result ? result : (a->id > b->id) - (a->id < b->id);
}

void live_figures_sort(struct live_figures *figures, enum profile_side side, enum live_order order)
{
	struct order by = {side, order};

	if (figures->nr_rows)
		qsort_r(figures->rows, figures->nr_rows, sizeof(*figures->rows), compare_rows, &by);
}

void live_figures_filter(struct live_figures *figures, const char *text)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < figures->nr_rows; i++) {
		const struct live_row row = figures->rows[i];

		if (strcasestr(row.function->qualname, text) ||
		    strcasestr(row.function->path, text))
			figures->rows[nr++] = row;
	}
	figures->nr_rows = nr;
}

/* The detail. */

static int compare_calls(const void *left, const void *right)
{
	const struct live_call *a = left, *b = right;
	const int result = compare(a->total_ns, b->total_ns);

	return result ? result : (a->function > b->function) - (a->function < b->function);
}

/* Returns the function of a vertex; NULL if that is PROFILE_NONE. */
static const struct profile_function *function_of(const struct call_graph *graph, uint32_t vertex)
{
	return vertex == PROFILE_NONE ? NULL : call_graph_function(graph, vertex);
}

/* Collect the callers. Returns 0 or -ENOMEM. */
static int add_callers(struct live_detail *detail, const struct call_graph *graph,
		       uint32_t function)
{
	detail->callers = calloc((size_t)graph->nr_calls + 1, sizeof(*detail->callers));
	if (!detail->callers)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->nr_calls; i++)
		if (graph->calls[i].callee == function && graph->calls[i].seen.ns)
			detail->callers[detail->nr_callers++] = (struct live_call){
				.function = function_of(graph, graph->calls[i].caller),
				.total_ns = graph->calls[i].seen.ns,
			};
	if (detail->nr_callers)
		qsort(detail->callers, detail->nr_callers, sizeof(*detail->callers), compare_calls);
	return 0;
}

static int compare_lines(const void *left, const void *right)
{
	const struct live_line *a = left, *b = right;

	return (a->line > b->line) - (a->line < b->line);
}

/* Collect the lines; totals are by frame. Returns 0 or -ENOMEM. */
static int add_detail_lines(struct live_detail *detail, const struct profile *profile,
			    const struct profile_total *totals, uint32_t function)
{
	uint32_t nr, max = 0;
	const struct profile_frame *frames = profile_frames(profile, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		struct live_line *lines;

		if (frames[i].function != function || !totals[i].total_ns)
			continue;
		lines = array_reserve(detail->lines, detail->nr_lines + 1, &max, sizeof(*lines));
		if (!lines)
			return -ENOMEM;
		detail->lines = lines;
		lines[detail->nr_lines++] = (struct live_line){frames[i].line, totals[i]};
	}
	if (detail->nr_lines)
		qsort(detail->lines, detail->nr_lines, sizeof(*detail->lines), compare_lines);
	return 0;
}

/* The tree of a function while it is merged: nodes of one function below one parent are one. */
struct merged_node {
	uint32_t function, parent; /* parent is an index below its own; PROFILE_NONE: outermost */
	uint32_t depth;
	uint64_t own_ns, total_ns;
};

struct merged_tree {
	const struct profile_function *functions; /* borrowed from the profile */
	struct merged_node *nodes;		  /* owned */
	uint32_t nr, max;
	struct pair_map of_call; /* (parent, function) → node */
	uint32_t *of_node;	 /* owned; by node of the profile; PROFILE_NONE: not below it */
};

/* Find the node of a function below a parent, or add it. Returns 0 or -ENOMEM. */
static int merged_get(struct merged_tree *merged, uint32_t parent, uint32_t function,
		      uint32_t *ret_node)
{
	struct merged_node *nodes;
	int err;

	*ret_node = pair_map_find(&merged->of_call, parent, function);
	if (*ret_node != PAIR_MAP_NONE)
		return 0;
	nodes = array_reserve(merged->nodes, merged->nr + 1, &merged->max, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	merged->nodes = nodes;
	err = pair_map_add(&merged->of_call, parent, function, merged->nr);
	if (err)
		return err;
	*ret_node = merged->nr++;
	nodes[*ret_node] = (struct merged_node){
		.function = function,
		.parent = parent,
		.depth = parent == PROFILE_NONE ? 0 : nodes[parent].depth + 1,
	};
	return 0;
}

/*
 * Merge all nodes below the outermost ones of a function, which come before theirs. What is too
 * deep counts for the deepest node that is shown. Returns 0 or -ENOMEM.
 */
static int merge(struct merged_tree *merged, const struct profile *profile, enum profile_side side,
		 uint32_t function)
{
	uint32_t nr_nodes, nr_frames;
	const struct profile_node *nodes = profile_nodes(profile, &nr_nodes);
	const struct profile_frame *frames = profile_frames(profile, &nr_frames);
	uint32_t root;
	int err = merged_get(merged, PROFILE_NONE, function, &root);

	merged->of_node = calloc((size_t)nr_nodes + 1, sizeof(*merged->of_node));
	if (err || !merged->of_node)
		return -ENOMEM;
	assert(merged->nodes);
	for (uint32_t i = 0; !err && i < nr_nodes; i++) {
		const uint32_t callee = frames[nodes[i].frame].function;
		const uint32_t parent = nodes[i].parent == PROFILE_NONE
						? PROFILE_NONE
						: merged->of_node[nodes[i].parent];
		uint32_t *node = &merged->of_node[i];

		*node = parent != PROFILE_NONE ? parent : callee == function ? root : PROFILE_NONE;
		if (parent != PROFILE_NONE && merged->nodes[parent].depth < LIVE_MAX_DEPTH)
			err = merged_get(merged, parent, callee, node);
		if (!err && *node != PROFILE_NONE)
			merged->nodes[*node].own_ns += profile_weight(profile, side, i).ns;
	}
	for (uint32_t i = merged->nr; i-- > 0;) {
		struct merged_node *node = &merged->nodes[i];

		node->total_ns += node->own_ns;
		if (node->parent != PROFILE_NONE)
			merged->nodes[node->parent].total_ns += node->total_ns;
	}
	return err;
}

static int compare_merged(const void *left, const void *right, void *context)
{
	const struct merged_node *nodes = context;
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const int result = compare(nodes[a].total_ns, nodes[b].total_ns);

	return result ? result : (a > b) - (a < b);
}

/* Nodes with less than this part of the function's time are left out. */
enum { MIN_PART = 200 };

/*
 * Put the nodes in order: each before those below it, the largest first. order has all nodes by
 * their total; the last of what is below a node is put first onto the stack.
 */
static void add_tree(struct live_detail *detail, const struct merged_tree *merged,
		     const uint32_t *order, uint32_t *first_child, uint32_t *next_sibling)
{
	const uint64_t least_ns = merged->nodes[0].total_ns / MIN_PART;
	uint32_t stack[LIVE_MAX_DEPTH + 2];
	uint32_t nr = 0;

	for (uint32_t i = 0; i < merged->nr; i++)
		first_child[i] = PROFILE_NONE;
	for (uint32_t i = merged->nr; i-- > 0;) {
		const uint32_t node = order[i], parent = merged->nodes[node].parent;

		if (parent == PROFILE_NONE || !merged->nodes[node].total_ns ||
		    merged->nodes[node].total_ns < least_ns)
			continue;
		next_sibling[node] = first_child[parent];
		first_child[parent] = node;
	}
	next_sibling[0] = PROFILE_NONE;
	stack[nr++] = 0;
	while (nr) {
		const uint32_t node = stack[--nr];
		const struct merged_node *from = &merged->nodes[node];

		detail->tree[detail->nr_tree++] = (struct live_call){
			.function = &merged->functions[from->function],
			.depth = from->depth,
			.own_ns = from->own_ns,
			.total_ns = from->total_ns,
		};
		/* At most one node a level waits. */
		if (next_sibling[node] != PROFILE_NONE)
			stack[nr++] = next_sibling[node];
		if (first_child[node] != PROFILE_NONE)
			stack[nr++] = first_child[node];
	}
}

/* Compute the tree. Returns 0 or -ENOMEM. */
static int make_tree(struct live_detail *detail, const struct merged_tree *merged)
{
	const size_t nr = (size_t)merged->nr + 1;
	cleanup_free uint32_t *order = calloc(nr, sizeof(*order));
	cleanup_free uint32_t *first_child = calloc(nr, sizeof(*first_child));
	cleanup_free uint32_t *next_sibling = calloc(nr, sizeof(*next_sibling));

	detail->tree = calloc(nr, sizeof(*detail->tree));
	if (!order || !first_child || !next_sibling || !detail->tree)
		return -ENOMEM;
	for (uint32_t i = 0; i < merged->nr; i++)
		order[i] = i;
	qsort_r(order, merged->nr, sizeof(*order), compare_merged, merged->nodes);
	add_tree(detail, merged, order, first_child, next_sibling);
	return 0;
}

int live_detail_init(struct live_detail *detail, const struct live_figures *figures,
		     const struct live_row *row, enum profile_side side)
{
	const struct profile *profile = figures->profile;
	cleanup_free struct profile_total *totals = NULL;
	struct merged_tree merged = {.nr = 0};
	struct call_graph graph;
	uint32_t nr;
	const struct profile_function *functions = profile_functions(profile, &nr);
	const uint32_t function = (uint32_t)(row->function - functions);
	int err = call_graph_init(&graph, profile, side, false);

	*detail = (struct live_detail){.nr_tree = 0};
	merged.functions = functions;
	if (!err)
		err = add_callers(detail, &graph, function);
	call_graph_done(&graph);
	if (!err)
		err = profile_totals(profile, side, &totals);
	if (!err)
		err = add_detail_lines(detail, profile, totals, function);
	if (!err)
		err = merge(&merged, profile, side, function);
	if (!err)
		err = make_tree(detail, &merged);
	free(merged.nodes);
	free(merged.of_node);
	pair_map_done(&merged.of_call);
	return err;
}

void live_detail_done(struct live_detail *detail)
{
	free(detail->callers);
	free(detail->tree);
	free(detail->lines);
	*detail = (struct live_detail){.nr_tree = 0};
}
