/* SPDX-License-Identifier: MIT */
/*
 * The tree of a summary. Its rows are the nodes with a sufficient share, or the largest of them
 * if there are too many. They are a tree too, because no node is larger than its parent. Long
 * chains of calls, each with one callee and hardly anything else, are folded in the middle.
 * Nothing here is recursive, because the target decides how deep the tree is.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/profile/tree_walk.h"
#include "output/summary/summary_sections.h"
#include "output/text/text_width.h"
#include "procmem/cleanup.h"

/* Calls with a smaller share are summed up in one line. */
#define MIN_SHARE_PERMILLE 5

/* Calls shown at either end of a chain. */
#define CHAIN_END 3

/* Width of a connector: one for each level. */
#define CONNECTOR_WIDTH 3

/* Connectors take at most half the width. */
#define MAX_INDENT_PART 2

/* A node with a row. Rows are in node order: parents before children. */
struct row {
	uint32_t node; /* PROFILE_NONE: samples without frames */
	uint32_t parent, first_child,
		next_sibling;	     /* rows; siblings largest first; PROFILE_NONE: none */
	uint32_t nr_above, nr_below; /* rows of its chain above and below it */
	size_t indent_length;	     /* bytes of its connectors in indent */
	uint64_t self_ns, total_ns;
	bool is_shown;
};

struct tree {
	struct summary_page *page;
	struct tree_walk walk;
	uint64_t whole_ns;
	uint64_t min_ns;
	struct row *rows; /* owned */
	uint32_t nr_rows;
	uint32_t *order; /* owned; rows, largest first */
	uint32_t nr_shown;
	uint32_t first_root; /* a row */
	struct text indent;  /* connectors of the row being printed */
};

static void tree_done(struct tree *tree)
{
	tree_walk_done(&tree->walk);
	free(tree->rows);
	free(tree->order);
	text_done(&tree->indent);
}

static bool node_has_row(const struct tree *tree, uint32_t node)
{
	return tree->walk.sums[node].ns >= tree->min_ns;
}

static void row_add(struct tree *tree, uint32_t node, uint32_t parent, uint64_t self_ns,
		    uint64_t total_ns)
{
	tree->rows[tree->nr_rows++] = (struct row){
		.node = node,
		.parent = parent,
		.first_child = PROFILE_NONE,
		.next_sibling = PROFILE_NONE,
		.self_ns = self_ns,
		.total_ns = total_ns,
	};
}

/* A parent is at least as large as its child, so it has a row, which comes first. */
static int rows_collect(struct tree *tree)
{
	const struct profile *profile = tree->page->artefact->profile;
	uint64_t idle_ns = profile_rootless_idle(profile, PROFILE_SHOWN).ns;
	const struct tree_walk *walk = &tree->walk;
	cleanup_free uint32_t *row_of_node = NULL;
	uint32_t nr = 1;

	for (uint32_t i = 0; i < walk->nr_nodes; i++)
		nr += node_has_row(tree, i);
	row_of_node = calloc((size_t)walk->nr_nodes + 1, sizeof(*row_of_node));
	tree->rows = calloc(nr, sizeof(*tree->rows));
	if (!row_of_node || !tree->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < walk->nr_nodes; i++) {
		uint32_t parent = walk->nodes[i].parent;

		if (!node_has_row(tree, i))
			continue;
		row_of_node[i] = tree->nr_rows;
		row_add(tree, i, parent == PROFILE_NONE ? PROFILE_NONE : row_of_node[parent],
			profile_weight(profile, PROFILE_SHOWN, i).ns, walk->sums[i].ns);
	}
	if (idle_ns >= tree->min_ns)
		row_add(tree, PROFILE_NONE, PROFILE_NONE, idle_ns, idle_ns);
	return 0;
}

/* Whether almost all of the caller's time is callee's. */
static bool row_is_in_chain(const struct tree *tree, const struct row *callee)
{
	return callee->parent != PROFILE_NONE &&
	       tree->rows[callee->parent].total_ns - callee->total_ns < tree->min_ns;
}

