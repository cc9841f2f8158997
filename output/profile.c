/* SPDX-License-Identifier: MIT */
#include "output/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/array.h"
#include "output/function_rows.h"
#include "output/pair_map.h"

/* Where the previous sample of the thread in a slot lies in the tree. */
struct thread_path {
	bool is_used;	 /* a thread had samples; else only nodes and max_nodes count */
	uint32_t id;	 /* the thread's */
	uint32_t row;	 /* its index in threads; PROFILE_NONE if it has none */
	uint32_t root;	 /* node of the thread's root; PROFILE_NONE without by_thread */
	uint32_t *nodes; /* owned; outermost first, the root not among them */
	uint32_t nr_nodes;
	uint32_t max_nodes;
	uint32_t nr_shallow; /* samples in a row that needed far less room than there is */
};

/* Room for far more nodes than a thread needed for so many samples is given back. */
enum { SHALLOW_SAMPLES = 4096, SHALLOW_PART = 8, SHALLOW_LEAST = 128 };

/* The last one that was a main thread. */
struct main_thread {
	bool is_known;
	pid_t tid;
	char name[THREAD_NAME_MAX_BYTES];
	uint32_t row, root; /* as in its path */
};

struct profile {
	struct sample_sink sink; /* first: the sink is the profile */
	struct profile_options options;

	struct profile_account account;
	uint64_t nr_idle_samples;
	uint64_t nr_other_samples;
	uint64_t time_ns;
	uint64_t idle_ns;

	struct function_rows functions;

	struct profile_frame *frames;
	uint32_t nr_frames, max_frames;
	struct pair_map frame_of_line; /* (function, line) → frame; no threads' roots */

	struct profile_node *nodes;
	uint32_t nr_nodes, max_nodes;
	uint32_t other_node; /* of PROFILE_OTHER_STACKS; PROFILE_NONE as long as all have a place */
	struct pair_map node_of_call; /* (parent, frame) → node */

	struct profile_thread *threads;
	uint32_t nr_threads, max_threads;
	uint32_t shared_root; /* of threads without a row; PROFILE_NONE: there are none */
	uint64_t nr_threads_seen;
	struct main_thread main_thread;
	struct thread_path *paths; /* by slot */
	uint32_t nr_paths;
	bool sampler_changed; /* there are rows that another sampler's ids stood for */
};

