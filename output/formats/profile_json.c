/* SPDX-License-Identifier: MIT */
#include "output/formats/profile_json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/caveats.h"
#include "output/profile/frame_json.h"
#include "output/profile/function_tree.h"
#include "output/profile/grouping.h"
#include "output/profile/label.h"
#include "output/run/loss.h"
#include "output/run/run_json.h"
#include "output/source/run_sources.h"
#include "output/source/source_lines.h"
#include "output/text/json.h"
#include "procmem/cleanup.h"

enum { VERSION = 1 };

/* Functions and nodes with less of the time, in thousandths, are left out. */
enum { MIN_PERMILLE = 5 };

/* The functions with the most time of their own are included in any case. */
enum { MIN_FUNCTIONS = 50 };

/*
 * Of deep recursion, of functions that everybody calls, and of long ones, the object has these with
 * the most time. A reader wants no more, and what a program does must not decide how large the
 * object is.
 */
enum { MAX_NODES = 1000, MAX_CALLS = 20, MAX_LINES = 50 };

#define NOT_INCLUDED UINT32_MAX

/* A function or a root, by its vertex in the call graphs. */
struct entry {
	uint32_t vertex;
	struct profile_weight self[NR_PROFILE_SIDES], total[NR_PROFILE_SIDES];
};

struct writer {
	struct json json;
	const struct artefact *artefact;
	const struct profile *profile;
	int nr_sides;
	struct call_graph graphs[NR_PROFILE_SIDES];
	struct function_tree tree;
	struct entry *entries; /* owned; those included come first, by self time */
	uint32_t nr_entries, nr_included;
	uint32_t *entry_of_vertex; /* owned; or NOT_INCLUDED */
	/* Of the side shown: calls by callee and caller, and frames, with their totals. */
	struct grouping calls_to, calls_from, frames;
	struct profile_total *frame_totals; /* owned */
	struct source_lines sources;
	bool has_sources;
	struct text label;
};

static void writer_done(struct writer *writer)
{
	for (int side = 0; side < writer->nr_sides; side++)
		call_graph_done(&writer->graphs[side]);
	function_tree_done(&writer->tree);
	free(writer->entries);
	free(writer->entry_of_vertex);
	grouping_done(&writer->calls_to);
	grouping_done(&writer->calls_from);
	grouping_done(&writer->frames);
	free(writer->frame_totals);
	source_lines_done(&writer->sources);
	text_done(&writer->label);
}

/* What is included. */

/* More self time first, then more time in all, then the first seen. */
static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	const uint64_t self_a = a->self[PROFILE_SHOWN].ns, self_b = b->self[PROFILE_SHOWN].ns;
	const uint64_t total_a = a->total[PROFILE_SHOWN].ns, total_b = b->total[PROFILE_SHOWN].ns;

	if (self_a != self_b)
		return self_a < self_b ? 1 : -1;
	if (total_a != total_b)
		return total_a < total_b ? 1 : -1;
	return (a->vertex > b->vertex) - (a->vertex < b->vertex);
}

/* List what has samples on any side. Returns 0 or -ENOMEM. */
static int collect_entries(struct writer *writer)
{
	const uint32_t nr_vertices = writer->graphs[PROFILE_SHOWN].nr_vertices;

	writer->entries = calloc((size_t)nr_vertices + 1, sizeof(*writer->entries));
	writer->entry_of_vertex = calloc((size_t)nr_vertices + 1, sizeof(uint32_t));
	if (!writer->entries || !writer->entry_of_vertex)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_vertices; i++) {
		struct entry entry = {.vertex = i};
		uint64_t nr_samples = 0;

		writer->entry_of_vertex[i] = NOT_INCLUDED;
		for (int side = 0; side < writer->nr_sides; side++) {
			entry.self[side] = writer->graphs[side].vertices[i].self;
			entry.total[side] = writer->graphs[side].vertices[i].total;
			nr_samples += entry.total[side].samples;
		}
		if (nr_samples)
			writer->entries[writer->nr_entries++] = entry;
	}
	return 0;
}

