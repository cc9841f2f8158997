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
#include "output/text/edit_distance.h"
#include "procmem/cleanup.h"

/* Other functions that match, or have similar names, are listed up to this number. */
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

/* Returns the part of a name after its last dot. */
static const char *last_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

static enum match match_of(const struct explanation *explanation, uint32_t vertex)
{
	const struct call_graph *graph = &explanation->graph;
	const struct profile_function *function = call_graph_function(graph, vertex);
	struct text *cell = &explanation->page->cell;

	if (!graph->vertices[vertex].total.samples)
		return MATCH_NONE;
	if (function) {
		if (strcmp(function->qualname, explanation->text) == 0)
			return MATCH_NAME;
		if (strcmp(last_name(function->qualname), explanation->text) == 0)
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
	const struct profile_weight self = graph->vertices[vertex].self;

	explanation->nr_rows = 0;
	for (uint32_t i = 0; i < graph->nr_calls; i++) {
		const struct call *call = &graph->calls[i];

		if ((is_callers ? call->callee : call->caller) != vertex || !call->seen.samples)
			continue;
		explanation->rows[explanation->nr_rows++] = (struct row){
			.name = vertex_name(graph, is_callers ? call->caller : call->callee),
			.total_ns = call->seen.ns,
		};
	}
	if (!is_callers && self.samples)
		explanation->rows[explanation->nr_rows++] = (struct row){
			.name = {.words = "[self]", .frame = PROFILE_NONE},
			.total_ns = self.ns,
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
		if (graph->vertex_of_frame[i] != vertex || !totals[i].total_samples)
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

/* Print one line. Returns what source_lines_get() returned. */
static int print_line(const struct explanation *explanation, const struct row *row,
		      struct source_lines *sources, const char *path)
{
	struct summary_page *page = explanation->page;
	const char *source = "";
	int err = sources ? source_lines_get(sources, path, row->name.line, &source) : -ENOENT;

	text_printf(&page->cell, "%6.1f  %6.1f  ",
		    summary_percent(row->self_ns, explanation->whole_ns),
		    summary_percent(row->total_ns, explanation->whole_ns));
	if (row->name.line > 0)
		text_printf(&page->cell, "%7d  ", row->name.line);
	else
		text_printf(&page->cell, "%7s  ", "?");
	label_append_string(&page->cell, source);
	summary_page_line(page, "");
	return err;
}

/* Say why no line has its source. */
static void print_no_source(struct summary_page *page, const char *path, bool is_here, int err)
{
	text_clear(&page->cell);
	text_puts(&page->cell, "no source: ");
	if (is_here) {
		label_append_string(&page->cell, path);
		text_puts(&page->cell, err == -EAGAIN ? " has changed since"
						      : " is not here, or may not be shown");
	} else {
		text_puts(&page->cell, "the program ran on another machine");
	}
	summary_page_line(page, SUMMARY_DIM);
}

/* Whether any line of a function is known, which it is not for machine code. */
static bool has_lines(const struct explanation *explanation)
{
	for (uint32_t i = 0; i < explanation->nr_rows; i++)
		if (explanation->rows[i].name.line > 0)
			return true;
	return false;
}

static int print_lines(const struct explanation *explanation,
		       const struct profile_function *function)
{
	struct summary_page *page = explanation->page;
	const struct artefact *artefact = page->artefact;
	const uint32_t nr_shown = shown_rows(explanation);
	const bool wants_source = !artefact->options.no_source;
	struct source_lines sources = {.until_ns = 0};
	const bool is_here =
		run_sources_are_here(artefact->runs, artefact->nr_runs, &sources.until_ns);
	int err = -ENOENT;
	bool has_source = false;

	print_heading(page, "lines");
	text_printf(&page->cell, "%6s  %6s  %7s  source", "self%", "total%", "line");
	summary_page_line(page, SUMMARY_DIM);
	for (uint32_t i = 0; err != -ENOMEM && i < nr_shown; i++) {
		err = print_line(explanation, &explanation->rows[i],
				 is_here && wants_source ? &sources : NULL, function->path);
		has_source |= !err;
	}
	summary_more_print(page, explanation->nr_rows - nr_shown);
	if (wants_source && !has_source)
		print_no_source(page, function->path, is_here, err);
	source_lines_done(&sources);
	return err == -ENOMEM ? err : 0;
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

/* List the matches from first on, each with its share of the time. */
static void print_matches(const struct explanation *explanation, const char *heading,
			  uint32_t first)
{
	const struct call_graph *graph = &explanation->graph;
	struct summary_page *page = explanation->page;
	uint32_t nr;

	if (explanation->nr_matches <= first)
		return;
	nr = explanation->nr_matches - first;
	print_heading(page, heading);
	for (uint32_t i = first; i < first + nr && i < first + MAX_OTHERS; i++) {
		const uint32_t vertex = explanation->matches[i];

		text_printf(
			&page->cell, "%6.1f  ",
			summary_percent(graph->vertices[vertex].total.ns, explanation->whole_ns));
		call_graph_label(graph, vertex, &page->cell, LABEL_DISPLAY);
		summary_page_line(page, "");
	}
	if (nr > MAX_OTHERS)
		summary_more_print(page, nr - MAX_OTHERS);
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
		if (!err && has_lines(explanation))
			err = print_lines(explanation, function);
	}
	print_matches(explanation, "total%  others that match", 1);
	return err;
}

/* Make the functions whose last names are like the text's the matches, the most time first. */
static void find_near(struct explanation *explanation)
{
	const struct call_graph *graph = &explanation->graph;
	const char *wanted = last_name(explanation->text);
	const size_t max_distance = strlen(wanted) / 3;

	for (uint32_t i = 0; i < graph->nr_vertices; i++) {
		const struct profile_function *function = call_graph_function(graph, i);

		if (function && graph->vertices[i].total.samples &&
		    edit_distance(wanted, last_name(function->qualname)) <= max_distance)
			explanation->matches[explanation->nr_matches++] = i;
	}
	if (explanation->nr_matches)
		qsort_r(explanation->matches, explanation->nr_matches,
			sizeof(*explanation->matches), compare_matches, graph->vertices);
}

static void print_no_match(struct explanation *explanation)
{
	struct text *cell = &explanation->page->cell;

	text_clear(cell);
	text_puts(cell, "no function is called \"");
	label_append_string(cell, explanation->text);
	text_puts(cell, "\", or has that in its name or path");
	summary_page_line(explanation->page, "");
	find_near(explanation);
	print_matches(explanation, "total%  similar names", 0);
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