/* Compute each row's distance from the ends of its chain. */
static void chains_find(struct tree *tree)
{
	for (uint32_t i = 0; i < tree->nr_rows; i++) {
		struct row *row = &tree->rows[i];

		if (row_is_in_chain(tree, row))
			row->nr_above = tree->rows[row->parent].nr_above + 1;
	}
	for (uint32_t i = tree->nr_rows; i-- > 0;) {
		const struct row *row = &tree->rows[i];

		if (row_is_in_chain(tree, row))
			tree->rows[row->parent].nr_below = row->nr_below + 1;
	}
}

/* Returns how many rows of a chain are folded into one line; 0 if it is too short. */
static uint32_t chain_folded(const struct row *row)
{
	uint32_t nr = row->nr_above + row->nr_below + 1;

	return nr > 2 * CHAIN_END + 1 ? nr - 2 * CHAIN_END : 0;
}

static bool row_is_folded(const struct row *row)
{
	return chain_folded(row) && row->nr_above >= CHAIN_END && row->nr_below >= CHAIN_END;
}

/* Whether a line is printed for a row: its own, or that of the folded rows. */
static bool row_has_line(const struct row *row)
{
	return !row_is_folded(row) || row->nr_above == CHAIN_END;
}

static int order_compare(const void *left, const void *right, void *context)
{
	const struct row *rows = context;
	uint32_t a = *(const uint32_t *)left;
	uint32_t b = *(const uint32_t *)right;

	if (rows[a].total_ns != rows[b].total_ns)
		return rows[a].total_ns < rows[b].total_ns ? 1 : -1;
	return (a > b) - (a < b);
}

/* Choose the largest rows, as many as there are lines. Their parents are among them. */
static int rows_choose(struct tree *tree)
{
	uint32_t nr_left = tree->page->artefact->options.max_rows;

	tree->order = calloc((size_t)tree->nr_rows + 1, sizeof(*tree->order));
	if (!tree->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->nr_rows; i++)
		tree->order[i] = i;
	qsort_r(tree->order, tree->nr_rows, sizeof(*tree->order), order_compare, tree->rows);
	for (; tree->nr_shown < tree->nr_rows; tree->nr_shown++) {
		struct row *row = &tree->rows[tree->order[tree->nr_shown]];

		if (row_has_line(row) && nr_left-- == 0)
			break;
		row->is_shown = true;
	}
	return 0;
}

/* Link the chosen rows: smallest first, each at the head of its list. */
static void rows_link(struct tree *tree)
{
	tree->first_root = PROFILE_NONE;
	for (uint32_t i = tree->nr_shown; i-- > 0;) {
		uint32_t index = tree->order[i];
		struct row *row = &tree->rows[index];
		uint32_t *first = row->parent == PROFILE_NONE
					  ? &tree->first_root
					  : &tree->rows[row->parent].first_child;

		row->next_sibling = *first;
		*first = index;
	}
}

/* Put the label in the page's cell. */
static void label_make(struct tree *tree, const struct row *row)
{
	struct text *cell = &tree->page->cell;

	text_clear(cell);
	if (row_is_folded(row))
		text_printf(cell, "⋮  %" PRIu32 " calls", chain_folded(row));
	else if (row->node == PROFILE_NONE)
		text_puts(cell, LABEL_NO_PYTHON_FRAMES);
	else
		label_append_frame(cell, tree->page->artefact->profile,
				   tree->walk.nodes[row->node].frame, LABEL_DISPLAY);
}

/* Returns the width left for connectors and label; SIZE_MAX if unlimited. */
static size_t label_columns(const struct tree *tree)
{
	size_t columns = summary_page_columns(tree->page);

	if (!columns)
		return SIZE_MAX;
	return columns - strlen("total%   self%  ") - 2 * summary_page_time_columns(tree->page);
}

static void row_print(struct tree *tree, const struct row *row)
{
	struct summary_page *page = tree->page;
	size_t left = label_columns(tree);

	summary_page_share(page, row->total_ns, tree->whole_ns);
	summary_page_share(page, row->self_ns, tree->whole_ns);
	summary_page_time(page, row->total_ns);
	summary_page_time(page, row->self_ns);
	summary_page_style(page, SUMMARY_DIM);
	left -= text_append_tail(&page->out, text_string(&tree->indent), left / MAX_INDENT_PART);
	if (row->parent != PROFILE_NONE) {
		text_puts(&page->out, row->next_sibling == PROFILE_NONE ? "└─ " : "├─ ");
		left -= CONNECTOR_WIDTH;
	}
	summary_page_plain(page);
	label_make(tree, row);
	(void)text_append_tail(&page->out, text_string(&page->cell), left);
	text_puts(&page->out, "\n");
}