static void choose_entries(struct writer *writer)
{
	if (writer->nr_entries)
		qsort(writer->entries, writer->nr_entries, sizeof(*writer->entries),
		      compare_entries);
	for (uint32_t i = 0; i < writer->nr_entries; i++) {
		const struct entry entry = writer->entries[i];

		if (i >= MIN_FUNCTIONS &&
		    !function_tree_is_large(writer->profile, entry.total, MIN_PERMILLE))
			continue;
		writer->entries[i] = writer->entries[writer->nr_included];
		writer->entries[writer->nr_included] = entry;
		writer->entry_of_vertex[entry.vertex] = writer->nr_included++;
	}
}

/* Find the calls to and from each vertex. Returns 0 or -ENOMEM. */
static int group_calls(struct writer *writer)
{
	const struct call_graph *graph = &writer->graphs[PROFILE_SHOWN];
	cleanup_free uint32_t *vertices = calloc((size_t)graph->nr_calls + 1, sizeof(*vertices));
	int err;

	if (!vertices)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->nr_calls; i++)
		vertices[i] = graph->calls[i].callee;
	err = grouping_init(&writer->calls_to, vertices, graph->nr_calls, graph->nr_vertices);
	if (err)
		return err;
	/* The last group is of what is outermost. */
	for (uint32_t i = 0; i < graph->nr_calls; i++)
		vertices[i] = graph->calls[i].caller == PROFILE_NONE ? graph->nr_vertices
								     : graph->calls[i].caller;
	return grouping_init(&writer->calls_from, vertices, graph->nr_calls,
			     graph->nr_vertices + 1);
}

static int writer_init(struct writer *writer, const struct artefact *artefact, FILE *out)
{
	const struct call_graph *graph = &writer->graphs[PROFILE_SHOWN];
	uint32_t nr_frames;
	int err = 0;

	*writer = (struct writer){
		.artefact = artefact,
		.profile = artefact->profile,
		.nr_sides = artefact->has_base ? NR_PROFILE_SIDES : 1,
	};
	json_init(&writer->json, out, 0);
	writer->has_sources = run_sources_are_here(artefact->runs, artefact->nr_runs,
						   &writer->sources.until_ns) &&
			      !artefact->options.no_source;
	(void)profile_frames(writer->profile, &nr_frames);
	for (int side = 0; !err && side < writer->nr_sides; side++)
		err = call_graph_init(&writer->graphs[side], writer->profile, side, false);
	if (!err)
		err = function_tree_init(&writer->tree, graph, MIN_PERMILLE, MAX_NODES);
	if (!err)
		err = profile_totals(writer->profile, PROFILE_SHOWN, &writer->frame_totals);
	if (!err)
		err = grouping_init(&writer->frames, graph->vertex_of_frame, nr_frames,
				    graph->nr_vertices);
	if (!err)
		err = group_calls(writer);
	if (!err)
		err = collect_entries(writer);
	if (!err)
		choose_entries(writer);
	return err;
}

/* Writing. */

static void write_weight(struct writer *writer, const char *key, enum profile_side side,
			 struct profile_weight weight)
{
	const double whole = (double)profile_sums(writer->profile, side)->time_ns;
	const double share = whole > 0 ? (double)weight.ns / whole : 0;
	struct json *json = &writer->json;

	json_key(json, key);
	json_object_begin(json);
	json_member_u64(json, "weight", weight.ns);
	json_member_u64(json, "samples", weight.samples);
	json_key(json, "percent");
	json_fixed(json, (uint64_t)(share * 10000 + 0.5), 2);
	json_object_end(json);
}

