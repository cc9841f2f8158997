/* SPDX-License-Identifier: MIT */
#include "output/recording/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/recording/recorded_threads.h"
#include "output/recording/recording_format.h"
#include "output/tables/pair_map.h"
#include "output/text/text.h"
#include "procmem/array.h"

/* Added to max_kept, so that it suffices for small profiles. */
enum { MORE_KEPT = 1 << 20 };

/* Which patterns a frame matches, alone or with its callers. */
enum verdict { FRAME_INCLUDED = 1, FRAME_EXCLUDED = 2 };

/* A process of the recording. */
struct played_process {
	bool passes; /* it matches the filter's processes */
	bool has_row;
	uint32_t row; /* in the profile; PROFILE_NONE if it has none */
};

/* A thread of the recording. */
struct played_thread {
	bool passes;	 /* it matches the filter's threads and processes */
	bool has_row;	 /* row and root are set */
	bool has_waited; /* it had samples that PROFILE_BUSY hides */
	uint32_t row;	 /* in the profile; PROFILE_NONE if it has none */
	uint32_t root;	 /* node of the profile; PROFILE_NONE: none */
};

/* The recording's threads and processes, and their rows in the profile. */
struct played_threads {
	struct recorded_threads recorded;
	struct played_thread *rows;	  /* owned; parallel to the recorded ones */
	uint32_t nr;			  /* read so far */
	struct played_process *processes; /* owned; parallel to the recording's */
	struct pair_map row_of_key; /* (thread_key(), hash of the name) → row of the profile */
	uint32_t nr_keyed;	    /* rows entered in it so far */
};

/* The recording's functions since the last reset. */
struct played_functions {
	struct function_rows copies;
	uint32_t *rows; /* owned; parallel; rows in the profile; PROFILE_NONE: none yet */
	uint32_t max_rows;
};

/* A node of the recording. */
struct played_node {
	uint32_t parent, function;
	int32_t line;
	uint32_t profile_node; /* if threads have no roots; PROFILE_NONE: none yet */
	uint32_t verdict;
};

/* The recording's nodes since the last reset. */
struct played_nodes {
	struct played_node *rows; /* owned */
	uint32_t nr, max;
	struct pair_map of_root; /* (root, node of the recording) → the profile's */
	uint32_t max_kept;	 /* its limit */
	uint32_t *path;		 /* owned; nodes to create, innermost first */
	uint32_t nr_path, max_path;
};

/* What the patterns say of frames. */
struct verdicts {
	struct pair_map of_line; /* (function, line) → verdict */
	struct text label;	 /* of the frame to be matched */
};

struct player {
	const struct replay_filter *filter;
	struct profile *profile;
	const struct profile_options *options; /* the profile's */
	const struct process_rows *processes;  /* the recording's */
	enum profile_side side;
	uint64_t from_ns, to_ns;	   /* CLOCK_REALTIME */
	const struct profile_process *met; /* the first process found; borrowed */

	struct played_threads threads;
	struct played_functions functions;
	struct played_nodes nodes;
	struct verdicts verdicts;
};

/* Processes and threads. */

static bool process_passes(const struct replay_filter *filter,
			   const struct profile_process *process)
{
	char name[RECORDING_MAX_STRING_BYTES + 1];
	size_t length;
	const char *bytes = process_name(process, &length);

	if (length > RECORDING_MAX_STRING_BYTES)
		length = RECORDING_MAX_STRING_BYTES;
	memcpy(name, bytes, length);
	name[length] = '\0';
	return name_filter_passes(&filter->processes, name, process->pid);
}

static int play_thread(void *context, uint32_t process, const struct profile_thread *thread)
{
	struct player *player = context;
	struct played_threads *threads = &player->threads;
	const struct profile_thread *recorded;
	bool passes;

	(void)thread; /* recorded has its last name, which counts */
	if (threads->nr >= threads->recorded.nr_threads ||
	    (process != PROFILE_NONE && process >= player->processes->nr))
		return -ESTALE;
	recorded = &threads->recorded.threads[threads->nr];
	passes = (process == PROFILE_NONE ? !player->filter->processes.nr
					  : threads->processes[process].passes) &&
		 name_filter_passes(&player->filter->threads, recorded->name, recorded->tid);
	threads->rows[threads->nr++] = (struct played_thread){.passes = passes};
	return 0;
}

