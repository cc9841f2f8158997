/* SPDX-License-Identifier: MIT */
#include "output/formats/callgrind.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/caveats.h"
#include "output/formats/callgrind_names.h"
#include "output/profile/call_graph.h"
#include "output/profile/label.h"
#include "output/text/text.h"
#include "procmem/cleanup.h"

/* A cost line: a frame's self cost, or one of its calls. */
struct cost {
	uint32_t party; /* the frame's */
	int32_t line;
	uint32_t call; /* in the graph; PROFILE_NONE for self cost */
	struct profile_weight weight;
};

struct writer {
	FILE *out;
	const struct artefact *artefact;
	struct call_graph graph;
	struct callgrind_names names;
	struct cost *costs; /* owned; by party and line, self costs first */
	size_t nr_costs;
	struct text text; /* not yet written */
};

static void writer_done(struct writer *writer)
{
	call_graph_done(&writer->graph);
	callgrind_names_done(&writer->names);
	free(writer->costs);
	text_done(&writer->text);
}

/* Write the buffered text. */
static int flush(struct writer *writer)
{
	int err = text_write(&writer->text, writer->out);

	text_clear(&writer->text);
	return err;
}

/* Drop a negative line: "-1" would be relative to the previous line. */
static int32_t line_number(int32_t line)
{
	return line > 0 ? line : 0;
}

/* Without time the samples are the only event: put_events(). */
static void put_weight(struct writer *writer, struct profile_weight weight)
{
	text_printf(&writer->text, " %" PRIu64, weight.samples);
	if (profile_mode_is_time(profile_mode(writer->artefact->profile)))
		text_printf(&writer->text, " %" PRIu64, weight.ns);
	text_puts(&writer->text, "\n");
}

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
			.party = writer->graph.party_of_frame[i],
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

/* Return whether a call is the root's, a function's own, or without samples. */
static bool call_is_told_elsewhere(const struct call_graph *graph, const struct call *call)
{
	return call->caller == PROFILE_NONE || !call->seen.samples ||
	       graph->party_of_frame[call->caller] == call->callee;
}

static void calls_collect(struct writer *writer)
{
	const struct call_graph *graph = &writer->graph;
	uint32_t nr;
	const struct profile_frame *frames = profile_frames(graph->profile, &nr);

	for (uint32_t i = 0; i < graph->nr_calls; i++) {
		const struct call *call = &graph->calls[i];

		if (call_is_told_elsewhere(graph, call))
			continue;
		writer->costs[writer->nr_costs++] = (struct cost){
			.party = graph->party_of_frame[call->caller],
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

	if (a->party != b->party)
		return a->party < b->party ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	/* PROFILE_NONE + 1 is 0, so self costs come first. */
	return (a->call + 1 > b->call + 1) - (a->call + 1 < b->call + 1);
}

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
		run_tell(&artefact->runs[i], put_run_pair, text);
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

/* Append the callee, the number of samples, and the line of the call. */
static void put_call(struct writer *writer, uint32_t callee, uint64_t nr_samples, int32_t line)
{
	callgrind_names_call(&writer->names, &writer->text, callee);
	text_printf(&writer->text, "calls=%" PRIu64 " %" PRId32 "\n%" PRId32, nr_samples,
		    callgrind_names_line(&writer->names, callee), line);
}

/* Append the calls of the outermost functions, and the samples without frames. */
static void put_root(struct writer *writer)
{
	const struct call_graph *graph = &writer->graph;
	const struct profile_weight idle = profile_rootless_idle(graph->profile, PROFILE_SELF);

	callgrind_names_begin(&writer->names, &writer->text, writer->names.root);
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
	callgrind_names_begin(&writer->names, &writer->text, writer->names.idle);
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
	uint32_t party = PROFILE_NONE;

	for (size_t i = 0; i < writer->nr_costs; i++) {
		const struct cost *cost = &writer->costs[i];
		int err;

		if (cost->call == PROFILE_NONE && !cost->weight.samples)
			continue;
		if (cost->party != party) {
			err = flush(writer);
			if (err)
				return err;
			party = cost->party;
			callgrind_names_begin(&writer->names, &writer->text, party);
		}
		put_cost(writer, cost);
	}
	return 0;
}

static int file_write(struct writer *writer)
{
	const struct profile_sums *sums = profile_sums(writer->graph.profile, PROFILE_SELF);
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

int callgrind_write(const struct artefact *artefact, FILE *out)
{
	struct writer writer = {.out = out, .artefact = artefact};
	int err = call_graph_init(&writer.graph, artefact->profile, PROFILE_SELF, true);

	if (!err)
		err = callgrind_names_init(&writer.names, &writer.graph);
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
