/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

#include "output/profile/call_graph.h"
#include "procmem/cleanup.h"
#include "tests/support/stack_profile.h"

/* Few functions and lines, so that all kinds of recursion occur. */
#define NR_SAMPLES   500
#define NR_FUNCTIONS 4
#define NR_LINES     2
#define MAX_DEPTH    7

/* A caller in the oracle is a function on a line. OUTERMOST stands for no caller. */
#define OUTERMOST (NR_FUNCTIONS * NR_LINES)

struct stack {
	uint32_t function[MAX_DEPTH];
	uint32_t line[MAX_DEPTH];
	uint32_t nr;
	uint64_t ns;
};

/* The graph's sums, by function and line. */
struct oracle {
	uint64_t self[NR_FUNCTIONS], total[NR_FUNCTIONS];
	uint64_t seen[OUTERMOST + 1][NR_FUNCTIONS];
	uint64_t first[OUTERMOST + 1][NR_FUNCTIONS];
};

static uint32_t random_below(uint32_t *random, uint32_t end)
{
	*random = *random * 1664525u + 1013904223u;
	return (*random >> 16) % end;
}

static void stack_random(struct stack *stack, uint32_t *random)
{
	stack->nr = 1 + random_below(random, MAX_DEPTH);
	stack->ns = 1 + random_below(random, 1000);
	for (uint32_t i = 0; i < stack->nr; i++) {
		stack->function[i] = random_below(random, NR_FUNCTIONS);
		stack->line[i] = random_below(random, NR_LINES);
	}
}

static void stack_add(const struct stack *stack, struct profile *profile)
{
	char text[MAX_DEPTH * 8] = "";

	for (uint32_t i = 0; i < stack->nr; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%c@%u",
			       i ? ";" : "", (int)('a' + stack->function[i]), stack->line[i] + 1);
	add_stack(profile, PROFILE_SHOWN, text, stack->ns);
}

static uint32_t stack_caller(const struct stack *stack, uint32_t i, bool by_line)
{
	if (i == 0)
		return OUTERMOST;
	return stack->function[i - 1] * NR_LINES + (by_line ? stack->line[i - 1] : 0);
}

/* Add one stack by the definition of the sums. */
static void oracle_add(struct oracle *oracle, const struct stack *stack, bool by_line)
{
	bool vertex_seen[NR_FUNCTIONS] = {false};
	bool call_seen[OUTERMOST + 1][NR_FUNCTIONS] = {{false}};

	oracle->self[stack->function[stack->nr - 1]] += stack->ns;
	for (uint32_t i = 0; i < stack->nr; i++) {
		uint32_t callee = stack->function[i];
		uint32_t caller = stack_caller(stack, i, by_line);

		if (!vertex_seen[callee]) {
			oracle->total[callee] += stack->ns;
			oracle->first[caller][callee] += stack->ns;
		}
		if (!call_seen[caller][callee])
			oracle->seen[caller][callee] += stack->ns;
		vertex_seen[callee] = true;
		call_seen[caller][callee] = true;
	}
}

/* The oracle's index of a vertex's function. */
static uint32_t vertex_function(const struct call_graph *graph, uint32_t vertex)
{
	return (uint32_t)(call_graph_function(graph, vertex)->qualname[0] - 'a');
}

static uint32_t call_caller(const struct call_graph *graph, const struct call *call)
{
	uint32_t nr;
	const struct profile_frame *frame;

	if (call->caller == PROFILE_NONE)
		return OUTERMOST;
	if (!graph->by_line)
		return vertex_function(graph, call->caller) * NR_LINES;
	frame = &profile_frames(graph->profile, &nr)[call->caller];
	return vertex_function(graph, frame->function) * NR_LINES + (uint32_t)frame->line - 1;
}

static void graph_compare(const struct call_graph *graph, const struct oracle *oracle)
{
	uint32_t nr_expected = 0;

	for (uint32_t i = 0; i <= OUTERMOST; i++)
		for (uint32_t k = 0; k < NR_FUNCTIONS; k++)
			nr_expected += oracle->seen[i][k] > 0;
	cr_expect(eq(u32, graph->nr_calls, nr_expected));
	cr_expect(eq(u32, graph->nr_vertices, NR_FUNCTIONS));
	for (uint32_t i = 0; i < graph->nr_vertices; i++) {
		uint32_t function = vertex_function(graph, i);

		cr_expect(eq(u64, graph->vertices[i].self.ns, oracle->self[function]));
		cr_expect(eq(u64, graph->vertices[i].total.ns, oracle->total[function]));
	}
	for (uint32_t i = 0; i < graph->nr_calls; i++) {
		const struct call *call = &graph->calls[i];
		uint32_t caller = call_caller(graph, call);
		uint32_t callee = vertex_function(graph, call->callee);

		cr_expect(eq(u64, call->seen.ns, oracle->seen[caller][callee]));
		cr_expect(eq(u64, call->first.ns, oracle->first[caller][callee]));
	}
}

Test(call_graph, counts_recursion_once)
{
	for (int by_line = 0; by_line < 2; by_line++) {
		const struct profile_options options = {.by_line = by_line};
		struct profile *profile = profile_create(&options);
		static struct oracle oracle;
		struct call_graph graph;
		uint32_t random = 7;

		cr_assert(profile != NULL);
		memset(&oracle, 0, sizeof(oracle));
		for (int i = 0; i < NR_SAMPLES; i++) {
			struct stack stack;

			stack_random(&stack, &random);
			stack_add(&stack, profile);
			oracle_add(&oracle, &stack, by_line);
		}
		cr_assert(eq(int, call_graph_init(&graph, profile, PROFILE_SHOWN, by_line), 0));
		graph_compare(&graph, &oracle);
		call_graph_done(&graph);
		profile_destroy(profile);
	}
}

/* A function with rows on two lines is one vertex, labelled with its first line. */
Test(call_graph, function_with_two_lines_is_one_vertex)
{
	const struct profile_options options = {.by_line = true, .by_thread = true};
	struct profile *profile = profile_create(&options);
	const struct profile_thread thread = {.tid = 42, .name = "worker"};
	struct call_graph graph;
	struct text text = {0};
	uint32_t index;
	uint32_t node;

	cr_assert(profile != NULL);
	add_stack(profile, PROFILE_SHOWN, "a@11;b@21", 1);
	add_stack(profile, PROFILE_BASE, "a@12", 5);
	cr_assert(eq(int, profile_add_thread(profile, &thread, &index), 0));
	cr_assert(eq(int, profile_root(profile, PROFILE_NONE, index, &node), 0));
	cr_assert(eq(int, call_graph_init(&graph, profile, PROFILE_BASE, false), 0));
	cr_assert(eq(u32, graph.nr_vertices, 3));
	for (uint32_t i = 0; i < graph.nr_vertices; i++) {
		call_graph_label(&graph, i, &text, LABEL_DISPLAY);
		text_puts(&text, "\n");
	}
	cr_expect(eq(str, (char *)text_string(&text),
		     (char *)"a (app.py:10)\nb (app.py:20)\nthread worker (42)\n"));
	cr_expect(eq(u64, graph.vertices[0].self.ns, 5));
	text_done(&text);
	call_graph_done(&graph);
	profile_destroy(profile);
}
