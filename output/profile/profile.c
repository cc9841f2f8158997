/* SPDX-License-Identifier: MIT */
#include "output/profile/profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

/* The self weights of PROFILE_BASE, by node; missing ones are zero. */
struct base_weights {
	struct profile_weight *rows; /* owned */
	uint32_t nr, max;
};

/* The samples, with keep_samples. */
struct kept_samples {
	struct profile_sample *rows; /* owned */
	uint32_t nr, max;
};

/* The threads and, with by_thread, their nodes in the tree. */
struct thread_rows {
	struct profile_thread *rows; /* owned */
	uint32_t *roots;	     /* owned; parallel to rows; PROFILE_NONE: not made yet */
	uint32_t nr, max, max_roots;
	uint32_t shared_root; /* of threads without a row; PROFILE_NONE if there are none */
	uint64_t nr_seen;     /* threads with and without a row */
};

/* The most recent main thread of a process. */
struct main_thread {
	bool is_known;
	pid_t tid;
	char name[THREAD_NAME_MAX_BYTES];
	uint32_t row, root; /* as in its path */
};

/* What is kept of a process besides its row. */
struct process_state {
	uint32_t root;	/* with by_process, its node in the tree; PROFILE_NONE: not made yet */
	uint32_t owner; /* the process whose root it uses: itself, or the first of its name */
	struct main_thread main;
};

struct process_states {
	struct process_state *states; /* owned; parallel to the rows of processes */
	uint32_t max;
	uint32_t shared_root; /* of processes without a row; PROFILE_NONE if there are none */
	struct process_index index;
};

struct profile {
	struct sample_sink sink; /* first: the sink is the profile */
	struct profile_options options;

	struct profile_sums sums[NR_PROFILE_SIDES];
	struct profile_tree tree;
	uint32_t other_node; /* of PROFILE_OTHER_STACKS; PROFILE_NONE until a stack does not fit */
	struct base_weights base;
	struct kept_samples samples;

	struct process_rows processes;
	struct process_states process_states;
	struct thread_rows threads;
	struct thread_paths paths; /* below the threads' roots with by_thread */
};

/* Enter the last row, which is new, where processes are found. */
static int enter_process(struct profile *profile)
{
	const struct process_rows *processes = &profile->processes;
	struct process_states *all = &profile->process_states;
	const uint32_t row = processes->nr - 1;
	uint32_t owner = PAIR_MAP_NONE;

	if (profile->options.merges_names)
		owner = process_index_find_name(&all->index, processes, &processes->rows[row]);
	all->states[row] = (struct process_state){
		.root = PROFILE_NONE,
		.owner = owner == PAIR_MAP_NONE ? row : owner,
	};
	return process_index_add(&all->index, processes, row);
}

int profile_add_process(struct profile *profile, const struct process_info *info,
			uint32_t *ret_process)
{
	const uint32_t row = profile->processes.nr;
	struct process_states *all = &profile->process_states;
	struct process_state *states;
	int err;

	*ret_process = PROFILE_NONE;
	if (row >= PROFILE_MAX_PROCESSES)
		return 0;
	states = array_reserve(all->states, row + 1, &all->max, sizeof(*states));
	if (!states)
		return -ENOMEM;
	all->states = states;
	err = process_rows_add(&profile->processes, info);
	if (!err)
		err = enter_process(profile);
	if (err)
		process_rows_cut(&profile->processes, row);
	else
		*ret_process = row;
	return err;
}

int profile_get_process(struct profile *profile, const struct profile_process *process,
			uint32_t *ret_process)
{
	const struct process_info info = {
		.pid = process->pid,
		.parent_pid = process->parent_pid,
		.name = process->name,
		.command_line = process->command_line,
		.start_ns = process->start_ns,
	};

	*ret_process =
		process_index_find(&profile->process_states.index, &profile->processes, process);
	return *ret_process == PROFILE_NONE ? profile_add_process(profile, &info, ret_process) : 0;
}

uint32_t profile_process_owner(const struct profile *profile, uint32_t process)
{
	return process < profile->processes.nr ? profile->process_states.states[process].owner
					       : PROFILE_NONE;
}

void profile_end_process(struct profile *profile, uint32_t process, uint64_t end_ns)
{
	if (process < profile->processes.nr)
		profile->processes.rows[process].end_ns = end_ns;
}