/* Find the profile's row of a process of the recording, or add it. */
static int process_get(struct player *player, uint32_t index, uint32_t *ret_row)
{
	const struct profile_process *process = &player->processes->rows[index];
	struct played_process *played = &player->threads.processes[index];
	int err;

	if (!played->has_row) {
		err = profile_get_process(player->profile, process, &played->row);
		if (err)
			return err;
		profile_end_process(player->profile, played->row, process->end_ns);
		played->has_row = true;
	}
	*ret_row = played->row;
	return 0;
}

/* Whether threads of the base must be in a process of an equal name. */
static bool compares_processes(const struct player *player)
{
	return player->side == PROFILE_BASE && player->options->by_process;
}

/*
 * Returns what a thread is found by besides its name: its tid, on the base's side nothing or the
 * process whose root its process uses.
 */
static uint32_t thread_key(const struct player *player, const struct profile_thread *thread)
{
	if (compares_processes(player))
		return profile_process_owner(player->profile, thread->process);
	return player->side == PROFILE_BASE ? 0 : (uint32_t)thread->tid;
}

static bool same_thread(const struct player *player, const struct profile_thread *a,
			const struct profile_thread *b)
{
	if (strcmp(a->name, b->name) != 0)
		return false;
	if (compares_processes(player))
		return thread_key(player, a) == thread_key(player, b);
	return player->side == PROFILE_BASE || (a->tid == b->tid && a->process == b->process &&
						a->interpreter_id == b->interpreter_id);
}

/*
 * Find the profile's row of a thread; PROFILE_NONE if there is none. If different threads have
 * the same key, only the first is ever found, and the others get several rows.
 */
static int thread_find(struct player *player, const struct profile_thread *thread,
		       uint32_t *ret_row)
{
	struct played_threads *threads = &player->threads;
	uint32_t nr;
	const struct profile_thread *rows = profile_threads(player->profile, &nr);

	for (; threads->nr_keyed < nr; threads->nr_keyed++) {
		const struct profile_thread *row = &rows[threads->nr_keyed];
		const uint32_t hash = text_hash(row->name);
		int err = 0;

		if (pair_map_find(&threads->row_of_key, thread_key(player, row), hash) ==
		    PAIR_MAP_NONE)
			err = pair_map_add(&threads->row_of_key, thread_key(player, row), hash,
					   threads->nr_keyed);
		if (err)
			return err;
	}
	*ret_row = pair_map_find(&threads->row_of_key, thread_key(player, thread),
				 text_hash(thread->name));
	if (*ret_row != PROFILE_NONE && !same_thread(player, &rows[*ret_row], thread))
		*ret_row = PROFILE_NONE;
	return 0;
}

/* Give a thread of the recording its row and root. */
static int thread_place(struct player *player, uint32_t index)
{
	struct played_thread *played = &player->threads.rows[index];
	struct profile_thread thread = player->threads.recorded.threads[index];
	int err = 0;

	if (thread.process != PROFILE_NONE)
		err = process_get(player, thread.process, &thread.process);
	if (!err)
		err = thread_find(player, &thread, &played->row);
	if (!err && played->row == PROFILE_NONE)
		err = profile_add_thread(player->profile, &thread, &played->row);
	if (!err)
		err = profile_root(player->profile, thread.process, played->row, &played->root);
	played->has_row = !err;
	return err;
}

/* Functions and nodes. */

