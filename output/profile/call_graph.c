/* SPDX-License-Identifier: MIT */
#include "output/profile/call_graph.h"

#include <errno.h>
#include <stdlib.h>

#include "output/profile/tree_walk.h"
#include "procmem/array.h"

void call_graph_done(struct call_graph *graph)
{
	free(graph->vertices);
	free(graph->vertex_of_frame);
	free(graph->calls);
	pair_map_done(&graph->call_of_pair);
	*graph = (struct call_graph){0};
}

/* Give a vertex to every function and every thread root. */
static int vertices_init(struct call_graph *graph)
{
	uint32_t nr_frames;
	uint32_t nr_functions;
	const struct profile_frame *frames = profile_frames(graph->profile, &nr_frames);

	(void)profile_functions(graph->profile, &nr_functions);
	/* One more, because calloc() may return NULL for 0. */
	graph->vertex_of_frame = calloc((size_t)nr_frames + 1, sizeof(*graph->vertex_of_frame));
	graph->vertices = calloc((size_t)nr_functions + nr_frames + 1, sizeof(*graph->vertices));
	if (!graph->vertex_of_frame || !graph->vertices)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_functions; i++)
		graph->vertices[i].frame = PROFILE_NONE;
	graph->nr_vertices = nr_functions;
	for (uint32_t i = 0; i < nr_frames; i++) {
		uint32_t vertex = frames[i].function;

		if (vertex == PROFILE_NONE)
			vertex = graph->nr_vertices++;
		graph->vertex_of_frame[i] = vertex;
		graph->vertices[vertex].frame = i;
	}
	return 0;
}

static void weight_add(struct profile_weight *to, struct profile_weight weight)
{
	to->samples += weight.samples;
	to->ns += weight.ns;
}

/* Returns the caller for a call to a node's frame. */
static uint32_t node_caller(const struct call_graph *graph, const struct tree_walk *walk,
			    uint32_t node)
{
	uint32_t parent = walk->nodes[node].parent;
	uint32_t frame;

	if (parent == PROFILE_NONE)
		return PROFILE_NONE;
	frame = walk->nodes[parent].frame;
	return graph->by_line ? frame : graph->vertex_of_frame[frame];
}

/* Find the call of a pair, or add it. */
static int call_get(struct call_graph *graph, uint32_t caller, uint32_t callee,
		    struct call **ret_call)
{
	uint32_t index = pair_map_find(&graph->call_of_pair, caller, callee);
	struct call *calls;
	int err;

	if (index != PAIR_MAP_NONE) {
		*ret_call = &graph->calls[index];
		return 0;
	}
	calls = array_reserve(graph->calls, graph->nr_calls + 1, &graph->max_calls, sizeof(*calls));
	if (!calls)
		return -ENOMEM;
	graph->calls = calls;
	err = pair_map_add(&graph->call_of_pair, caller, callee, graph->nr_calls);
	if (err)
		return err;
	*ret_call = &calls[graph->nr_calls++];
	**ret_call = (struct call){.caller = caller, .callee = callee};
	return 0;
}

/* Enter a node: count its sum unless its vertex, or its call, is in the stack already. */
static void node_enter(struct call_vertex *vertex, struct call *call, struct profile_weight sum)
{
	if (vertex->nr_active++ == 0) {
		weight_add(&vertex->total, sum);
		weight_add(&call->first, sum);
	}
	if (call->nr_active++ == 0)
		weight_add(&call->seen, sum);
}

static int graph_walk(struct call_graph *graph, const struct tree_walk *walk)
{
	for (struct tree_step step = TREE_STEP_BEGIN; tree_walk_next(walk, &step);) {
		uint32_t callee = graph->vertex_of_frame[walk->nodes[step.node].frame];
		struct call_vertex *vertex = &graph->vertices[callee];
		struct call *call;
		int err = call_get(graph, node_caller(graph, walk, step.node), callee, &call);

		if (err)
			return err;
		if (!step.is_exit) {
			node_enter(vertex, call, walk->sums[step.node]);
			continue;
		}
		vertex->nr_active--;
		call->nr_active--;
	}
	return 0;
}

static void add_selves(struct call_graph *graph, enum profile_side side)
{
	uint32_t nr;
	const struct profile_node *nodes = profile_nodes(graph->profile, &nr);

	for (uint32_t i = 0; i < nr; i++)
		weight_add(&graph->vertices[graph->vertex_of_frame[nodes[i].frame]].self,
			   profile_weight(graph->profile, side, i));
}

int call_graph_init(struct call_graph *graph, const struct profile *profile, enum profile_side side,
		    bool by_line)
{
	struct tree_walk walk;
	int err;

	*graph = (struct call_graph){.profile = profile, .by_line = by_line};
	err = tree_walk_init(&walk, profile, side);
	if (!err)
		err = vertices_init(graph);
	if (!err)
		err = graph_walk(graph, &walk);
	if (!err)
		add_selves(graph, side);
	tree_walk_done(&walk);
	return err;
}

const struct profile_function *call_graph_function(const struct call_graph *graph, uint32_t vertex)
{
	uint32_t nr;
	const struct profile_function *functions = profile_functions(graph->profile, &nr);

	return vertex < nr ? &functions[vertex] : NULL;
}

void call_graph_label(const struct call_graph *graph, uint32_t vertex, struct text *text,
		      enum label_style style)
{
	const struct profile_function *function = call_graph_function(graph, vertex);

	if (function)
		label_append_function(text, function->qualname, function->path,
				      function->first_line, style);
	else
		label_append_frame(text, graph->profile, graph->vertices[vertex].frame, style);
}