static void write_weights(struct writer *writer, const struct profile_weight *self,
			  const struct profile_weight *total)
{
	struct json *json = &writer->json;

	write_weight(writer, "own", PROFILE_SHOWN, self[PROFILE_SHOWN]);
	write_weight(writer, "total", PROFILE_SHOWN, total[PROFILE_SHOWN]);
	if (!writer->artefact->has_base)
		return;
	json_key(json, "base");
	json_object_begin(json);
	write_weight(writer, "own", PROFILE_BASE, self[PROFILE_BASE]);
	write_weight(writer, "total", PROFILE_BASE, total[PROFILE_BASE]);
	json_object_end(json);
	json_member_string(json, "only_in",
			   !total[PROFILE_BASE].samples	   ? "profile"
			   : !total[PROFILE_SHOWN].samples ? "base"
							   : NULL);
}

/* Write whose root it is; null if it is shared. */
static void write_root(struct writer *writer, const struct profile_frame *root)
{
	struct json *json = &writer->json;
	uint32_t nr;
	const struct profile_thread *thread;
	pid_t pid;

	json_key(json, root->root == ROOT_PROCESS ? "pid" : "thread");
	if (root->owner == PROFILE_NONE ||
	    (root->root == ROOT_PROCESS && profile_options(writer->profile)->merges_names)) {
		json_null(json);
	} else if (root->root == ROOT_PROCESS) {
		pid = profile_processes(writer->profile, &nr)[root->owner].pid;
		if (pid > 0)
			json_i64(json, pid);
		else
			json_null(json);
	} else {
		thread = &profile_threads(writer->profile, &nr)[root->owner];
		json_object_begin(json);
		frame_json_thread(json, thread->tid, thread->name, thread->interpreter_id,
				  thread->is_main);
		json_object_end(json);
	}
}

/* Write what a function or root is called. */
static void write_name(struct writer *writer, uint32_t vertex)
{
	const struct call_graph *graph = &writer->graphs[PROFILE_SHOWN];
	const struct profile_function *function = call_graph_function(graph, vertex);
	const struct profile_frame *root;
	struct json *json = &writer->json;
	uint32_t nr;

	if (function) {
		frame_json_function(json, function->qualname, function->kind, function->path,
				    function->first_line);
		return;
	}
	root = &profile_frames(writer->profile, &nr)[graph->vertices[vertex].frame];
	text_clear(&writer->label);
	call_graph_label(graph, vertex, &writer->label, LABEL_DISPLAY);
	json_member_string(json, "name", text_string(&writer->label));
	json_member_string(json, "kind", root->root == ROOT_PROCESS ? "process" : "thread");
	json_member_string(json, "path", "");
	json_member_known(json, "first_line", 0);
	write_root(writer, root);
}

/* Larger weights first. */
static int compare_calls(const void *left, const void *right, void *context)
{
	const struct call *calls = context;
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (calls[a].seen.ns != calls[b].seen.ns)
		return calls[a].seen.ns < calls[b].seen.ns ? 1 : -1;
	return (a > b) - (a < b);
}

/* Write the callers or callees of a vertex that are included, up to MAX_CALLS. */
static void write_calls(struct writer *writer, uint32_t vertex, bool is_callers)
{
	const struct call_graph *graph = &writer->graphs[PROFILE_SHOWN];
	const struct grouping *calls = is_callers ? &writer->calls_to : &writer->calls_from;
	const uint32_t first = calls->first[vertex], end = calls->first[vertex + 1];
	struct json *json = &writer->json;
	uint32_t nr = 0;

	if (end > first)
		qsort_r(&calls->items[first], end - first, sizeof(uint32_t), compare_calls,
			graph->calls);
	json_key(json, is_callers ? "callers" : "callees");
	json_array_begin(json);
	for (uint32_t i = first; i < end && nr < MAX_CALLS; i++) {
		const struct call *call = &graph->calls[calls->items[i]];
		const uint32_t other = is_callers ? call->caller : call->callee;

		if (!call->seen.samples ||
		    (other != PROFILE_NONE && writer->entry_of_vertex[other] == NOT_INCLUDED))
			continue;
		nr++;
		json_object_begin(json);
		json_key(json, "function");
		if (other == PROFILE_NONE)
			json_null(json);
		else
			json_u64(json, writer->entry_of_vertex[other]);
		write_weight(writer, "total", PROFILE_SHOWN, call->seen);
		json_object_end(json);
	}
	json_array_end(json);
}

