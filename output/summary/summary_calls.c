/* SPDX-License-Identifier: MIT */
/* The callers or callees of functions in a summary. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/call_graph.h"
#include "output/summary/summary_names.h"
#include "output/summary/summary_sections.h"

/* Only the hottest matches are shown; a longer text matches fewer. */
#define MAX_MATCHES 10

/* One caller or callee. */
struct row {
	struct summary_name name;
	uint64_t ns;
};

struct table {
	struct summary_page *page;
	enum summary_calls which;
	const char *text;
	struct call_graph graph;
	uint64_t whole_ns;
	uint32_t *matches; /* owned; vertices, hottest first */
	uint32_t nr_matches;
	struct row *rows; /* owned; of one vertex, with room for the most it can have */
	uint32_t nr_rows;
};

static void table_done(struct table *table)
{
	call_graph_done(&table->graph);
	free(table->matches);
	free(table->rows);
}

/* By total time, then index. */
static int match_compare(const void *left, const void *right, void *context)
{
	const struct call_vertex *vertices = context;
	uint32_t a = *(const uint32_t *)left;
	uint32_t b = *(const uint32_t *)right;

	if (vertices[a].total.ns != vertices[b].total.ns)
		return vertices[a].total.ns < vertices[b].total.ns ? 1 : -1;
	return (a > b) - (a < b);
}

static int matches_find(struct table *table)
{
	struct call_graph *graph = &table->graph;
	struct text *cell = &table->page->cell;

	table->matches = calloc((size_t)graph->nr_vertices + 1, sizeof(*table->matches));
	if (!table->matches)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->nr_vertices; i++) {
		if (!graph->vertices[i].total.ns)
			continue;
		text_clear(cell);
		call_graph_label(graph, i, cell, LABEL_DISPLAY);
		if (strstr(text_string(cell), table->text))
			table->matches[table->nr_matches++] = i;
	}
	qsort_r(table->matches, table->nr_matches, sizeof(*table->matches), match_compare,
		graph->vertices);
	return cell->error;
}

/* Returns the name of a caller or callee. */
static struct summary_name vertex_name(const struct call_graph *graph, uint32_t vertex)
{
	struct summary_name name;

	if (vertex == PROFILE_NONE)
		return (struct summary_name){.words = "[outermost]", .frame = PROFILE_NONE};
	name = summary_name_of_frame(graph->profile, graph->vertices[vertex].frame);
	if (name.function)
		name.line = name.function->first_line;
	name.mark = "";
	return name;
}

static int row_compare(const void *left, const void *right)
{
	const struct row *a = left;
	const struct row *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return summary_name_compare(&a->name, &b->name);
}

/* Collect the rows of one vertex: its calls and, for callees, its self time. */
static void rows_collect(struct table *table, uint32_t vertex)
{
	const struct call_graph *graph = &table->graph;
	uint64_t self_ns = graph->vertices[vertex].self.ns;

	table->nr_rows = 0;
	for (uint32_t i = 0; i < graph->nr_calls; i++) {
		const struct call *call = &graph->calls[i];
		bool is_caller = table->which == SUMMARY_CALLERS;

		if ((is_caller ? call->callee : call->caller) != vertex || !call->seen.ns)
			continue;
		table->rows[table->nr_rows++] = (struct row){
			vertex_name(graph, is_caller ? call->caller : call->callee),
			call->seen.ns,
		};
	}
	if (table->which == SUMMARY_CALLEES && self_ns)
		table->rows[table->nr_rows++] = (struct row){
			{.words = "[self]", .frame = PROFILE_NONE},
			self_ns,
		};
	qsort(table->rows, table->nr_rows, sizeof(*table->rows), row_compare);
}