/*
 * Print a row after its connectors, and add those for its children. Of folded rows only the first
 * has a line, and only its children are indented.
 */
static void row_enter(struct tree *tree, struct row *row)
{
	row->indent_length = tree->indent.length;
	if (!row_has_line(row))
		return;
	row_print(tree, row);
	if (row->parent != PROFILE_NONE)
		text_puts(&tree->indent, row->next_sibling == PROFILE_NONE ? "   " : "│  ");
}

static void rows_print(struct tree *tree)
{
	uint32_t index = tree->first_root;

	while (index != PROFILE_NONE) {
		row_enter(tree, &tree->rows[index]);
		if (tree->rows[index].first_child != PROFILE_NONE) {
			index = tree->rows[index].first_child;
			continue;
		}
		while (index != PROFILE_NONE && tree->rows[index].next_sibling == PROFILE_NONE)
			index = tree->rows[index].parent;
		if (index != PROFILE_NONE) {
			text_cut(&tree->indent, tree->rows[index].indent_length);
			index = tree->rows[index].next_sibling;
		}
	}
}

/* The nodes that are not shown, and the time that is no shown row's self time. */
struct rest {
	uint64_t nr, ns, largest_ns;
};

static struct rest rest_find(const struct tree *tree)
{
	const struct tree_walk *walk = &tree->walk;
	struct rest rest = {.ns = tree->whole_ns};
	uint32_t next_row = 0;

	for (uint32_t i = 0; i < tree->nr_rows; i++)
		if (tree->rows[i].is_shown)
			rest.ns -= tree->rows[i].self_ns;
	for (uint32_t i = 0; i < walk->nr_nodes; i++) {
		uint64_t ns = walk->sums[i].ns;
		bool has_row = next_row < tree->nr_rows && tree->rows[next_row].node == i;

		if (has_row && tree->rows[next_row++].is_shown)
			continue;
		rest.nr += ns > 0;
		if (ns > rest.largest_ns)
			rest.largest_ns = ns;
	}
	return rest;
}

static void rest_print(struct tree *tree)
{
	const struct rest rest = rest_find(tree);
	struct summary_page *page = tree->page;

	if (!rest.nr)
		return;
	text_clear(&page->cell);
	text_printf(&page->cell,
		    "     …  and %" PRIu64 " more call%s: %.1f%% in total, at most %.1f%% each",
		    rest.nr, text_plural(rest.nr), summary_percent(rest.ns, tree->whole_ns),
		    summary_percent(rest.largest_ns, tree->whole_ns));
	summary_page_line(page, SUMMARY_DIM);
}

static void tree_print(struct tree *tree)
{
	struct summary_page *page = tree->page;

	summary_page_fit_time(page, tree->whole_ns);
	summary_page_style(page, SUMMARY_BOLD);
	text_printf(&page->out, "%6s  %6s  ", "total%", "self%");
	summary_page_time_head(page, "total");
	summary_page_time_head(page, "self");
	text_puts(&page->out, "function");
	summary_page_plain(page);
	text_puts(&page->out, "\n");
	rows_print(tree);
	rest_print(tree);
}

int summary_tree_print(struct summary_page *page)
{
	const struct profile *profile = page->artefact->profile;
	struct tree tree = {
		.page = page,
		.whole_ns = profile_sums(profile, PROFILE_SHOWN)->time_ns,
	};
	int err = tree_walk_init(&tree.walk, profile, PROFILE_SHOWN);

	/* At least 1, so that calls without time have no row. */
	tree.min_ns = tree.whole_ns / 1000 * MIN_SHARE_PERMILLE + 1;
	if (!err)
		err = rows_collect(&tree);
	if (!err) {
		chains_find(&tree);
		err = rows_choose(&tree);
	}
	if (!err) {
		rows_link(&tree);
		tree_print(&tree);
		err = tree.indent.error;
	}
	tree_done(&tree);
	return err;
}