/* More time first, then the first seen. */
static int compare_frames(const void *left, const void *right, void *context)
{
	const struct profile_total *totals = context;
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (totals[a].total_ns != totals[b].total_ns)
		return totals[a].total_ns < totals[b].total_ns ? 1 : -1;
	return (a > b) - (a < b);
}

/* Order of the frames of one function. */
static int compare_lines(const void *left, const void *right, void *context)
{
	const struct profile_frame *frames = context;
	const int32_t a = frames[*(const uint32_t *)left].line;
	const int32_t b = frames[*(const uint32_t *)right].line;

	return (a > b) - (a < b);
}

static void write_line(struct writer *writer, const struct profile_frame *frame,
		       const struct profile_total *total)
{
	uint32_t nr;
	const struct profile_function *function =
		&profile_functions(writer->profile, &nr)[frame->function];
	struct json *json = &writer->json;

	json_object_begin(json);
	frame_json_line(json, frame->line);
	if (writer->has_sources)
		frame_json_source(json, &writer->sources, function->path, frame->line);
	else
		json_member_string(json, "source", NULL);
	json_member_u64(json, "own", total->self_ns);
	json_member_u64(json, "total", total->total_ns);
	json_object_end(json);
}

/* Write the lines of a function that were executing, the hottest in the order of the file. */
static void write_lines(struct writer *writer, uint32_t vertex)
{
	const struct grouping *frames = &writer->frames;
	uint32_t *items = &frames->items[frames->first[vertex]];
	uint32_t nr, nr_items = frames->first[vertex + 1] - frames->first[vertex];
	const struct profile_frame *rows = profile_frames(writer->profile, &nr);
	struct json *json = &writer->json;

	if (nr_items > MAX_LINES) {
		qsort_r(items, nr_items, sizeof(*items), compare_frames, writer->frame_totals);
		nr_items = MAX_LINES;
	}
	if (nr_items)
		qsort_r(items, nr_items, sizeof(*items), compare_lines, (void *)rows);
	json_key(json, "lines");
	json_array_begin(json);
	for (uint32_t i = 0; i < nr_items; i++) {
		const uint32_t frame = items[i];

		if (rows[frame].function != PROFILE_NONE &&
		    writer->frame_totals[frame].total_samples)
			write_line(writer, &rows[frame], &writer->frame_totals[frame]);
	}
	json_array_end(json);
}

static void write_functions(struct writer *writer)
{
	struct profile_weight left_out = {0};
	struct json *json = &writer->json;

	json_key(json, "functions");
	json_array_begin(json);
	for (uint32_t i = 0; i < writer->nr_included; i++) {
		const struct entry *entry = &writer->entries[i];

		json_object_begin(json);
		write_name(writer, entry->vertex);
		write_weights(writer, entry->self, entry->total);
		write_calls(writer, entry->vertex, true);
		write_calls(writer, entry->vertex, false);
		write_lines(writer, entry->vertex);
		json_object_end(json);
	}
	json_array_end(json);
	for (uint32_t i = writer->nr_included; i < writer->nr_entries; i++) {
		left_out.ns += writer->entries[i].self[PROFILE_SHOWN].ns;
		left_out.samples += writer->entries[i].self[PROFILE_SHOWN].samples;
	}
	json_key(json, "functions_left_out");
	json_object_begin(json);
	json_member_u64(json, "count", writer->nr_entries - writer->nr_included);
	write_weight(writer, "own", PROFILE_SHOWN, left_out);
	json_object_end(json);
}