/* Print two lines: the function, and its times. */
static void title_print(const struct table *table, uint32_t index)
{
	const struct call_vertex *vertex = &table->graph.vertices[index];
	struct text *cell = &table->page->cell;

	text_clear(cell);
	text_puts(cell, table->which == SUMMARY_CALLERS ? "callers of " : "callees of ");
	call_graph_label(&table->graph, index, cell, LABEL_DISPLAY);
	summary_page_line(table->page, SUMMARY_BOLD);
	text_printf(cell, "total %.1f%%, ", summary_percent(vertex->total.ns, table->whole_ns));
	summary_page_amount(table->page, vertex->total.ns);
	text_printf(cell, " · self %.1f%%, ", summary_percent(vertex->self.ns, table->whole_ns));
	summary_page_amount(table->page, vertex->self.ns);
	summary_page_line(table->page, "");
}

static void rows_print(const struct table *table, uint32_t vertex)
{
	struct summary_page *page = table->page;
	uint64_t vertex_ns = table->graph.vertices[vertex].total.ns;
	uint32_t nr_shown = table->nr_rows;
	struct summary_names names;

	if (nr_shown > page->artefact->options.max_rows)
		nr_shown = page->artefact->options.max_rows;
	summary_names_init(&names);
	for (uint32_t i = 0; i < nr_shown; i++)
		summary_names_widen(&names, page, &table->rows[i].name);
	summary_names_fit(&names, page,
			  strlen("share%  total%  ") + summary_page_time_columns(page));
	summary_page_style(page, SUMMARY_DIM);
	text_printf(&page->out, "%6s  %6s  ", "share%", "total%");
	summary_page_time_head(page, "total");
	summary_names_print_head(&names, page);
	for (uint32_t i = 0; i < nr_shown; i++) {
		summary_page_share(page, table->rows[i].ns, vertex_ns);
		summary_page_share(page, table->rows[i].ns, table->whole_ns);
		summary_page_time(page, table->rows[i].ns);
		summary_names_print(&names, page, &table->rows[i].name);
	}
	summary_more_print(page, table->nr_rows - nr_shown);
}

static void no_match_print(const struct table *table)
{
	struct text *cell = &table->page->cell;

	text_clear(cell);
	text_puts(cell, "no function label contains \"");
	label_append_escaped(cell, table->text, strlen(table->text), LABEL_DISPLAY);
	text_puts(cell, "\"");
	summary_page_line(table->page, "");
}

static void table_print(struct table *table)
{
	uint32_t nr_shown = table->nr_matches;

	if (nr_shown > MAX_MATCHES)
		nr_shown = MAX_MATCHES;
	if (!nr_shown)
		no_match_print(table);
	else
		summary_page_fit_time(table->page,
				      table->graph.vertices[table->matches[0]].total.ns);
	for (uint32_t i = 0; i < nr_shown; i++) {
		if (i)
			text_puts(&table->page->out, "\n");
		rows_collect(table, table->matches[i]);
		title_print(table, table->matches[i]);
		rows_print(table, table->matches[i]);
	}
	if (nr_shown < table->nr_matches) {
		text_puts(&table->page->out, "\n");
		text_clear(&table->page->cell);
		text_printf(&table->page->cell, "… and %" PRIu32 " more functions",
			    table->nr_matches - nr_shown);
		summary_page_line(table->page, SUMMARY_DIM);
	}
}

int summary_calls_print(struct summary_page *page, enum summary_calls which, const char *text)
{
	const struct profile *profile = page->artefact->profile;
	struct table table = {
		.page = page,
		.which = which,
		.text = text,
		.whole_ns = profile_sums(profile, PROFILE_SHOWN)->time_ns,
	};
	int err = call_graph_init(&table.graph, profile, PROFILE_SHOWN, false);

	if (!err)
		err = matches_find(&table);
	if (!err) {
		/* One for each vertex, the outermost, and the function itself. */
		table.rows = calloc((size_t)table.graph.nr_vertices + 2, sizeof(*table.rows));
		err = table.rows ? 0 : -ENOMEM;
	}
	if (!err)
		table_print(&table);
	table_done(&table);
	return err;
}
