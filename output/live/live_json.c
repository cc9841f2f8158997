/* SPDX-License-Identifier: MIT */
#include "output/live/live_json.h"

#include <errno.h>
#include <stdlib.h>

#include "output/dump/dumped_thread.h"
#include "output/profile/frame_json.h"
#include "output/run/stats.h"
#include "output/text/json.h"
#include "procmem/cleanup.h"

enum { VERSION = 1 };

/* A share of 1 as 100, with two decimals. */
static void write_percent(struct json *json, const char *key, double share)
{
	json_key(json, key);
	if (share < 0)
		json_null(json);
	else
		json_fixed(json, (uint64_t)(share * 10000 + 0.5), 2);
}

static void write_weight(struct json *json, const char *key, uint64_t ns, uint64_t whole_ns)
{
	json_key(json, key);
	json_object_begin(json);
	json_member_u64(json, "weight", ns);
	write_percent(json, "percent", live_share(ns, whole_ns));
	json_object_end(json);
}

static void write_side(struct json *json, const char *key, const struct live_figures *figures,
		       const struct live_row *row, enum profile_side side)
{
	const uint64_t whole_ns = profile_sums(figures->profile, side)->time_ns;

	json_key(json, key);
	json_object_begin(json);
	write_weight(json, "own", row->weights[side].self_ns, whole_ns);
	write_weight(json, "total", row->weights[side].total_ns, whole_ns);
	json_object_end(json);
}

/* Write a function or line, with the members of a frame in a dump. */
static void write_row(struct json *json, const struct live_figures *figures,
		      const struct live_row *row)
{
	const struct profile_function *function = row->function;

	json_object_begin(json);
	frame_json_function(json, function->qualname, function->kind, function->path,
			    function->first_line);
	if (figures->by_line)
		frame_json_line(json, row->line);
	write_side(json, "recent", figures, row, LIVE_RECENT);
	write_side(json, "all", figures, row, LIVE_ALL);
	json_object_end(json);
}

/* The frames of a thread, made from its node in the tree. */
struct thread_frames {
	struct frame *frames;	    /* owned; outermost first */
	struct function *functions; /* owned; parallel to frames; their strings are the profile's */
	uint32_t nr;
};

/* Make the frames of a node. Returns 0 or -ENOMEM. */
static int make_frames(const struct profile *profile, uint32_t node, struct thread_frames *made)
{
	uint32_t nr, nr_nodes;
	const struct profile_function *functions = profile_functions(profile, &nr);
	const struct profile_frame *rows = profile_frames(profile, &nr);
	const struct profile_node *nodes = profile_nodes(profile, &nr_nodes);
	uint32_t depth = 0;

	for (uint32_t i = node; i != PROFILE_NONE; i = nodes[i].parent)
		depth++;
	made->nr = depth;
	made->frames = calloc((size_t)depth + 1, sizeof(*made->frames));
	made->functions = calloc((size_t)depth + 1, sizeof(*made->functions));
	if (!made->frames || !made->functions)
		return -ENOMEM;
	for (uint32_t i = node; i != PROFILE_NONE; i = nodes[i].parent) {
		const struct profile_frame *row = &rows[nodes[i].frame];
		const struct profile_function *function = &functions[row->function];

		made->functions[--depth] = (struct function){
			.qualname = function->qualname,
			.path = function->path,
			.first_line = function->first_line,
			.kind = function->kind,
		};
		made->frames[depth] = (struct frame){
			.function = &made->functions[depth],
			.line = row->line,
		};
	}
	return 0;
}

/* Write a thread, with the members of one in a dump. Returns 0 or -ENOMEM. */
static int write_thread(struct json *json, const struct live *live,
			const struct live_thread *thread)
{
	const struct live_process *process = live_process(live, thread->thread.process);
	const struct dumped_layout layout = {.sources = NULL};
	const uint64_t recent_ns = live_recent_ns(live);
	struct thread_frames made = {.nr = 0};
	struct dumped_thread dumped = {.thread = thread->thread, .flags = thread->flags};
	int err = make_frames(live_profile(live), thread->node, &made);

	if (!err) {
		dumped.frames = made.frames;
		dumped.nr_frames = made.nr;
		json_object_begin(json);
		json_member_known(json, "pid", process ? (uint64_t)process->pid : 0);
		json_member_string(json, "state", live_state_name(live_state_of(thread->flags)));
		json_key(json, "recent");
		json_object_begin(json);
		for (int state = 0; state < NR_LIVE_STATES; state++)
			write_percent(json, live_state_name((enum live_state)state),
				      live_share(thread->state_ns[state], recent_ns));
		write_percent(json, "gc", live_share(thread->gc_ns, recent_ns));
		json_object_end(json);
		dumped_thread_write_members(json, &dumped, &layout);
		json_object_end(json);
	}
	free(made.frames);
	free(made.functions);
	return err;
}

static void write_head(struct json *json, const struct live *live,
		       const struct live_context *context)
{
	const struct run_info *info = &context->run->info;
	struct live_summary summary;

	live_summarize(live, &summary);
	json_member_u64(json, "version", VERSION);
	json_key(json, "pid");
	json_i64(json, info->target.pid);
	json_member_string(json, "python", info->python.version);
	json_member_string(json, "command", info->target.command_line);
	json_member_u64(json, "time_unix_ns", context->time_ns);
	json_member_u64(json, "recent_ns", live_recent_ns(live));
	json_member_u64(json, "processes", summary.nr_processes);
	write_percent(json, "cpu_percent", context->cpu_share);
	write_percent(json, "gil_percent", info->python.free_threaded ? -1 : summary.gil_share);
	write_percent(json, "gc_percent", summary.gc_share);
	json_key(json, "stats");
	json_object_begin(json);
	stats_append_json(json, &context->run->stats, info);
	json_object_end(json);
}

int live_write_json(const struct live *live, const struct live_figures *figures,
		    const struct live_context *context, FILE *out)
{
	uint32_t nr_threads;
	const struct live_thread *threads = live_threads(live, &nr_threads);
	struct json json;
	int err = 0;

	json_init(&json, out, 0);
	json_object_begin(&json);
	write_head(&json, live, context);
	json_key(&json, "functions");
	json_array_begin(&json);
	for (uint32_t i = 0; i < figures->nr_rows; i++)
		if (!context->max_rows || i < context->max_rows)
			write_row(&json, figures, &figures->rows[i]);
	json_array_end(&json);
	json_key(&json, "threads");
	json_array_begin(&json);
	for (uint32_t i = 0; !err && i < nr_threads; i++)
		if (threads[i].is_used)
			err = write_thread(&json, live, &threads[i]);
	json_array_end(&json);
	json_object_end(&json);
	return err ? err : json_finish(&json);
}
