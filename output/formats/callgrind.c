/* SPDX-License-Identifier: MIT */
#include "output/formats/callgrind.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/caveats.h"
#include "output/profile/call_graph.h"
#include "output/profile/label.h"
#include "output/text/text.h"
#include "procmem/cleanup.h"

#define ROOT_WORDS  "[all]"
#define NO_FILE	    "???"
#define PYTHON_NAME "[python]"
#define JIT_NAME    "[jit]"
#define KERNEL_NAME "[kernel]"

/* The name of one vertex. */
struct vertex_name {
	uint32_t object, file; /* their numbers */
	bool is_ambiguous;     /* another function of the file has the same name */
	bool is_written;
};

/*
 * All names: those of the graph's vertices, the caller of the outermost, and samples without
 * frames.
 */
struct names {
	const struct call_graph *graph;	       /* borrowed */
	uint32_t root, idle;		       /* the vertex numbers of the last two */
	bool has_objects;		       /* some functions are not Python's */
	struct vertex_name *vertices;	       /* owned; by vertex */
	bool *objects_written, *files_written; /* owned; by number; already written */
};

/* A cost line: a frame's self cost, or one of its calls. */
struct cost {
	uint32_t vertex; /* the frame's */
	int32_t line;
	uint32_t call; /* in the graph; PROFILE_NONE for self cost */
	struct profile_weight weight;
};

struct writer {
	FILE *out;
	const struct artefact *artefact;
	struct call_graph graph;
	struct names names;
	struct cost *costs; /* owned; by vertex and line, self costs first */
	size_t nr_costs;
	struct text text; /* not yet written */
};

/*
 * The names. Objects, files and functions are numbered separately. A name follows its number at
 * its first occurrence only: "fn=(3) main", then "fn=(3)".
 */

/* Drop a negative line: "-1" would be relative to the previous line. */
static int32_t line_number(int32_t line)
{
	return line > 0 ? line : 0;
}

static const struct profile_function *function_of(const struct names *names, uint32_t vertex)
{
	return vertex < names->root ? call_graph_function(names->graph, vertex) : NULL;
}

static bool is_of_module(const struct profile_function *function)
{
	return function->kind == FUNCTION_NATIVE || function->kind == FUNCTION_KERNEL;
}

/* Returns the object that a vertex's code is in. */
static const char *object_of(const struct names *names, uint32_t vertex)
{
	const struct profile_function *function = function_of(names, vertex);

	if (function && function->kind == FUNCTION_JIT)
		return JIT_NAME;
	if (!function || !is_of_module(function))
		return PYTHON_NAME;
	if (function->path[0])
		return function->path;
	return function->kind == FUNCTION_KERNEL ? KERNEL_NAME : NO_FILE;
}

/* Returns a vertex's source file. A module is none. */
static const char *file_of(const struct names *names, uint32_t vertex)
{
	const struct profile_function *function = function_of(names, vertex);

	return function && function->path[0] && !is_of_module(function) ? function->path : NO_FILE;
}

static const char *name_of(const struct names *names, uint32_t vertex)
{
	const struct profile_function *function = function_of(names, vertex);

	return function ? function->qualname : "";
}

/* By file, then name. */
static int compare_files(const void *left, const void *right, void *context)
{
	const struct names *names = context;
	uint32_t a = *(const uint32_t *)left;
	uint32_t b = *(const uint32_t *)right;
	int order = strcmp(file_of(names, a), file_of(names, b));

	return order ? order : strcmp(name_of(names, a), name_of(names, b));
}

static int compare_objects(const void *left, const void *right, void *context)
{
	const struct names *names = context;

	return strcmp(object_of(names, *(const uint32_t *)left),
		      object_of(names, *(const uint32_t *)right));
}

/* Number the files from 1, and mark functions of a file that share a name. */
static void files_number(struct names *names, const uint32_t *order, uint32_t nr)
{
	uint32_t number = 1;

	for (uint32_t i = 0; i < nr; i++) {
		struct vertex_name *name = &names->vertices[order[i]];
		bool same_file = i > 0 && strcmp(file_of(names, order[i - 1]),
						 file_of(names, order[i])) == 0;

		if (i > 0 && !same_file)
			number++;
		name->file = number;
		if (!same_file || !function_of(names, order[i]) ||
		    compare_files(&order[i - 1], &order[i], names) != 0)
			continue;
		name->is_ambiguous = true;
		names->vertices[order[i - 1]].is_ambiguous = true;
	}
}