static int play_function(void *context, const struct function *function)
{
	struct player *player = context;
	uint32_t *rows;
	uint32_t index;
	int err;

	rows = array_reserve(player->functions.rows, player->functions.copies.nr + 1,
			     &player->functions.max_rows, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	player->functions.rows = rows;
	err = function_rows_append(&player->functions.copies, function, &index);
	if (!err)
		rows[index] = PROFILE_NONE;
	return err;
}

/* Match a frame's label, as the profile shows it, against the patterns. */
static int verdict_find(struct player *player, uint32_t function, int32_t line,
			uint32_t *ret_verdict)
{
	const struct profile_function *row = &player->functions.copies.rows[function];
	const struct replay_filter *filter = player->filter;
	struct text *label = &player->verdicts.label;
	const char *string;

	text_clear(label);
	label_append_function(label, row->qualname, row->path, line, LABEL_DISPLAY);
	if (label->error)
		return label->error;
	string = text_string(label);
	*ret_verdict = 0;
	if (filter->include && regexec(filter->include, string, 0, NULL, 0) == 0)
		*ret_verdict |= FRAME_INCLUDED;
	if (filter->exclude && regexec(filter->exclude, string, 0, NULL, 0) == 0)
		*ret_verdict |= FRAME_EXCLUDED;
	return pair_map_add(&player->verdicts.of_line, function, (uint32_t)line, *ret_verdict);
}

/* Find the verdict on a node's frame, combined with that on its callers. */
static int verdict_get(struct player *player, const struct played_node *node, uint32_t *ret_verdict)
{
	int32_t line = node->line;
	uint32_t verdict;
	int err = 0;

	if (!player->filter->include && !player->filter->exclude) {
		*ret_verdict = 0;
		return 0;
	}
	if (!player->options->by_line)
		line = player->functions.copies.rows[node->function].first_line;
	verdict = pair_map_find(&player->verdicts.of_line, node->function, (uint32_t)line);
	if (verdict == PAIR_MAP_NONE)
		err = verdict_find(player, node->function, line, &verdict);
	if (err)
		return err;
	*ret_verdict = verdict;
	if (node->parent != PROFILE_NONE)
		*ret_verdict |= player->nodes.rows[node->parent].verdict;
	return 0;
}

static int play_node(void *context, uint32_t parent, uint32_t function, int32_t line)
{
	struct player *player = context;
	struct played_node node = {parent, function, line, PROFILE_NONE, 0};
	struct played_node *nodes;
	int err;

	nodes = array_reserve(player->nodes.rows, player->nodes.nr + 1, &player->nodes.max,
			      sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	player->nodes.rows = nodes;
	err = verdict_get(player, &node, &node.verdict);
	if (!err)
		nodes[player->nodes.nr++] = node;
	return err;
}

static int play_reset(void *context)
{
	struct player *player = context;

	function_rows_done(&player->functions.copies);
	pair_map_done(&player->verdicts.of_line);
	pair_map_done(&player->nodes.of_root);
	player->nodes.nr = 0;
	return 0;
}

/* Returns the profile's node for a node of the recording below root; PROFILE_NONE: none yet. */
static uint32_t node_find(const struct played_nodes *nodes, uint32_t root, uint32_t node)
{
	return root == PROFILE_NONE ? nodes->rows[node].profile_node
				    : pair_map_find(&nodes->of_root, root, node);
}

static int node_keep(struct played_nodes *nodes, uint32_t root, uint32_t node,
		     uint32_t profile_node)
{
	if (root == PROFILE_NONE) {
		nodes->rows[node].profile_node = profile_node;
		return 0;
	}
	return pair_map_add(&nodes->of_root, root, node, profile_node);
}

/*
 * Find the profile's row of a function of the recording, or add it. Returns -E2BIG if it does not
 * fit.
 */
static int function_get(struct player *player, uint32_t index, uint32_t *ret_row)
{
	const struct profile_function *copy = &player->functions.copies.rows[index];
	const struct function function = {
		.first_line = copy->first_line,
		.qualname = copy->qualname,
		.path = copy->path,
		.kind = copy->kind,
	};
	int err = 0;

	if (player->functions.rows[index] == PROFILE_NONE)
		err = profile_get_function(player->profile, &function,
					   &player->functions.rows[index]);
	*ret_row = player->functions.rows[index];
	return err;
}

/* Create a node below parent. If it does not fit, the node is that of PROFILE_OTHER_STACKS. */
static int node_make(struct player *player, uint32_t parent, const struct played_node *node,
		     uint32_t *ret_node)
{
	uint32_t function;
	int err = function_get(player, node->function, &function);

	if (!err)
		err = profile_get_node(player->profile, parent, function, node->line, ret_node);
	return err == -E2BIG ? profile_other_node(player->profile, ret_node) : err;
}

/*
 * Collect in path a node and its callers, up to the first that has a node in the profile, which
 * is *ret_above.
 */
static int path_climb(struct played_nodes *nodes, uint32_t root, uint32_t node, uint32_t *ret_above)
{
	nodes->nr_path = 0;
	while (node != PROFILE_NONE && node_find(nodes, root, node) == PROFILE_NONE) {
		uint32_t *path = array_reserve(nodes->path, nodes->nr_path + 1, &nodes->max_path,
					       sizeof(*path));

		if (!path)
			return -ENOMEM;
		nodes->path = path;
		path[nodes->nr_path++] = node;
		node = nodes->rows[node].parent;
	}
	*ret_above = node;
	return 0;
}

/*
 * Find the profile's node for a node of the recording, or create it with its callers. If one does
 * not fit, neither does what it calls. Beyond max_kept nodes of threads, more than twice those of
 * the profile, new ones count as PROFILE_OTHER_STACKS.
 */
static int node_get(struct player *player, uint32_t root, uint32_t node, uint32_t *ret_node)
{
	struct played_nodes *nodes = &player->nodes;
	uint32_t above, made;
	int err;

	if (nodes->of_root.nr >= nodes->max_kept && node_find(nodes, root, node) == PROFILE_NONE)
		return profile_other_node(player->profile, ret_node);
	err = path_climb(nodes, root, node, &above);
	if (err)
		return err;
	made = above == PROFILE_NONE ? root : node_find(nodes, root, above);
	while (nodes->nr_path) {
		node = nodes->path[--nodes->nr_path];
		err = node_make(player, made, &nodes->rows[node], &made);
		if (!err)
			err = node_keep(nodes, root, node, made);
		if (err)
			return err;
	}
	*ret_node = made;
	return 0;
}

/* Samples. */

static bool state_passes(const struct replay_filter *filter, const struct recorded_sample *sample)
{
	return (sample->flags & filter->flags_set) == filter->flags_set &&
	       !(sample->flags & filter->flags_clear);
}

static bool stack_passes(const struct player *player, uint32_t node)
{
	const uint32_t verdict = node == PROFILE_NONE ? 0 : player->nodes.rows[node].verdict;

	return !(verdict & FRAME_EXCLUDED) &&
	       (!player->filter->include || (verdict & FRAME_INCLUDED));
}

static bool sample_passes(const struct player *player, const struct recorded_sample *sample)
{
	return sample->time_ns >= player->from_ns && sample->time_ns < player->to_ns &&
	       player->threads.rows[sample->thread].passes &&
	       state_passes(player->filter, sample) && stack_passes(player, sample->node);
}

/* Find the place in the profile of a sample that is shown. */
static int sample_place(struct player *player, const struct recorded_sample *sample,
			struct profile_sample *entry)
{
	const struct played_thread *thread = &player->threads.rows[sample->thread];
	int err = thread->has_row ? 0 : thread_place(player, sample->thread);

	if (err)
		return err;
	entry->thread = thread->row;
	return node_get(player, thread->root, sample->node, &entry->node);
}

/* Count the thread of a sample that PROFILE_BUSY hides, if the profile counts these. */
static void count_idle(struct player *player, struct played_thread *thread)
{
	const struct profile_options *options = player->options;

	if (options->mode != PROFILE_BUSY && !options->counts_idle)
		return;
	if (!thread->has_waited)
		profile_add_idle_thread(player->profile, player->side);
	thread->has_waited = true;
}

static int play_sample(void *context, const struct recorded_sample *sample)
{
	struct player *player = context;
	struct profile_sample entry = {
		.time_ns = sample->time_ns,
		.wall_ns = sample->wall_ns,
		.cpu_ns = sample->cpu_ns,
		.node = PROFILE_NONE,
		.thread = PROFILE_NONE,
		.flags = sample->flags,
	};
	uint64_t weight_ns;
	int err = 0;

	if (!sample_passes(player, sample))
		return 0;
	if (profile_mode_shows(player->options->mode, sample->flags, sample->wall_ns,
			       sample->cpu_ns, &weight_ns))
		err = sample_place(player, sample, &entry);
	if (sample->flags & SAMPLE_IDLE)
		count_idle(player, &player->threads.rows[sample->thread]);
	return err ? err : profile_add(player->profile, player->side, &entry);
}

/* The replay as a whole. */

/* Resolve a time of the filter: since its start, or if negative since its last sample. */
static uint64_t resolve_time_ns(uint64_t start_ns, uint64_t last_ns, int64_t offset_ns)
{
	const uint64_t anchor_ns = offset_ns < 0 ? last_ns : start_ns;
	const uint64_t back_ns = 0 - (uint64_t)offset_ns;
	uint64_t sum_ns;

	if (offset_ns < 0)
		return anchor_ns > back_ns ? anchor_ns - back_ns : 0;
	return __builtin_add_overflow(anchor_ns, (uint64_t)offset_ns, &sum_ns) ? UINT64_MAX
									       : sum_ns;
}

static int player_init(struct player *player, struct recording *recording)
{
	const struct replay_filter *filter = player->filter;
	struct played_threads *threads = &player->threads;
	const struct recorded_threads *recorded = &threads->recorded;
	uint64_t start_ns = recording_run(recording)->info.start_unix_ns;
	int err = recorded_threads_read(recording, &threads->recorded);

	if (err)
		return err;
	if (!start_ns || start_ns > recorded->first_ns)
		start_ns = recorded->first_ns;
	if (filter->from_ns)
		player->from_ns = resolve_time_ns(start_ns, recorded->last_ns, filter->from_ns);
	player->to_ns = filter->to_ns ? resolve_time_ns(start_ns, recorded->last_ns, filter->to_ns)
				      : UINT64_MAX;
	/* One more, because calloc() may return NULL for 0. */
	threads->rows = calloc((size_t)recorded->nr_threads + 1, sizeof(*threads->rows));
	threads->processes = calloc((size_t)player->processes->nr + 1, sizeof(*threads->processes));
	if (!threads->rows || !threads->processes)
		return -ENOMEM;
	for (uint32_t i = 0; i < player->processes->nr; i++)
		threads->processes[i].passes = process_passes(filter, &player->processes->rows[i]);
	return 0;
}

static void player_done(struct player *player)
{
	recorded_threads_done(&player->threads.recorded);
	function_rows_done(&player->functions.copies);
	pair_map_done(&player->threads.row_of_key);
	pair_map_done(&player->nodes.of_root);
	pair_map_done(&player->verdicts.of_line);
	text_done(&player->verdicts.label);
	free(player->threads.rows);
	free(player->threads.processes);
	free(player->functions.rows);
	free(player->nodes.rows);
	free(player->nodes.path);
}

int replay(struct recording *recording, const struct replay_filter *filter, struct profile *profile,
	   enum profile_side side)
{
	static const struct recording_ops ops = {
		.thread = play_thread,
		.function = play_function,
		.node = play_node,
		.sample = play_sample,
		.reset = play_reset,
	};
	struct player player = {
		.filter = filter,
		.profile = profile,
		.options = profile_options(profile),
		.processes = recording_processes(recording),
		.side = side,
	};
	int err = player_init(&player, recording);

	player.nodes.max_kept =
		MORE_KEPT +
		2 * (player.options->max_nodes ? player.options->max_nodes : PROFILE_MAX_NODES);
	if (!err)
		err = recording_read(recording, &ops, &player);
	player_done(&player);
	return err;
}

/* End the search at the second process that a sample is of. */
static int meet_process(void *context, const struct recorded_sample *sample)
{
	struct player *player = context;
	const uint32_t index = player->threads.recorded.threads[sample->thread].process;
	const struct profile_process *process;

	if (index == PROFILE_NONE || !sample_passes(player, sample))
		return 0;
	process = &player->processes->rows[index];
	if (!player->met)
		player->met = process;
	return process_is_same(process, player->met) ? 0 : -EEXIST;
}

int replay_has_several_processes(struct recording *recording, const struct replay_filter *filter,
				 const struct profile_options *options, bool *ret_are_several)
{
	static const struct recording_ops ops = {
		.thread = play_thread,
		.function = play_function,
		.node = play_node,
		.sample = meet_process,
		.reset = play_reset,
	};
	struct player player = {
		.filter = filter,
		.options = options,
		.processes = recording_processes(recording),
	};
	int err = 0;

	if (player.processes->nr > 1) {
		err = player_init(&player, recording);
		if (!err)
			err = recording_read(recording, &ops, &player);
		player_done(&player);
	}
	*ret_are_several = err == -EEXIST;
	return *ret_are_several ? 0 : err;
}