static int frame_add(struct profile *profile, const struct profile_frame *frame,
		     uint32_t *ret_index)
{
	struct profile_frame *frames;

	frames = array_reserve(profile->frames, profile->nr_frames + 1, &profile->max_frames,
			       sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	profile->frames = frames;
	frames[profile->nr_frames] = *frame;
	*ret_index = profile->nr_frames++;
	return 0;
}

/*
 * Whether what is not in the tree yet has no place there. Two nodes are kept free: for the
 * stacks, and for the threads, that have no place.
 */
static bool is_full(const struct profile *profile)
{
	return profile->nr_nodes + 2 >= profile->options.max_nodes;
}

/* The row that a frame belongs to, made if it is new; -E2BIG if it could have no node. */
static int frame_get(struct profile *profile, const struct frame *frame, uint32_t *ret_index)
{
	int32_t line = profile->options.by_line ? frame->line : frame->function->first_line;
	uint32_t function = function_rows_find(&profile->functions, frame->function->id);
	uint32_t index;
	int err;

	if (function == PROFILE_NONE) {
		if (is_full(profile))
			return -E2BIG;
		err = function_rows_get(&profile->functions, frame->function, &function);
		if (err)
			return err;
	}
	index = pair_map_find(&profile->frame_of_line, function, (uint32_t)line);
	if (index == PAIR_MAP_NONE) {
		struct profile_frame row = {function, line, PROFILE_NONE};

		if (is_full(profile))
			return -E2BIG;
		err = frame_add(profile, &row, &index);
		if (err)
			return err;
		err = pair_map_add(&profile->frame_of_line, function, (uint32_t)line, index);
		if (err) {
			profile->nr_frames--;
			return err;
		}
	}
	*ret_index = index;
	return 0;
}

static int node_add(struct profile *profile, uint32_t parent, uint32_t frame, uint32_t *ret_index)
{
	struct profile_node *nodes;
	int err;

	nodes = array_reserve(profile->nodes, profile->nr_nodes + 1, &profile->max_nodes,
			      sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	profile->nodes = nodes;
	err = pair_map_add(&profile->node_of_call, parent, frame, profile->nr_nodes);
	if (err)
		return err;
	nodes[profile->nr_nodes] = (struct profile_node){.parent = parent, .frame = frame};
	*ret_index = profile->nr_nodes++;
	return 0;
}

/* The node of a frame below parent, made if it is new; -E2BIG if there is no place. */
static int node_get(struct profile *profile, uint32_t parent, uint32_t frame, uint32_t *ret_index)
{
	uint32_t index = pair_map_find(&profile->node_of_call, parent, frame);

	if (index == PAIR_MAP_NONE)
		return is_full(profile) ? -E2BIG : node_add(profile, parent, frame, ret_index);
	*ret_index = index;
	return 0;
}

/* Make a root, of the thread with that row. */
static int root_add(struct profile *profile, uint32_t thread, uint32_t *ret_node)
{
	struct profile_frame row = {PROFILE_NONE, 0, thread};
	uint32_t frame;
	int err;

	err = frame_add(profile, &row, &frame);
	if (err)
		return err;
	err = node_add(profile, PROFILE_NONE, frame, ret_node);
	if (err)
		profile->nr_frames--;
	return err;
}

/* Give a thread its row and root, in path, or the root that the last ones share. */
static int thread_add(struct profile *profile, const struct sample_thread *thread,
		      struct thread_path *path)
{
	struct profile_thread *threads;
	int err = 0;

	if (profile->nr_threads >= PROFILE_MAX_THREADS || is_full(profile)) {
		if (profile->shared_root == PROFILE_NONE)
			err = root_add(profile, PROFILE_NONE, &profile->shared_root);
		path->root = profile->shared_root;
		return err;
	}
	threads = array_reserve(profile->threads, profile->nr_threads + 1, &profile->max_threads,
				sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	profile->threads = threads;
	err = root_add(profile, profile->nr_threads, &path->root);
	if (err)
		return err;
	path->row = profile->nr_threads++;
	threads[path->row] = (struct profile_thread){
		.tid = thread->tid,
		.interpreter_id = thread->interpreter_id,
	};
	memcpy(threads[path->row].name, thread->name, sizeof(thread->name) - 1);
	return 0;
}

/* Whether the thread is the main one that another sampler has shown. */
static bool is_former_main(const struct profile *profile, const struct sample_thread *thread)
{
	const struct main_thread *former = &profile->main_thread;

	return profile->sampler_changed && thread->is_main && former->is_known &&
	       former->tid == thread->tid && strcmp(former->name, thread->name) == 0;
}

static void remember_main(struct profile *profile, const struct sample_thread *thread,
			  const struct thread_path *path)
{
	profile->main_thread = (struct main_thread){
		.is_known = true,
		.tid = thread->tid,
		.row = path->row,
		.root = path->root,
	};
	memcpy(profile->main_thread.name, thread->name, sizeof(thread->name) - 1);
}

/* Begin with a thread whose slot was another one's, or nobody's. */
static int path_begin(struct profile *profile, const struct sample_thread *thread,
		      struct thread_path *path)
{
	int err;

	path->is_used = false;
	path->nr_nodes = 0;
	path->id = thread->id;
	path->row = PROFILE_NONE;
	path->root = PROFILE_NONE;
	if (is_former_main(profile, thread)) {
		path->row = profile->main_thread.row;
		path->root = profile->main_thread.root;
	} else {
		err = profile->options.by_thread ? thread_add(profile, thread, path) : 0;
		if (err)
			return err;
		profile->nr_threads_seen++;
		if (thread->is_main)
			remember_main(profile, thread, path);
	}
	path->is_used = true;
	return 0;
}

/* The path of a thread in its slot; NULL if it has none there. */
static struct thread_path *path_find(const struct profile *profile,
				     const struct sample_thread *thread)
{
	struct thread_path *path;

	if (thread->slot >= profile->nr_paths)
		return NULL;
	path = &profile->paths[thread->slot];
	return path->is_used && path->id == thread->id ? path : NULL;
}

/* The same, of a thread whose samples begin. */
static int path_get(struct profile *profile, const struct sample_thread *thread,
		    struct thread_path **ret_path)
{
	uint32_t nr_paths = profile->nr_paths;
	struct thread_path *paths;

	if (thread->slot == PROFILE_NONE)
		return -ENOMEM;
	paths = array_reserve(profile->paths, thread->slot + 1, &profile->nr_paths, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	memset(paths + nr_paths, 0, (profile->nr_paths - nr_paths) * sizeof(*paths));
	profile->paths = paths;
	*ret_path = &paths[thread->slot];
	return path_begin(profile, thread, *ret_path);
}

/* Give back the room of stacks that were far deeper than the last ones. */
static void path_fit(struct thread_path *path)
{
	uint32_t max_nodes = path->max_nodes / (SHALLOW_PART / 2);
	uint32_t *nodes;

	if (path->max_nodes <= SHALLOW_LEAST || path->nr_nodes > max_nodes / 2) {
		path->nr_shallow = 0;
		return;
	}
	if (++path->nr_shallow < SHALLOW_SAMPLES)
		return;
	path->nr_shallow = 0;
	nodes = reallocarray(path->nodes, max_nodes, sizeof(*nodes));
	if (!nodes)
		return;
	path->nodes = nodes;
	path->max_nodes = max_nodes;
}

/* True if a node is that frame below that parent. */
static bool node_is(const struct profile_node *node, uint32_t parent, uint32_t frame)
{
	return node->parent == parent && node->frame == frame;
}

/*
 * Make path the nodes of the sample's frames: those that did not change are kept
 * unseen. Of the others many are still the same row (with a row per function, the
 * next line is), so the node of last time is tried before the tree is searched.
 */
static int path_follow(struct profile *profile, struct thread_path *path,
		       const struct sample *sample)
{
	uint32_t nr_before = path->nr_nodes;
	uint32_t nr_kept = sample->nr_unchanged;
	uint32_t *nodes;
	uint32_t parent;
	int err;

	if (nr_kept > sample->nr_frames)
		nr_kept = sample->nr_frames;
	if (nr_kept > nr_before)
		nr_kept = nr_before;
	path->nr_nodes = nr_kept; /* if anything fails, the next sample relies on no more */
	nodes = array_reserve(path->nodes, sample->nr_frames, &path->max_nodes, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	path->nodes = nodes;

	parent = nr_kept ? nodes[nr_kept - 1] : path->root;
	for (uint32_t i = nr_kept; i < sample->nr_frames; i++) {
		uint32_t frame;

		err = frame_get(profile, &sample->frames[i], &frame);
		if (err)
			return err;
		if (i >= nr_before || !node_is(&profile->nodes[nodes[i]], parent, frame)) {
			err = node_get(profile, parent, frame, &nodes[i]);
			if (err)
				return err;
		}
		parent = nodes[i];
		path->nr_nodes = i + 1;
	}
	return 0;
}

/* Count a sample whose nodes path holds. */
static void sample_count(struct profile *profile, const struct thread_path *path,
			 const struct sample *sample, uint64_t weight_ns)
{
	uint32_t leaf = path->nr_nodes ? path->nodes[path->nr_nodes - 1] : path->root;

	if (leaf != PROFILE_NONE) {
		profile->nodes[leaf].self_samples++;
		profile->nodes[leaf].self_ns += weight_ns;
	}
	if (!sample->nr_frames) {
		profile->nr_idle_samples++;
		profile->idle_ns += weight_ns;
	}
	profile->time_ns += weight_ns;
}

/* Make the row and the node of the stacks that have no place in the tree. */
static int other_node_add(struct profile *profile)
{
	struct profile_frame row = {.thread = PROFILE_NONE};
	uint32_t frame;
	int err =
		function_rows_append(&profile->functions, PROFILE_OTHER_STACKS, "", &row.function);

	if (!err)
		err = frame_add(profile, &row, &frame);
	return err ? err : node_add(profile, PROFILE_NONE, frame, &profile->other_node);
}

/* Count a sample whose stack has no place in the tree. */
static int sample_count_other(struct profile *profile, uint64_t weight_ns)
{
	int err = profile->other_node == PROFILE_NONE ? other_node_add(profile) : 0;

	if (err)
		return err;
	profile->nodes[profile->other_node].self_samples++;
	profile->nodes[profile->other_node].self_ns += weight_ns;
	profile->nr_other_samples++;
	profile->time_ns += weight_ns;
	return 0;
}

/* Leave a sample out: the path is right for the next one only so far as both are the same. */
static void sample_pass_over(struct profile *profile, const struct sample *sample)
{
	struct thread_path *path = path_find(profile, sample->thread);

	if (path && path->nr_nodes > sample->nr_unchanged)
		path->nr_nodes = sample->nr_unchanged;
}

static int sample_add(struct profile *profile, const struct sample *sample, uint64_t weight_ns)
{
	struct thread_path *path = path_find(profile, sample->thread);
	int err = path ? 0 : path_get(profile, sample->thread, &path);

	if (!err)
		err = path_follow(profile, path, sample);
	if (err == -E2BIG)
		return sample_count_other(profile, weight_ns);
	if (err)
		return err;
	sample_count(profile, path, sample, weight_ns);
	path_fit(path);
	return 0;
}

static int profile_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct profile *profile = (struct profile *)sink;
	uint64_t weight_ns;
	bool shown = profile_mode_shows(profile->options.mode, sample, &weight_ns);
	int err = 0;

	if (shown)
		err = sample_add(profile, sample, weight_ns);
	else
		sample_pass_over(profile, sample);
	if (err)
		return err;
	profile->account.nr_shown += shown;
	profile->account.nr_samples++;
	profile->account.wall_ns += sample->wall_ns;
	profile->account.cpu_ns += sample->cpu_ns;
	profile->account.nr_cpu_measured += (sample->flags & SAMPLE_CPU_MEASURED) != 0;
	return 0;
}

static void profile_renamed(struct sample_sink *sink, const struct sample_thread *thread)
{
	struct profile *profile = (struct profile *)sink;
	const struct thread_path *path = path_find(profile, thread);

	if (!path)
		return;
	if (path->row != PROFILE_NONE)
		memcpy(profile->threads[path->row].name, thread->name, sizeof(thread->name) - 1);
	if (thread->is_main)
		memcpy(profile->main_thread.name, thread->name, sizeof(thread->name) - 1);
}

struct profile *profile_create(const struct profile_options *options)
{
	static const struct sample_sink_ops ops = {
		.sample = profile_sample,
		.renamed = profile_renamed,
	};
	struct profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return NULL;
	profile->sink.ops = &ops;
	profile->options = *options;
	if (!options->max_nodes)
		profile->options.max_nodes = PROFILE_MAX_NODES;
	profile->other_node = PROFILE_NONE;
	profile->shared_root = PROFILE_NONE;
	return profile;
}

void profile_destroy(struct profile *profile)
{
	if (!profile)
		return;
	for (uint32_t i = 0; i < profile->nr_paths; i++)
		free(profile->paths[i].nodes);
	function_rows_done(&profile->functions);
	free(profile->frames);
	pair_map_done(&profile->frame_of_line);
	free(profile->nodes);
	pair_map_done(&profile->node_of_call);
	free(profile->threads);
	free(profile->paths);
	free(profile);
}

struct sample_sink *profile_sink(struct profile *profile)
{
	return &profile->sink;
}

void profile_change_sampler(struct profile *profile)
{
	function_rows_change_ids(&profile->functions);
	for (uint32_t i = 0; i < profile->nr_paths; i++)
		profile->paths[i].is_used = false;
	profile->sampler_changed = true;
}

const struct profile_account *profile_account(const struct profile *profile)
{
	return &profile->account;
}

enum profile_mode profile_mode(const struct profile *profile)
{
	return profile->options.mode;
}

uint64_t profile_nr_idle_samples(const struct profile *profile)
{
	return profile->nr_idle_samples;
}

uint64_t profile_nr_other_samples(const struct profile *profile)
{
	return profile->nr_other_samples;
}

uint64_t profile_nr_threads(const struct profile *profile)
{
	return profile->nr_threads_seen;
}

uint64_t profile_time_ns(const struct profile *profile)
{
	return profile->time_ns;
}

uint64_t profile_idle_ns(const struct profile *profile)
{
	return profile->idle_ns;
}

const struct profile_function *profile_functions(const struct profile *profile, uint32_t *ret_nr)
{
	*ret_nr = profile->functions.nr;
	return profile->functions.rows;
}

const struct profile_frame *profile_frames(const struct profile *profile, uint32_t *ret_nr)
{
	*ret_nr = profile->nr_frames;
	return profile->frames;
}

const struct profile_node *profile_nodes(const struct profile *profile, uint32_t *ret_nr)
{
	*ret_nr = profile->nr_nodes;
	return profile->nodes;
}

const struct profile_thread *profile_threads(const struct profile *profile, uint32_t *ret_nr)
{
	*ret_nr = profile->nr_threads;
	return profile->threads;
}