static void objects_number(struct names *names, const uint32_t *order, uint32_t nr)
{
	uint32_t number = 1;

	for (uint32_t i = 0; i < nr; i++) {
		if (i > 0 && compare_objects(&order[i - 1], &order[i], names) != 0)
			number++;
		names->vertices[order[i]].object = number;
	}
	names->has_objects = number > 1;
}

/* Assign the numbers. Returns 0 or -ENOMEM; call names_done() either way. */
static int names_init(struct names *names, const struct call_graph *graph)
{
	uint32_t nr = graph->nr_vertices + 2;
	cleanup_free uint32_t *order = calloc(nr, sizeof(*order));

	*names = (struct names){
		.graph = graph,
		.root = graph->nr_vertices,
		.idle = graph->nr_vertices + 1,
		.vertices = calloc(nr, sizeof(*names->vertices)),
		.objects_written = calloc((size_t)nr + 1, sizeof(bool)),
		.files_written = calloc((size_t)nr + 1, sizeof(bool)),
	};
	if (!order || !names->vertices || !names->objects_written || !names->files_written)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		order[i] = i;
	qsort_r(order, nr, sizeof(*order), compare_files, names);
	files_number(names, order, nr);
	qsort_r(order, nr, sizeof(*order), compare_objects, names);
	objects_number(names, order, nr);
	return 0;
}

static void names_done(struct names *names)
{
	free(names->vertices);
	free(names->objects_written);
	free(names->files_written);
	*names = (struct names){0};
}

/* Append "fl=(2) path", or "fl=(2)" if the path was written before. */
static void put_string(struct text *text, const char *key, uint32_t number, const char *string,
		       bool *is_written)
{
	text_printf(text, "%s=(%" PRIu32 ")", key, number);
	if (!*is_written) {
		text_puts(text, " ");
		label_append_escaped(text, string, strlen(string), LABEL_DISPLAY);
	}
	*is_written = true;
	text_puts(text, "\n");
}

/* Append the name, with the line or path if it is ambiguous. */
static void put_function_name(struct text *text, const struct profile_function *function,
			      bool is_ambiguous)
{
	label_append_function(text, function->qualname, "", 0, LABEL_DISPLAY);
	if (!is_ambiguous)
		return;
	if (function->first_line > 0) {
		text_printf(text, ":%" PRId32, function->first_line);
	} else if (function->path[0]) {
		text_puts(text, " (");
		label_append_location(text, function->path, "", 0, LABEL_DISPLAY);
		text_puts(text, ")");
	}
}

static void put_name(const struct names *names, struct text *text, uint32_t vertex)
{
	const struct profile_function *function = function_of(names, vertex);

	if (vertex == names->root)
		text_puts(text, ROOT_WORDS);
	else if (vertex == names->idle)
		text_puts(text, LABEL_NO_PYTHON_FRAMES);
	else if (function)
		put_function_name(text, function, names->vertices[vertex].is_ambiguous);
	else
		call_graph_label(names->graph, vertex, text, LABEL_DISPLAY);
}

/* Append the lines that name a vertex, with these keys. */
static void put_vertex(struct names *names, struct text *text, uint32_t vertex,
		       const char *const keys[3])
{
	struct vertex_name *name = &names->vertices[vertex];

	if (names->has_objects)
		put_string(text, keys[0], name->object, object_of(names, vertex),
			   &names->objects_written[name->object]);
	put_string(text, keys[1], name->file, file_of(names, vertex),
		   &names->files_written[name->file]);
	text_printf(text, "%s=(%" PRIu32 ")", keys[2], vertex + 1);
	if (!name->is_written) {
		text_puts(text, " ");
		put_name(names, text, vertex);
	}
	name->is_written = true;
	text_puts(text, "\n");
}

/* Append the lines that begin the costs of a vertex. */
static void names_begin(struct names *names, struct text *text, uint32_t vertex)
{
	static const char *const keys[] = {"ob", "fl", "fn"};

	text_puts(text, "\n");
	put_vertex(names, text, vertex, keys);
}

/* Returns the first line of a vertex; 0 if unknown. */
static int32_t names_line(const struct names *names, uint32_t vertex)
{
	const struct profile_function *function = function_of(names, vertex);

	return function ? line_number(function->first_line) : 0;
}

/* The costs. */

