/* SPDX-License-Identifier: MIT */
/* One function of a summary: its times, callers, callees and lines. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/call_graph.h"
#include "output/source/run_sources.h"
#include "output/source/source_lines.h"
#include "output/summary/summary_names.h"
#include "output/summary/summary_sections.h"
#include "procmem/cleanup.h"

/* Other functions that match are named up to this number. */
enum { MAX_OTHERS = 5 };

/* How well a function matches; the best is explained. */
enum match { MATCH_NONE, MATCH_PART, MATCH_LAST_NAME, MATCH_NAME };

/* One caller, callee or line. */
struct row {
	struct summary_name name;
	uint64_t self_ns, total_ns;
};

struct explanation {
	struct summary_page *page;
	const char *text;
	struct call_graph graph;
	uint64_t whole_ns;
	uint32_t *matches; /* owned; vertices, the best first */
	uint32_t nr_matches;
	struct row *rows; /* owned; of one table, with room for the most it can have */
	uint32_t nr_rows;
};

static void explanation_done(struct explanation *explanation)
{
	call_graph_done(&explanation->graph);
	free(explanation->matches);
	free(explanation->rows);
}

/* Choosing the function. */

static enum match match_of(const struct explanation *explanation, uint32_t vertex)
{
	const struct call_graph *graph = &explanation->graph;
	const struct profile_function *function = call_graph_function(graph, vertex);
	struct text *cell = &explanation->page->cell;
	const char *dot;

	if (!graph->vertices[vertex].total.ns)
		return MATCH_NONE;
	if (function) {
		dot = strrchr(function->qualname, '.');
		if (strcmp(function->qualname, explanation->text) == 0)
			return MATCH_NAME;
		if (dot && strcmp(dot + 1, explanation->text) == 0)
			return MATCH_LAST_NAME;
	}
	text_clear(cell);
	call_graph_label(graph, vertex, cell, LABEL_DISPLAY);
	if (strcmp(text_string(cell), explanation->text) == 0)
		return MATCH_NAME;
	return strstr(text_string(cell), explanation->text) ? MATCH_PART : MATCH_NONE;
}

/* By total time, then index. */
static int compare_matches(const void *left, const void *right, void *context)
{
	const struct call_vertex *vertices = context;
	uint32_t a = *(const uint32_t *)left;
	uint32_t b = *(const uint32_t *)right;

	if (vertices[a].total.ns != vertices[b].total.ns)
		return vertices[a].total.ns < vertices[b].total.ns ? 1 : -1;
	return (a > b) - (a < b);
}

/* Find the functions that match best: others are not listed. Returns 0 or -ENOMEM. */
static int find_matches(struct explanation *explanation)
{
	const struct call_graph *graph = &explanation->graph;
	enum match best = MATCH_PART;

	explanation->matches =
		calloc((size_t)graph->nr_vertices + 1, sizeof(*explanation->matches));
	if (!explanation->matches)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->nr_vertices; i++) {
		const enum match match = match_of(explanation, i);

		if (match < best)
			continue;
		if (match > best)
			explanation->nr_matches = 0;
		best = match;
		explanation->matches[explanation->nr_matches++] = i;
	}
	if (explanation->nr_matches)
		qsort_r(explanation->matches, explanation->nr_matches,
			sizeof(*explanation->matches), compare_matches, graph->vertices);
	return explanation->page->cell.error;
}

/* Print the heading of a table, below an empty line. */
static void print_heading(struct summary_page *page, const char *heading)
{
	text_puts(&page->out, "\n");
	text_clear(&page->cell);
	text_puts(&page->cell, heading);
	summary_page_line(page, SUMMARY_BOLD);
}

/* Callers and callees. */

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

/* Larger totals first. */
static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left;
	const struct row *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return summary_name_compare(&a->name, &b->name);
}

