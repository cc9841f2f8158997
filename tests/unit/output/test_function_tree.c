/* SPDX-License-Identifier: MIT */
#include "output/profile/function_tree.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "output/text/text.h"
#include "procmem/cleanup.h"
#include "tests/support/stack_profile.h"

static const char *name_of(const struct call_graph *graph, const struct function_node *node)
{
	return call_graph_function(graph, node->vertex)->qualname;
}

/* "caller>callee total", a line a node, of the tree with those limits. */
static char *tree_text(const struct profile *profile, unsigned min_permille, uint32_t max_nodes)
{
	struct call_graph graph;
	struct function_tree tree = {.nr_nodes = 0};
	struct text text = {0};
	int err = call_graph_init(&graph, profile, PROFILE_SHOWN, false);

	if (!err)
		err = function_tree_init(&tree, &graph, min_permille, max_nodes);
	text_puts(&text, err ? "error" : "");
	for (uint32_t i = 0; !err && i < tree.nr_nodes; i++) {
		const struct function_node *node = &tree.nodes[i];
		const bool has_parent = node->parent != PROFILE_NONE;

		text_printf(&text, "%s>%s %u\n",
			    !has_parent	       ? ""
			    : node->parent < i ? name_of(&graph, &tree.nodes[node->parent])
					       : "?",
			    name_of(&graph, node), (unsigned)node->total[PROFILE_SHOWN].ns);
	}
	function_tree_done(&tree);
	call_graph_done(&graph);
	return text.bytes;
}

Test(function_tree, keeps_large_nodes_or_the_largest)
{
	static const struct {
		unsigned min_permille;
		uint32_t max_nodes;
		const char *expected;
	} cases[] = {
		/* Lines of a function are one node; recursion is many. */
		{0, 100, ">a 1000\na>b 600\nb>b 600\nb>c 595\na>c 400\nb>d 5\n"},
		{5, 100, ">a 1000\na>b 600\nb>b 600\nb>c 595\na>c 400\nb>d 5\n"},
		{6, 100, ">a 1000\na>b 600\nb>b 600\nb>c 595\na>c 400\n"},
		{6, 4, ">a 1000\na>b 600\nb>b 600\nb>c 595\n"},
		/* Of nodes with the same time the caller is kept. */
		{0, 2, ">a 1000\na>b 600\n"},
		{0, 0, ""},
	};
	struct profile *profile = profile_create(&(struct profile_options){.by_line = true});

	cr_assert(profile != NULL);
	add_stack(profile, PROFILE_SHOWN, "a@11;b@21;b@22;c@31", 300);
	add_stack(profile, PROFILE_SHOWN, "a@12;b@22;b@22;c@32", 295);
	add_stack(profile, PROFILE_SHOWN, "a@12;c@31", 400);
	add_stack(profile, PROFILE_SHOWN, "a@12;b@22;b@22;d@41", 5);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cleanup_free char *text =
			tree_text(profile, cases[i].min_permille, cases[i].max_nodes);

		cr_expect(eq(str, text, (char *)cases[i].expected), "case %zu", i);
	}
	profile_destroy(profile);
}

/* A node that only the base has is large by its share of the base. */
Test(function_tree, keeps_what_is_large_on_either_side)
{
	struct profile *profile = profile_create(&(struct profile_options){.has_base = true});
	cleanup_free char *text = NULL;

	cr_assert(profile != NULL);
	add_stack(profile, PROFILE_SHOWN, "a", 1000000);
	add_stack(profile, PROFILE_BASE, "a", 9);
	add_stack(profile, PROFILE_BASE, "a;b", 1);
	text = tree_text(profile, 100, 100);
	cr_expect(eq(str, text, (char *)">a 1000000\na>b 0\n"));
	profile_destroy(profile);
}