/* Collect the self cost of every frame. */
static int selves_collect(struct writer *writer)
{
	const struct profile *profile = writer->artefact->profile;
	uint32_t nr_frames;
	uint32_t nr_nodes;
	const struct profile_frame *frames = profile_frames(profile, &nr_frames);
	const struct profile_node *nodes = profile_nodes(profile, &nr_nodes);
	struct cost *costs;

	costs = calloc((size_t)nr_frames + writer->graph.nr_calls + 1, sizeof(*costs));
	if (!costs)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_frames; i++)
		costs[i] = (struct cost){
			.vertex = writer->graph.vertex_of_frame[i],
			.line = line_number(frames[i].line),
			.call = PROFILE_NONE,
		};
	for (uint32_t i = 0; i < nr_nodes; i++) {
		costs[nodes[i].frame].weight.samples += nodes[i].self_samples;
		costs[nodes[i].frame].weight.ns += nodes[i].self_ns;
	}
	writer->costs = costs;
	writer->nr_costs = nr_frames;
	return 0;
}

/* Whether a call is the root's, a function's own, or without samples. */
static bool call_is_omitted(const struct call_graph *graph, const struct call *call)
{
	return call->caller == PROFILE_NONE || !call->seen.samples ||
	       graph->vertex_of_frame[call->caller] == call->callee;
}

static void calls_collect(struct writer *writer)
{
	const struct call_graph *graph = &writer->graph;
	uint32_t nr;
	const struct profile_frame *frames = profile_frames(graph->profile, &nr);

	for (uint32_t i = 0; i < graph->nr_calls; i++) {
		const struct call *call = &graph->calls[i];

		if (call_is_omitted(graph, call))
			continue;
		writer->costs[writer->nr_costs++] = (struct cost){
			.vertex = graph->vertex_of_frame[call->caller],
			.line = line_number(frames[call->caller].line),
			.call = i,
			.weight = call->first,
		};
	}
}

static int cost_compare(const void *left, const void *right)
{
	const struct cost *a = left;
	const struct cost *b = right;

	if (a->vertex != b->vertex)
		return a->vertex < b->vertex ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	/* PROFILE_NONE + 1 is 0, so self costs come first. */
	return (a->call + 1 > b->call + 1) - (a->call + 1 < b->call + 1);
}

/* The header. */

static void put_run_pair(void *context, const char *name, const char *value)
{
	struct text *text = context;

	text_puts(text, "desc: ");
	label_append_escaped(text, name, strlen(name), LABEL_DISPLAY);
	text_puts(text, ": ");
	label_append_escaped(text, value, strlen(value), LABEL_DISPLAY);
	text_puts(text, "\n");
}

/* "creator:", "pid:" and "cmd:" describe the first run; "desc:" lists everything of all runs. */
static void put_runs(struct text *text, const struct artefact *artefact)
{
	const struct run_info *first = &artefact->runs[0].info;
	const struct run_target *target = &first->target;
	const char *version = first->pysample.version ? first->pysample.version : "";

	text_puts(text, "# callgrind format\nversion: 1\ncreator: pysample");
	text_puts(text, *version ? " " : "");
	label_append_escaped(text, version, strlen(version), LABEL_DISPLAY);
	text_puts(text, "\n");
	if (target->pid)
		text_printf(text, "pid: %jd\n", (intmax_t)target->pid);
	if (target->command_line) {
		text_puts(text, "cmd: ");
		label_append_escaped(text, target->command_line, strlen(target->command_line),
				     LABEL_DISPLAY);
		text_puts(text, "\n");
	}
	for (uint32_t i = 0; i < artefact->nr_runs; i++) {
		if (artefact->nr_runs > 1)
			text_printf(text, "desc: run: %" PRIu32 "\n", i + 1);
		run_for_each_pair(&artefact->runs[i], put_run_pair, text);
	}
}

/* Append the caveats, after the runs. */
static void put_caveats(struct text *text, const struct artefact *artefact)
{
	struct text caveats = {0};

	caveats_append(&caveats, artefact);
	if (caveats.length)
		put_run_pair(text, "note", text_string(&caveats));
	if (caveats.error)
		text->error = caveats.error;
	text_done(&caveats);
}

/* "events:" must be the last line of the header. */
static void put_events(struct text *text, const struct profile *profile)
{
	enum profile_mode mode = profile_mode(profile);
	const char *name = profile_mode_name(mode);

	text_puts(text, "positions: line\n");
	if (!profile_mode_is_time(mode)) {
		text_printf(text, "event: %s : %s\nevents: %s\n", profile_mode_unit(mode),
			    profile_mode_time(mode), profile_mode_unit(mode));
		return;
	}
	text_puts(text, "event: samples : samples\n");
	text_printf(text, "event: %s_ns : nanoseconds of %s\n", name, profile_mode_time(mode));
	text_printf(text, "events: samples %s_ns\n", name);
}