/* Collect the calls to a vertex, or from it, with its self time. */
static void collect_calls(struct explanation *explanation, uint32_t vertex, bool is_callers)
{
	const struct call_graph *graph = &explanation->graph;
	const uint64_t self_ns = graph->vertices[vertex].self.ns;

	explanation->nr_rows = 0;
	for (uint32_t i = 0; i < graph->nr_calls; i++) {
		const struct call *call = &graph->calls[i];

		if ((is_callers ? call->callee : call->caller) != vertex || !call->seen.ns)
			continue;
		explanation->rows[explanation->nr_rows++] = (struct row){
			.name = vertex_name(graph, is_callers ? call->caller : call->callee),
			.total_ns = call->seen.ns,
		};
	}
	if (!is_callers && self_ns)
		explanation->rows[explanation->nr_rows++] = (struct row){
			.name = {.words = "[self]", .frame = PROFILE_NONE},
			.total_ns = self_ns,
		};
	if (explanation->nr_rows)
		qsort(explanation->rows, explanation->nr_rows, sizeof(*explanation->rows),
		      compare_rows);
}

static uint32_t shown_rows(const struct explanation *explanation)
{
	const uint32_t max_rows = explanation->page->artefact->options.max_rows;

	return explanation->nr_rows < max_rows ? explanation->nr_rows : max_rows;
}

static void print_calls(const struct explanation *explanation, uint32_t vertex, const char *title)
{
	struct summary_page *page = explanation->page;
	const uint64_t vertex_ns = explanation->graph.vertices[vertex].total.ns;
	const uint32_t nr_shown = shown_rows(explanation);
	struct summary_names names;

	print_heading(page, title);
	summary_names_init(&names);
	for (uint32_t i = 0; i < nr_shown; i++)
		summary_names_widen(&names, page, &explanation->rows[i].name);
	summary_names_fit(&names, page,
			  strlen("share%  total%  ") + summary_page_time_columns(page));
	summary_page_style(page, SUMMARY_DIM);
	text_printf(&page->out, "%6s  %6s  ", "share%", "total%");
	summary_page_time_head(page, "total");
	summary_names_print_head(&names, page);
	for (uint32_t i = 0; i < nr_shown; i++) {
		summary_page_share(page, explanation->rows[i].total_ns, vertex_ns);
		summary_page_share(page, explanation->rows[i].total_ns, explanation->whole_ns);
		summary_page_time(page, explanation->rows[i].total_ns);
		summary_names_print(&names, page, &explanation->rows[i].name);
	}
	summary_more_print(page, explanation->nr_rows - nr_shown);
}

/* Lines. */

static int compare_lines(const void *left, const void *right)
{
	const struct row *a = left;
	const struct row *b = right;

	return (a->name.line > b->name.line) - (a->name.line < b->name.line);
}

/*
 * Collect the lines of a function: the hottest that are shown, in the order of the file. Returns 0
 * or -ENOMEM.
 */
static int collect_lines(struct explanation *explanation, uint32_t vertex)
{
	const struct call_graph *graph = &explanation->graph;
	cleanup_free struct profile_total *totals = NULL;
	int err = profile_totals(graph->profile, PROFILE_SHOWN, &totals);
	uint32_t nr_frames;

	if (err)
		return err;
	(void)profile_frames(graph->profile, &nr_frames);
	explanation->nr_rows = 0;
	for (uint32_t i = 0; i < nr_frames; i++) {
		if (graph->vertex_of_frame[i] != vertex || !totals[i].total_ns)
			continue;
		explanation->rows[explanation->nr_rows++] = (struct row){
			.name = summary_name_of_frame(graph->profile, i),
			.self_ns = totals[i].self_ns,
			.total_ns = totals[i].total_ns,
		};
	}
	if (!explanation->nr_rows)
		return 0;
	qsort(explanation->rows, explanation->nr_rows, sizeof(*explanation->rows), compare_rows);
	qsort(explanation->rows, shown_rows(explanation), sizeof(*explanation->rows),
	      compare_lines);
	return 0;
}

static int print_lines(const struct explanation *explanation,
		       const struct profile_function *function)
{
	struct summary_page *page = explanation->page;
	const struct artefact *artefact = page->artefact;
	const uint32_t nr_shown = shown_rows(explanation);
	struct source_lines sources = {.until_ns = 0};
	const bool has_sources =
		run_sources_are_here(artefact->runs, artefact->nr_runs, &sources.until_ns) &&
		!artefact->options.no_source;
	int err = 0;

	print_heading(page, "lines");
	text_printf(&page->cell, "%6s  %6s  %7s  source", "self%", "total%", "line");
	summary_page_line(page, SUMMARY_DIM);
	for (uint32_t i = 0; !err && i < nr_shown; i++) {
		const struct row *row = &explanation->rows[i];
		const char *source = "";

		if (has_sources &&
		    source_lines_get(&sources, function->path, row->name.line, &source) == -ENOMEM)
			err = -ENOMEM;
		text_printf(&page->cell, "%6.1f  %6.1f  %7d  ",
			    summary_percent(row->self_ns, explanation->whole_ns),
			    summary_percent(row->total_ns, explanation->whole_ns), row->name.line);
		label_append_string(&page->cell, source);
		summary_page_line(page, "");
	}
	summary_more_print(page, explanation->nr_rows - nr_shown);
	source_lines_done(&sources);
	return err;
}

