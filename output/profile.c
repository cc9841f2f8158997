/* SPDX-License-Identifier: MIT */
#include "output/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/pair_map.h"

#define MIN_ROWS 16

/* From the sampler's dense ids to our indices; PROFILE_NONE where there is none yet. */
struct id_map {
	uint32_t *index; /* owned */
	uint32_t max;
};

/* Where the previous sample of a thread lies in the tree. */
struct thread_path {
	uint32_t root;	 /* node of the thread's root; PROFILE_NONE without by_thread */
	uint32_t *nodes; /* owned; outermost first, the root not among them */
	uint32_t nr_nodes;
	uint32_t max_nodes;
};

struct profile {
	struct sample_sink sink; /* first: the sink is the profile */
	struct profile_options options;

	uint64_t nr_idle_samples;
	uint64_t wall_ns;
	uint64_t idle_wall_ns;

	struct profile_function *functions;
	uint32_t nr_functions, max_functions;
	struct id_map function_of_id;

	struct profile_frame *frames;
	uint32_t nr_frames, max_frames;
	struct pair_map frame_of_line; /* (function, line) → frame; no threads' roots */

	struct profile_node *nodes;
	uint32_t nr_nodes, max_nodes;
	struct pair_map node_of_call; /* (parent, frame) → node */

	struct profile_thread *threads;
	struct thread_path *paths; /* one for each thread */
	uint32_t nr_threads, max_threads, max_paths;
	struct id_map thread_of_id;
};

/*
 * array, enlarged if needed for needed elements; NULL if out of memory, and then
 * array is still there. The last index stays free for PROFILE_NONE.
 */
static void *array_reserve(void *array, uint32_t needed, uint32_t *max, size_t element_size)
{
	uint32_t grown = *max ? *max : MIN_ROWS;
	void *ret;

	if (array && needed <= *max)
		return array;
	if (needed == PROFILE_NONE)
		return NULL;
	while (grown < needed)
		grown = grown > PROFILE_NONE / 2 ? PROFILE_NONE : grown * 2;
	ret = reallocarray(array, grown, element_size);
	if (ret)
		*max = grown;
	return ret;
}

static uint32_t id_map_find(const struct id_map *map, uint32_t id)
{
	return id < map->max ? map->index[id] : PROFILE_NONE;
}

static int id_map_reserve(struct id_map *map, uint32_t id)
{
	uint32_t max = map->max;
	uint32_t *index;

	if (id == PROFILE_NONE)
		return -ENOMEM;
	index = array_reserve(map->index, id + 1, &map->max, sizeof(*index));
	if (!index)
		return -ENOMEM;
	map->index = index;
	for (; max < map->max; max++)
		index[max] = PROFILE_NONE;
	return 0;
}

static int function_add(struct profile *profile, const struct function *function,
			uint32_t *ret_index)
{
	struct profile_function *functions;
	struct profile_function copy = {0};
	int err;

	functions = array_reserve(profile->functions, profile->nr_functions + 1,
				  &profile->max_functions, sizeof(*functions));
	if (!functions)
		return -ENOMEM;
	profile->functions = functions;
	err = id_map_reserve(&profile->function_of_id, function->id);
	if (err)
		return err;
	copy.qualname = strdup(function->qualname);
	copy.path = strdup(function->path);
	if (!copy.qualname || !copy.path) {
		free(copy.qualname);
		free(copy.path);
		return -ENOMEM;
	}
	functions[profile->nr_functions] = copy;
	profile->function_of_id.index[function->id] = profile->nr_functions;
	*ret_index = profile->nr_functions++;
	return 0;
}

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