/* The body. */

/* Write the buffered text. */
static int flush(struct writer *writer)
{
	int err = text_write(&writer->text, writer->out);

	text_clear(&writer->text);
	return err;
}

/* Without time the samples are the only event: put_events(). */
static void put_weight(struct writer *writer, struct profile_weight weight)
{
	text_printf(&writer->text, " %" PRIu64, weight.samples);
	if (profile_mode_is_time(profile_mode(writer->artefact->profile)))
		text_printf(&writer->text, " %" PRIu64, weight.ns);
	text_puts(&writer->text, "\n");
}

/* Append the callee, the number of samples, and the line of the call. */
static void put_call(struct writer *writer, uint32_t callee, uint64_t nr_samples, int32_t line)
{
	static const char *const keys[] = {"cob", "cfi", "cfn"};

	put_vertex(&writer->names, &writer->text, callee, keys);
	text_printf(&writer->text, "calls=%" PRIu64 " %" PRId32 "\n%" PRId32, nr_samples,
		    names_line(&writer->names, callee), line);
}

/* Append the calls of the outermost functions, and the samples without frames. */
static void put_root(struct writer *writer)
{
	const struct call_graph *graph = &writer->graph;
	const struct profile_weight idle = profile_rootless_idle(graph->profile, PROFILE_SHOWN);

	names_begin(&writer->names, &writer->text, writer->names.root);
	for (uint32_t i = 0; i < graph->nr_calls; i++) {
		const struct call *call = &graph->calls[i];

		if (call->caller != PROFILE_NONE || !call->seen.samples)
			continue;
		put_call(writer, call->callee, call->seen.samples, 0);
		put_weight(writer, call->first);
	}
	if (!idle.samples)
		return;
	put_call(writer, writer->names.idle, idle.samples, 0);
	put_weight(writer, idle);
	names_begin(&writer->names, &writer->text, writer->names.idle);
	text_puts(&writer->text, "0");
	put_weight(writer, idle);
}

static void put_cost(struct writer *writer, const struct cost *cost)
{
	if (cost->call == PROFILE_NONE) {
		text_printf(&writer->text, "%" PRId32, cost->line);
	} else {
		const struct call *call = &writer->graph.calls[cost->call];

		put_call(writer, call->callee, call->seen.samples, cost->line);
	}
	put_weight(writer, cost->weight);
}

static int costs_write(struct writer *writer)
{
	uint32_t vertex = PROFILE_NONE;

	for (size_t i = 0; i < writer->nr_costs; i++) {
		const struct cost *cost = &writer->costs[i];
		int err;

		if (cost->call == PROFILE_NONE && !cost->weight.samples)
			continue;
		if (cost->vertex != vertex) {
			err = flush(writer);
			if (err)
				return err;
			vertex = cost->vertex;
			names_begin(&writer->names, &writer->text, vertex);
		}
		put_cost(writer, cost);
	}
	return 0;
}

static int file_write(struct writer *writer)
{
	const struct profile_sums *sums = profile_sums(writer->graph.profile, PROFILE_SHOWN);
	int err;

	put_runs(&writer->text, writer->artefact);
	put_caveats(&writer->text, writer->artefact);
	put_events(&writer->text, writer->graph.profile);
	put_root(writer);
	err = costs_write(writer);
	if (err)
		return err;
	text_puts(&writer->text, "\ntotals:");
	put_weight(writer, (struct profile_weight){sums->account.nr_shown, sums->time_ns});
	err = flush(writer);
	if (!err && fflush(writer->out))
		err = -errno;
	return err;
}

static void writer_done(struct writer *writer)
{
	call_graph_done(&writer->graph);
	names_done(&writer->names);
	free(writer->costs);
	text_done(&writer->text);
}

int callgrind_write(const struct artefact *artefact, FILE *out)
{
	struct writer writer = {.out = out, .artefact = artefact};
	int err = call_graph_init(&writer.graph, artefact->profile, PROFILE_SHOWN, true);

	if (!err)
		err = names_init(&writer.names, &writer.graph);
	if (!err)
		err = selves_collect(&writer);
	if (!err) {
		calls_collect(&writer);
		qsort(writer.costs, writer.nr_costs, sizeof(*writer.costs), cost_compare);
		err = file_write(&writer);
	}
	writer_done(&writer);
	return err;
}