/* The whole. */

static void print_title(const struct explanation *explanation, uint32_t index)
{
	const struct call_vertex *vertex = &explanation->graph.vertices[index];
	struct text *cell = &explanation->page->cell;

	text_clear(cell);
	call_graph_label(&explanation->graph, index, cell, LABEL_DISPLAY);
	summary_page_line(explanation->page, SUMMARY_BOLD);
	text_printf(cell, "self %.1f%%, ", summary_percent(vertex->self.ns, explanation->whole_ns));
	summary_page_amount(explanation->page, vertex->self.ns);
	text_printf(cell, " · total %.1f%%, ",
		    summary_percent(vertex->total.ns, explanation->whole_ns));
	summary_page_amount(explanation->page, vertex->total.ns);
	text_printf(cell, " · %" PRIu64 " sample%s", vertex->total.samples,
		    text_plural(vertex->total.samples));
	summary_page_line(explanation->page, "");
}

/* Name the functions that match as well. */
static void print_others(const struct explanation *explanation)
{
	struct summary_page *page = explanation->page;

	if (explanation->nr_matches < 2)
		return;
	print_heading(page, "others that match");
	for (uint32_t i = 1; i < explanation->nr_matches && i <= MAX_OTHERS; i++) {
		text_puts(&page->cell, "  ");
		call_graph_label(&explanation->graph, explanation->matches[i], &page->cell,
				 LABEL_DISPLAY);
		summary_page_line(page, "");
	}
	if (explanation->nr_matches - 1 > MAX_OTHERS)
		summary_more_print(page, explanation->nr_matches - 1 - MAX_OTHERS);
}

static int print_match(struct explanation *explanation, uint32_t vertex)
{
	const struct profile_function *function = call_graph_function(&explanation->graph, vertex);
	int err = 0;

	summary_page_fit_time(explanation->page, explanation->graph.vertices[vertex].total.ns);
	print_title(explanation, vertex);
	collect_calls(explanation, vertex, true);
	print_calls(explanation, vertex, "callers");
	collect_calls(explanation, vertex, false);
	print_calls(explanation, vertex, "callees");
	if (function) {
		err = collect_lines(explanation, vertex);
		if (!err)
			err = print_lines(explanation, function);
	}
	print_others(explanation);
	return err;
}

static void print_no_match(const struct explanation *explanation)
{
	struct text *cell = &explanation->page->cell;

	text_clear(cell);
	text_puts(cell, "no function is called \"");
	label_append_string(cell, explanation->text);
	text_puts(cell, "\", or has that in its name or path");
	summary_page_line(explanation->page, "");
}

int summary_explain_print(struct summary_page *page, const char *text)
{
	const struct profile *profile = page->artefact->profile;
	struct explanation explanation = {
		.page = page,
		.text = text,
		.whole_ns = profile_sums(profile, PROFILE_SHOWN)->time_ns,
	};
	uint32_t nr_frames;
	int err = call_graph_init(&explanation.graph, profile, PROFILE_SHOWN, false);

	(void)profile_frames(profile, &nr_frames);
	if (!err)
		err = find_matches(&explanation);
	if (!err) {
		/* One for each vertex or line, the outermost, and the function itself. */
		explanation.rows = calloc((size_t)explanation.graph.nr_vertices + nr_frames + 2,
					  sizeof(*explanation.rows));
		err = explanation.rows ? 0 : -ENOMEM;
	}
	if (!err && explanation.nr_matches)
		err = print_match(&explanation, explanation.matches[0]);
	else if (!err)
		print_no_match(&explanation);
	explanation_done(&explanation);
	return err;
}