/* A flat list, because many readers limit how deep values may nest. */
static void write_tree(struct writer *writer)
{
	struct json *json = &writer->json;

	json_key(json, "tree");
	json_array_begin(json);
	for (uint32_t i = 0; i < writer->tree.nr_nodes; i++) {
		const struct function_node *node = &writer->tree.nodes[i];

		json_object_begin(json);
		json_key(json, "parent");
		if (node->parent == PROFILE_NONE)
			json_null(json);
		else
			json_u64(json, node->parent);
		json_member_u64(json, "function", writer->entry_of_vertex[node->vertex]);
		write_weights(writer, node->self, node->total);
		json_object_end(json);
	}
	json_array_end(json);
}

/* Write what was lost in runs. */
static void write_lost(struct writer *writer, const struct run *runs, uint32_t nr_runs)
{
	struct json *json = &writer->json;
	struct sampler_stats sum = {0};

	for (uint32_t i = 0; i < nr_runs; i++) {
		sum.samples += runs[i].stats.samples;
		for (int k = 0; k < NR_SAMPLE_LOSSES; k++)
			sum.lost[k] += runs[i].stats.lost[k];
	}
	json_key(json, "lost");
	json_object_begin(json);
	json_member_u64(json, "samples", loss_total(&sum));
	json_member_double(json, "percent", loss_percent(&sum));
	json_key(json, "reasons");
	json_object_begin(json);
	for (int k = 0; k < NR_SAMPLE_LOSSES; k++)
		if (sum.lost[k])
			json_member_u64(json, loss_name((enum sample_loss)k), sum.lost[k]);
	json_object_end(json);
	json_object_end(json);
}

/* Write one side: what it has, how exact it is, and its runs. */
static void write_side(struct writer *writer, const char *key, enum profile_side side)
{
	const struct artefact *artefact = writer->artefact;
	const struct profile_sums *sums = profile_sums(writer->profile, side);
	const struct profile_account *account = &sums->account;
	const struct run *runs = side == PROFILE_BASE ? artefact->base_runs : artefact->runs;
	const uint32_t nr_runs = side == PROFILE_BASE ? artefact->nr_base_runs : artefact->nr_runs;
	struct json *json = &writer->json;

	json_key(json, key);
	json_object_begin(json);
	json_member_u64(json, "weight", sums->time_ns);
	json_member_u64(json, "samples", account->nr_shown);
	json_member_u64(json, "approximate_samples", account->nr_approximate);
	write_weight(writer, "without_frames", side, profile_rootless_idle(writer->profile, side));
	json_key(json, "idle");
	json_object_begin(json);
	json_member_bool(json, "is_hidden", profile_mode(writer->profile) == PROFILE_BUSY);
	json_member_u64(json, "threads", account->nr_idle_threads);
	json_member_u64(json, "samples", account->nr_idle);
	json_member_u64(json, "wall_ns", account->idle_ns);
	json_object_end(json);
	write_lost(writer, runs, nr_runs);
	json_key(json, "runs");
	json_array_begin(json);
	for (uint32_t i = 0; i < nr_runs; i++)
		run_append_json(json, &runs[i]);
	json_array_end(json);
	json_object_end(json);
}

static void write_head(struct writer *writer)
{
	const enum profile_mode mode = profile_mode(writer->profile);
	struct json *json = &writer->json;

	json_member_u64(json, "version", VERSION);
	json_member_string(json, "mode", profile_mode_name(mode));
	json_member_string(json, "unit", profile_mode_is_time(mode) ? "ns" : "threads");
	text_clear(&writer->label);
	caveats_append(&writer->label, writer->artefact);
	json_member_string(json, "caveats", text_string(&writer->label));
	write_side(writer, "profile", PROFILE_SHOWN);
	if (writer->artefact->has_base)
		write_side(writer, "base", PROFILE_BASE);
}

int profile_json_write(const struct artefact *artefact, FILE *out)
{
	struct writer writer;
	int err = writer_init(&writer, artefact, out);

	if (!err) {
		json_object_begin(&writer.json);
		write_head(&writer);
		write_functions(&writer);
		write_tree(&writer);
		json_object_end(&writer.json);
		err = writer.label.error;
	}
	if (!err)
		err = json_finish(&writer.json);
	writer_done(&writer);
	return err;
}
