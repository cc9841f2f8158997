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
	struct pair_map function_of_name; /* hashes of (name, path) → function; filled as needed */
	uint32_t nr_named;		  /* so many functions are in it */

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
	uint32_t main_thread; /* the last one that was a main thread; PROFILE_NONE: none yet */
	bool sampler_changed; /* there are rows that another sampler's ids stood for */
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

static void id_map_clear(struct id_map *map)
{
	for (uint32_t i = 0; i < map->max; i++)
		map->index[i] = PROFILE_NONE;
}

/* FNV-1a, 32 bits. */
static uint32_t hash_string(const char *string)
{
	uint32_t hash = 0x811c9dc5u;

	for (; *string; string++)
		hash = (hash ^ (unsigned char)*string) * 0x01000193u;
	return hash;
}

/*
 * The function of that name and path that another sampler has shown; PROFILE_NONE if
 * there is none. (Of two whose hashes are both equal only the first is ever found: the
 * other has two rows then.)
 */
static uint32_t function_find(const struct profile *profile, const struct function *function)
{
	uint32_t index;

	if (!profile->sampler_changed)
		return PROFILE_NONE;
	index = pair_map_find(&profile->function_of_name, hash_string(function->qualname),
			      hash_string(function->path));
	if (index == PAIR_MAP_NONE ||
	    strcmp(profile->functions[index].qualname, function->qualname) != 0 ||
	    strcmp(profile->functions[index].path, function->path) != 0)
		return PROFILE_NONE;
	return index;
}

/* Have every function so far be found by its name. Out of memory, some are not. */
static void name_functions(struct profile *profile)
{
	for (; profile->nr_named < profile->nr_functions; profile->nr_named++) {
		const struct profile_function *function = &profile->functions[profile->nr_named];
		uint32_t name = hash_string(function->qualname);
		uint32_t path = hash_string(function->path);

		if (pair_map_find(&profile->function_of_name, name, path) == PAIR_MAP_NONE)
			(void)pair_map_add(&profile->function_of_name, name, path,
					   profile->nr_named);
	}
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

/* The function of an id that was not seen yet. */
static int function_get(struct profile *profile, const struct function *function,
			uint32_t *ret_index)
{
	uint32_t index = function_find(profile, function);
	int err;

	if (index == PROFILE_NONE)
		return function_add(profile, function, ret_index);
	err = id_map_reserve(&profile->function_of_id, function->id);
	if (err)
		return err;
	profile->function_of_id.index[function->id] = index;
	*ret_index = index;
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
		err = function_get(profile, frame->function, &function);
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

	threads[index] = (struct profile_thread){
		.tid = thread->tid,
		.interpreter_id = thread->interpreter_id,
	};
	memcpy(threads[index].name, thread->name, sizeof(threads[index].name) - 1);
	paths[index] = (struct thread_path){.root = root};
	profile->thread_of_id.index[thread->id] = index;
	profile->nr_threads++;
	*ret_index = index;
	return 0;
}

/* Whether the thread is the main one that another sampler has shown. */
static bool is_former_main(const struct profile *profile, const struct sample_thread *thread)
{
	const struct profile_thread *former;

	if (!profile->sampler_changed || !thread->is_main || profile->main_thread == PROFILE_NONE)
		return false;
	former = &profile->threads[profile->main_thread];
	return former->tid == thread->tid && strcmp(former->name, thread->name) == 0;
}

/* The thread of an id that was not seen yet. */
static int thread_get(struct profile *profile, const struct sample_thread *thread,
		      uint32_t *ret_index)
{
	int err;

	if (is_former_main(profile, thread)) {
		err = id_map_reserve(&profile->thread_of_id, thread->id);
		if (err)
			return err;
		profile->thread_of_id.index[thread->id] = profile->main_thread;
		*ret_index = profile->main_thread;
		return 0;
	}
	err = thread_add(profile, thread, ret_index);
	if (!err && thread->is_main)
		profile->main_thread = *ret_index;
	return err;
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
		err = thread_get(profile, sample->thread, &thread);
		if (err)
			return err;
	}
	err = path_follow(profile, &profile->paths[thread], sample);
	if (err)
		return err;
	sample_count(profile, &profile->paths[thread], sample);
	return 0;
}

static void profile_renamed(struct sample_sink *sink, const struct sample_thread *thread)
{
	struct profile *profile = (struct profile *)sink;
	uint32_t index = id_map_find(&profile->thread_of_id, thread->id);

	if (index != PROFILE_NONE)
		memcpy(profile->threads[index].name, thread->name,
		       sizeof(profile->threads[index].name) - 1);
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
	profile->main_thread = PROFILE_NONE;
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
	pair_map_done(&profile->function_of_name);
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

void profile_change_sampler(struct profile *profile)
{
	name_functions(profile);
	id_map_clear(&profile->function_of_id);
	id_map_clear(&profile->thread_of_id);
	profile->sampler_changed = true;
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