/* The row that a frame belongs to, made if it is new. */
static int frame_get(struct profile *profile, const struct frame *frame, uint32_t *ret_index)
{
	int32_t line = profile->options.by_line ? frame->line : frame->function->first_line;
	uint32_t function = id_map_find(&profile->function_of_id, frame->function->id);
	uint32_t index;
	int err;

	if (function == PROFILE_NONE) {
		err = function_add(profile, frame->function, &function);
		if (err)
			return err;
	}
	index = pair_map_find(&profile->frame_of_line, function, (uint32_t)line);
	if (index == PAIR_MAP_NONE) {
		struct profile_frame row = {function, line, PROFILE_NONE};

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

/* The node of a frame below parent, made if it is new. */
static int node_get(struct profile *profile, uint32_t parent, uint32_t frame, uint32_t *ret_index)
{
	uint32_t index = pair_map_find(&profile->node_of_call, parent, frame);

	if (index == PAIR_MAP_NONE)
		return node_add(profile, parent, frame, ret_index);
	*ret_index = index;
	return 0;
}

static int thread_root_add(struct profile *profile, uint32_t thread, uint32_t *ret_node)
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

static int thread_add(struct profile *profile, const struct sample_thread *thread,
		      uint32_t *ret_index)
{
	uint32_t index = profile->nr_threads;
	uint32_t root = PROFILE_NONE;
	struct profile_thread *threads;
	struct thread_path *paths;
	int err;

	threads =
		array_reserve(profile->threads, index + 1, &profile->max_threads, sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	profile->threads = threads;
	paths = array_reserve(profile->paths, index + 1, &profile->max_paths, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	profile->paths = paths;
	err = id_map_reserve(&profile->thread_of_id, thread->id);
	if (!err && profile->options.by_thread)
		err = thread_root_add(profile, index, &root);
	if (err)
		return err;

	threads[index] = (struct profile_thread){.tid = thread->tid};
	memcpy(threads[index].name, thread->name, sizeof(threads[index].name) - 1);
	paths[index] = (struct thread_path){.root = root};
	profile->thread_of_id.index[thread->id] = index;
	profile->nr_threads++;
	*ret_index = index;
	return 0;
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
			 const struct sample *sample)
{
	uint32_t leaf = path->nr_nodes ? path->nodes[path->nr_nodes - 1] : path->root;

	if (leaf != PROFILE_NONE) {
		profile->nodes[leaf].self_samples++;
		profile->nodes[leaf].self_wall_ns += sample->wall_ns;
	}
	if (!sample->nr_frames) {
		profile->nr_idle_samples++;
		profile->idle_wall_ns += sample->wall_ns;
	}
	profile->wall_ns += sample->wall_ns;
}

static int profile_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct profile *profile = (struct profile *)sink;
	uint32_t thread = id_map_find(&profile->thread_of_id, sample->thread->id);
	int err;

	if (thread == PROFILE_NONE) {
		err = thread_add(profile, sample->thread, &thread);
		if (err)
			return err;
	}
	err = path_follow(profile, &profile->paths[thread], sample);
	if (err)
		return err;
	sample_count(profile, &profile->paths[thread], sample);
	return 0;
}

struct profile *profile_create(const struct profile_options *options)
{
	static const struct sample_sink_ops ops = {.sample = profile_sample};
	struct profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return NULL;
	profile->sink.ops = &ops;
	profile->options = *options;
	return profile;
}

void profile_destroy(struct profile *profile)
{
	if (!profile)
		return;
	for (uint32_t i = 0; i < profile->nr_functions; i++) {
		free(profile->functions[i].qualname);
		free(profile->functions[i].path);
	}
	for (uint32_t i = 0; i < profile->nr_threads; i++)
		free(profile->paths[i].nodes);
	free(profile->functions);
	free(profile->function_of_id.index);
	free(profile->frames);
	pair_map_done(&profile->frame_of_line);
	free(profile->nodes);
	pair_map_done(&profile->node_of_call);
	free(profile->threads);
	free(profile->paths);
	free(profile->thread_of_id.index);
	free(profile);
}

struct sample_sink *profile_sink(struct profile *profile)
{
	return &profile->sink;
}

uint64_t profile_nr_idle_samples(const struct profile *profile)
{
	return profile->nr_idle_samples;
}

uint64_t profile_wall_ns(const struct profile *profile)
{
	return profile->wall_ns;
}

uint64_t profile_idle_wall_ns(const struct profile *profile)
{
	return profile->idle_wall_ns;
}

const struct profile_function *profile_functions(const struct profile *profile, uint32_t *ret_nr)
{
	*ret_nr = profile->nr_functions;
	return profile->functions;
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

/* What profile_totals() works with, all owned. */
struct tree_walk {
	uint32_t *first_child; /* one more than nodes: the last one's are the outermost nodes */
	uint32_t *next_sibling;
	uint32_t *nr_active;	   /* for each frame: how often it is on the path being walked */
	struct profile_node *sums; /* the nodes, the time of each including all that is below it */
};

static void tree_walk_done(struct tree_walk *walk)
{
	free(walk->first_child);
	free(walk->next_sibling);
	free(walk->nr_active);
	free(walk->sums);
}

static int tree_walk_init(struct tree_walk *walk, const struct profile *profile)
{
	size_t nr = profile->nr_nodes;

	/* One more of each, as in totals_create(). */
	*walk = (struct tree_walk){
		.first_child = calloc(nr + 1, sizeof(*walk->first_child)),
		.next_sibling = calloc(nr + 1, sizeof(*walk->next_sibling)),
		.nr_active = calloc((size_t)profile->nr_frames + 1, sizeof(*walk->nr_active)),
		.sums = calloc(nr + 1, sizeof(*walk->sums)),
	};
	if (!walk->first_child || !walk->next_sibling || !walk->nr_active || !walk->sums)
		return -ENOMEM;
	for (size_t i = 0; i <= nr; i++)
		walk->first_child[i] = PROFILE_NONE;
	if (nr)
		memcpy(walk->sums, profile->nodes, nr * sizeof(*walk->sums));
	return 0;
}

/* Link the children and sum up the weights; children come after their parents. */
static void tree_walk_link(struct tree_walk *walk, const struct profile *profile)
{
	struct profile_node *sums = walk->sums;

	for (uint32_t i = profile->nr_nodes; i-- > 0;) {
		uint32_t parent = sums[i].parent;
		uint32_t owner = parent == PROFILE_NONE ? profile->nr_nodes : parent;

		walk->next_sibling[i] = walk->first_child[owner];
		walk->first_child[owner] = i;
		sums[owner].self_wall_ns += sums[i].self_wall_ns;
	}
}

/* Leave a node that has no (more) children; returns the next one to enter. */
static uint32_t tree_walk_leave(struct tree_walk *walk, uint32_t node)
{
	for (; node != PROFILE_NONE; node = walk->sums[node].parent) {
		walk->nr_active[walk->sums[node].frame]--;
		if (walk->next_sibling[node] != PROFILE_NONE)
			return walk->next_sibling[node];
	}
	return PROFILE_NONE;
}

/*
 * Add every node's sum to its frame's total, except below another node of that
 * frame, which has it already. Depth first and without recursion: the target
 * decides how deep the tree is.
 */
static void tree_walk_total(struct tree_walk *walk, uint32_t nr_nodes, struct profile_total *totals)
{
	uint32_t node = walk->first_child[nr_nodes];

	while (node != PROFILE_NONE) {
		const struct profile_node *sum = &walk->sums[node];

		if (walk->nr_active[sum->frame]++ == 0)
			totals[sum->frame].total_wall_ns += sum->self_wall_ns;
		if (walk->first_child[node] != PROFILE_NONE)
			node = walk->first_child[node];
		else
			node = tree_walk_leave(walk, node);
	}
}

/* A total for every frame, with what is its own already in it. */
static struct profile_total *totals_create(const struct profile *profile)
{
	size_t max = (size_t)profile->nr_frames + 1; /* never 0, for which calloc() may give NULL */
	struct profile_total *totals = calloc(max, sizeof(*totals));

	if (!totals)
		return NULL;
	for (uint32_t i = 0; i < profile->nr_nodes; i++)
		totals[profile->nodes[i].frame].self_wall_ns += profile->nodes[i].self_wall_ns;
	return totals;
}

int profile_totals(const struct profile *profile, struct profile_total **ret_totals)
{
	struct profile_total *totals = totals_create(profile);
	struct tree_walk walk;
	int err = tree_walk_init(&walk, profile);

	if (!totals)
		err = -ENOMEM;
	if (!err) {
		tree_walk_link(&walk, profile);
		tree_walk_total(&walk, profile->nr_nodes, totals);
		*ret_totals = totals;
	} else {
		free(totals);
	}
	tree_walk_done(&walk);
	return err;
}