/* Reserve room for one more thread. */
static int threads_reserve(struct thread_rows *threads)
{
	struct profile_thread *rows;
	uint32_t *roots;

	rows = array_reserve(threads->rows, threads->nr + 1, &threads->max, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	threads->rows = rows;
	roots = array_reserve(threads->roots, threads->nr + 1, &threads->max_roots, sizeof(*roots));
	if (!roots)
		return -ENOMEM;
	threads->roots = roots;
	return 0;
}

int profile_add_thread(struct profile *profile, const struct profile_thread *thread,
		       uint32_t *ret_thread)
{
	const struct profile_options *options = &profile->options;
	struct thread_rows *threads = &profile->threads;
	int err;

	threads->nr_seen++;
	*ret_thread = PROFILE_NONE;
	if (!options->by_thread && !options->keep_samples && !options->keep_threads)
		return 0;
	if (threads->nr >= PROFILE_MAX_THREADS ||
	    (options->by_thread && profile_tree_is_full(&profile->tree)))
		return 0;
	err = threads_reserve(threads);
	if (err)
		return err;
	threads->rows[threads->nr] = *thread;
	threads->roots[threads->nr] = PROFILE_NONE;
	*ret_thread = threads->nr++;
	return 0;
}

/*
 * Find a root, or add it: the owner's, or the shared one if it has no row or the tree no room.
 * own is NULL for a shared root.
 */
static int root_get(struct profile *profile, const struct profile_frame *frame, uint32_t parent,
		    uint32_t *own, uint32_t *shared, uint32_t *ret_node)
{
	struct profile_frame row = *frame;
	uint32_t *root = own;
	int err = 0;

	if (!own || (*own == PROFILE_NONE && profile_tree_is_full(&profile->tree))) {
		root = shared;
		row.owner = PROFILE_NONE;
		if (row.root == ROOT_THREAD)
			parent = PROFILE_NONE; /* of threads of several processes */
	}
	if (*root == PROFILE_NONE)
		err = profile_tree_add_root(&profile->tree, parent, &row, root);
	if (!err)
		*ret_node = *root;
	return err;
}

int profile_root(struct profile *profile, uint32_t process, uint32_t thread, uint32_t *ret_node)
{
	const struct profile_options *options = &profile->options;
	struct profile_frame frame = {.function = PROFILE_NONE, .root = ROOT_PROCESS};
	uint32_t *own = NULL;
	uint32_t node = PROFILE_NONE;
	int err = 0;

	if (options->by_process) {
		if (process < profile->processes.nr) {
			frame.owner = profile_process_owner(profile, process);
			own = &profile->process_states.states[frame.owner].root;
		}
		err = root_get(profile, &frame, PROFILE_NONE, own,
			       &profile->process_states.shared_root, &node);
	}
	if (!err && options->by_thread) {
		frame.root = ROOT_THREAD;
		frame.owner = thread;
		own = thread == PROFILE_NONE ? NULL : &profile->threads.roots[thread];
		err = root_get(profile, &frame, node, own, &profile->threads.shared_root, &node);
	}
	if (!err)
		*ret_node = node;
	return err;
}

int profile_get_function(struct profile *profile, const struct function *function,
			 uint32_t *ret_function)
{
	return profile_tree_get_function(&profile->tree, function, ret_function);
}

int profile_get_node(struct profile *profile, uint32_t parent, uint32_t function, int32_t line,
		     uint32_t *ret_node)
{
	uint32_t frame;
	int err;

	if (!profile->options.by_line)
		line = profile->tree.functions.rows[function].first_line;
	err = profile_tree_get_frame(&profile->tree, function, line, &frame);
	return err ? err : profile_tree_get_node(&profile->tree, parent, frame, ret_node);
}

int profile_other_node(struct profile *profile, uint32_t *ret_node)
{
	const struct function function = {.qualname = PROFILE_OTHER_STACKS, .path = ""};
	struct profile_frame frame = {.owner = PROFILE_NONE};
	int err = 0;

	if (profile->other_node == PROFILE_NONE) {
		err = function_rows_append(&profile->tree.functions, &function, &frame.function);
		if (!err)
			err = profile_tree_add_root(&profile->tree, PROFILE_NONE, &frame,
						    &profile->other_node);
	}
	if (!err)
		*ret_node = profile->other_node;
	return err;
}

static int keep_sample(struct kept_samples *samples, const struct profile_sample *sample)
{
	struct profile_sample *rows =
		array_reserve(samples->rows, samples->nr + 1, &samples->max, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	samples->rows = rows;
	rows[samples->nr++] = *sample;
	return 0;
}

/* Count a weight for the base. */
static int count_base(struct base_weights *base, uint32_t node, uint64_t weight_ns)
{
	struct profile_weight *rows =
		array_reserve(base->rows, node + 1, &base->max, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	base->rows = rows;
	for (; base->nr <= node; base->nr++)
		rows[base->nr] = (struct profile_weight){0};
	rows[node].samples++;
	rows[node].ns += weight_ns;
	return 0;
}

/* Mark the row of the innermost Python frame of a stack. */
static void mark_line_uncertain(struct profile_tree *tree, uint32_t node)
{
	for (; node != PROFILE_NONE; node = tree->nodes[node].parent) {
		struct profile_frame *frame = &tree->frames[tree->nodes[node].frame];

		if (frame->function == PROFILE_NONE)
			return;
		if (tree->functions.rows[frame->function].kind == FUNCTION_PYTHON) {
			frame->line_is_uncertain = true;
			return;
		}
	}
}

/* Count the weight of a sample that is shown. */
static int count_weight(struct profile *profile, enum profile_side side,
			const struct profile_sample *sample)
{
	const uint32_t node = sample->node;
	int err = 0;

	if (side == PROFILE_BASE)
		return node == PROFILE_NONE ? 0
					    : count_base(&profile->base, node, sample->weight_ns);
	if (profile->options.keep_samples)
		err = keep_sample(&profile->samples, sample);
	if (!err && node != PROFILE_NONE) {
		profile->tree.nodes[node].self_samples++;
		profile->tree.nodes[node].self_ns += sample->weight_ns;
		if (sample->flags & SAMPLE_IN_JIT)
			mark_line_uncertain(&profile->tree, node);
	}
	return err;
}

void profile_add_idle_thread(struct profile *profile, enum profile_side side)
{
	profile->sums[side].account.nr_idle_threads++;
}

void profile_account_add(struct profile_account *sum, const struct profile_account *account)
{
	sum->nr_samples += account->nr_samples;
	sum->nr_shown += account->nr_shown;
	sum->nr_in_jit += account->nr_in_jit;
	sum->wall_ns += account->wall_ns;
	sum->cpu_ns += account->cpu_ns;
	sum->nr_cpu_measured += account->nr_cpu_measured;
	sum->nr_approximate += account->nr_approximate;
	sum->nr_idle += account->nr_idle;
	sum->idle_ns += account->idle_ns;
	sum->nr_idle_threads += account->nr_idle_threads;
}

void profile_sums_add(struct profile_sums *sums, enum profile_mode mode,
		      const struct profile_sample *sample, bool is_shown, bool has_frames)
{
	struct profile_account *account = &sums->account;

	account->nr_samples++;
	account->wall_ns += sample->wall_ns;
	account->cpu_ns += sample->cpu_ns;
	account->nr_cpu_measured += (sample->flags & SAMPLE_CPU_MEASURED) != 0;
	if (!is_shown && mode == PROFILE_BUSY) {
		account->nr_idle++;
		account->idle_ns += sample->wall_ns;
	}
	if (!is_shown)
		return;
	account->nr_shown++;
	account->nr_in_jit += (sample->flags & SAMPLE_IN_JIT) != 0;
	account->nr_approximate += (sample->flags & SAMPLE_APPROXIMATE) != 0;
	sums->time_ns += sample->weight_ns;
	if (!has_frames) {
		sums->nr_frameless++;
		sums->frameless_ns += sample->weight_ns;
	}
}

static void sums_subtract(struct profile_sums *sums, const struct profile_sums *part)
{
	struct profile_account *account = &sums->account;

	account->nr_samples -= part->account.nr_samples;
	account->nr_shown -= part->account.nr_shown;
	account->nr_in_jit -= part->account.nr_in_jit;
	account->wall_ns -= part->account.wall_ns;
	account->cpu_ns -= part->account.cpu_ns;
	account->nr_cpu_measured -= part->account.nr_cpu_measured;
	account->nr_approximate -= part->account.nr_approximate;
	account->nr_idle -= part->account.nr_idle;
	account->idle_ns -= part->account.idle_ns;
	sums->time_ns -= part->time_ns;
	sums->nr_frameless -= part->nr_frameless;
	sums->frameless_ns -= part->frameless_ns;
}

int profile_add(struct profile *profile, enum profile_side side,
		const struct profile_sample *sample)
{
	struct profile_sums *sums = &profile->sums[side];
	struct profile_sample entry = *sample;
	const bool is_shown = profile_mode_shows(profile->options.mode, entry.flags, entry.wall_ns,
						 entry.cpu_ns, &entry.weight_ns);

	if (is_shown) {
		int err = count_weight(profile, side, &entry);

		if (err)
			return err;
		sums->nr_other_samples +=
			entry.node == profile->other_node && entry.node != PROFILE_NONE;
	}
	profile_sums_add(sums, profile->options.mode, &entry, is_shown,
			 !profile_tree_is_root(&profile->tree, entry.node));
	if (profile->options.counts_idle && (entry.flags & SAMPLE_IDLE)) {
		sums->account.nr_idle++;
		sums->account.idle_ns += entry.wall_ns;
	}
	return 0;
}

void profile_remove_base(struct profile *profile, const struct profile_sample *sample)
{
	struct profile_sums *sums = &profile->sums[PROFILE_BASE];
	struct profile_sums one = {.nr_other_samples = 0};
	struct profile_sample entry = *sample;
	const bool is_shown = profile_mode_shows(profile->options.mode, entry.flags, entry.wall_ns,
						 entry.cpu_ns, &entry.weight_ns);

	profile_sums_add(&one, profile->options.mode, &entry, is_shown,
			 !profile_tree_is_root(&profile->tree, entry.node));
	sums_subtract(sums, &one);
	if (!is_shown || entry.node == PROFILE_NONE)
		return;
	profile->base.rows[entry.node].samples--;
	profile->base.rows[entry.node].ns -= entry.weight_ns;
	sums->nr_other_samples -= entry.node == profile->other_node;
}

/* Returns where the main thread of a thread's process is kept, if the thread is one; else NULL. */
static struct main_thread *main_of(struct profile *profile, const struct sample_thread *thread)
{
	return thread->is_main && thread->process < profile->processes.nr
		       ? &profile->process_states.states[thread->process].main
		       : NULL;
}

/* Whether a main thread is the former one: after an exec, another sampler gives it another id. */
static bool continues(const struct main_thread *former, const struct sample_thread *thread)
{
	return former && former->is_known && former->tid == thread->tid &&
	       strcmp(former->name, thread->name) == 0;
}

static void remember_main(struct main_thread *main, const struct sample_thread *thread,
			  const struct thread_path *path)
{
	*main = (struct main_thread){
		.is_known = true,
		.tid = thread->tid,
		.row = path->row,
		.root = path->root,
	};
	memcpy(main->name, thread->name, sizeof(thread->name) - 1);
}

/* Give a thread its row and root, or the shared root if the rows are full. */
static int path_place(struct profile *profile, const struct sample_thread *thread,
		      struct thread_path *path)
{
	struct profile_thread row = {
		.process = thread->process < profile->processes.nr ? thread->process : PROFILE_NONE,
		.tid = thread->tid,
		.interpreter_id = thread->interpreter_id,
		.is_main = thread->is_main,
	};
	int err;

	memcpy(row.name, thread->name, sizeof(thread->name) - 1);
	err = profile_add_thread(profile, &row, &path->row);
	return err ? err : profile_root(profile, row.process, path->row, &path->root);
}

/* Find the path of a thread, or begin it. */
static int path_get(struct profile *profile, const struct sample_thread *thread,
		    struct thread_path **ret_path)
{
	struct thread_path *path = thread_paths_find(&profile->paths, thread);
	int err = path ? 0 : thread_paths_begin(&profile->paths, thread, &path);

	if (err)
		return err;
	path->is_used = true;
	*ret_path = path;
	return 0;
}

/* Place the path of a thread at its first sample that is shown. */
static int path_begin(struct profile *profile, const struct sample_thread *thread,
		      struct thread_path *path)
{
	struct main_thread *main = main_of(profile, thread);
	int err;

	if (continues(main, thread)) {
		path->row = main->row;
		path->root = main->root;
	} else {
		err = path_place(profile, thread, path);
		if (err)
			return err;
		if (main)
			remember_main(main, thread, path);
	}
	path->is_placed = true;
	return 0;
}

static struct profile_sample entry_of(const struct sample *sample)
{
	return (struct profile_sample){
		.time_ns = sample->time_ns,
		.wall_ns = sample->wall_ns,
		.cpu_ns = sample->cpu_ns,
		.flags = sample->flags,
		.node = PROFILE_NONE,
		.thread = PROFILE_NONE,
	};
}

int profile_place(struct profile *profile, const struct sample *sample,
		  struct profile_sample *ret_placed)
{
	struct profile_sample *entry = ret_placed;
	struct thread_path *path;
	int err = path_get(profile, sample->thread, &path);

	if (!err && !path->is_placed)
		err = path_begin(profile, sample->thread, path);
	if (err)
		return err;
	*entry = entry_of(sample);
	entry->thread = path->row;
	err = thread_path_follow(path, &profile->tree, sample);
	if (err == -E2BIG)
		return profile_other_node(profile, &entry->node);
	entry->node = thread_path_leaf(path);
	return err;
}

/* Skip a sample: keep only the part of the path that it shares with the previous one. */
static int sample_skip(struct profile *profile, const struct sample *sample)
{
	struct thread_path *path;
	int err = path_get(profile, sample->thread, &path);

	if (err)
		return err;
	thread_path_cut(path, sample->nr_unchanged);
	if (profile->options.mode == PROFILE_BUSY && !path->has_waited) {
		path->has_waited = true;
		profile_add_idle_thread(profile, PROFILE_SHOWN);
	}
	return 0;
}

static int profile_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct profile *profile = (struct profile *)sink;
	struct profile_sample entry = entry_of(sample);
	uint64_t weight_ns;
	int err = 0;

	if (profile_mode_shows(profile->options.mode, sample->flags, sample->wall_ns,
			       sample->cpu_ns, &weight_ns))
		err = profile_place(profile, sample, &entry);
	else
		err = sample_skip(profile, sample);
	return err ? err : profile_add(profile, PROFILE_SHOWN, &entry);
}

static void profile_renamed(struct sample_sink *sink, const struct sample_thread *thread)
{
	struct profile *profile = (struct profile *)sink;
	const struct thread_path *path = thread_paths_find(&profile->paths, thread);
	struct main_thread *main = main_of(profile, thread);

	if (!path || !path->is_placed)
		return;
	if (path->row != PROFILE_NONE)
		(void)snprintf(profile->threads.rows[path->row].name, THREAD_NAME_MAX_BYTES, "%s",
			       thread->name);
	if (main)
		memcpy(main->name, thread->name, sizeof(thread->name) - 1);
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
	profile->tree.by_line = options->by_line;
	profile->tree.keep_plumbing = options->keep_plumbing;
	profile->tree.max_nodes = options->max_nodes ? options->max_nodes : PROFILE_MAX_NODES;
	profile->other_node = PROFILE_NONE;
	profile->threads.shared_root = PROFILE_NONE;
	profile->process_states.shared_root = PROFILE_NONE;
	return profile;
}

void profile_destroy(struct profile *profile)
{
	if (!profile)
		return;
	thread_paths_done(&profile->paths);
	process_rows_done(&profile->processes);
	process_index_done(&profile->process_states.index);
	free(profile->process_states.states);
	profile_tree_done(&profile->tree);
	free(profile->base.rows);
	free(profile->samples.rows);
	free(profile->threads.rows);
	free(profile->threads.roots);
	free(profile);
}

struct sample_sink *profile_sink(struct profile *profile)
{
	return &profile->sink;
}

const struct profile_sums *profile_sums(const struct profile *profile, enum profile_side side)
{
	return &profile->sums[side];
}

enum profile_mode profile_mode(const struct profile *profile)
{
	return profile->options.mode;
}

const struct profile_options *profile_options(const struct profile *profile)
{
	return &profile->options;
}

uint64_t profile_nr_threads(const struct profile *profile)
{
	return profile->threads.nr_seen;
}

const struct profile_function *profile_functions(const struct profile *profile, uint32_t *ret_nr)
{
	*ret_nr = profile->tree.functions.nr;
	return profile->tree.functions.rows;
}

const struct profile_frame *profile_frames(const struct profile *profile, uint32_t *ret_nr)
{
	*ret_nr = profile->tree.nr_frames;
	return profile->tree.frames;
}

const struct profile_node *profile_nodes(const struct profile *profile, uint32_t *ret_nr)
{
	*ret_nr = profile->tree.nr_nodes;
	return profile->tree.nodes;
}

const struct profile_weight *profile_base(const struct profile *profile, uint32_t *ret_nr)
{
	*ret_nr = profile->base.nr;
	return profile->base.rows;
}

const struct profile_process *profile_processes(const struct profile *profile, uint32_t *ret_nr)
{
	*ret_nr = profile->processes.nr;
	return profile->processes.rows;
}

const struct profile_thread *profile_threads(const struct profile *profile, uint32_t *ret_nr)
{
	*ret_nr = profile->threads.nr;
	return profile->threads.rows;
}

const struct profile_sample *profile_samples(const struct profile *profile, uint32_t *ret_nr)
{
	*ret_nr = profile->samples.nr;
	return profile->samples.rows;
}

struct profile_weight profile_weight(const struct profile *profile, enum profile_side side,
				     uint32_t node)
{
	const struct profile_node *row = &profile->tree.nodes[node];

	if (side == PROFILE_SHOWN)
		return (struct profile_weight){row->self_samples, row->self_ns};
	return node < profile->base.nr ? profile->base.rows[node] : (struct profile_weight){0};
}
