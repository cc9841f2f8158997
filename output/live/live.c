/* SPDX-License-Identifier: MIT */
#include "output/live/live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"

/* A sample in the window. */
struct recent_sample {
	struct profile_sample placed;
	uint32_t slot, id; /* of its thread; another one may have the slot by now */
};

/* The samples in the window, in a ring. */
struct recent_samples {
	struct recent_sample *rows; /* owned */
	uint32_t first, nr, max;    /* max is a power of two, or 0 */
};

struct live {
	struct sample_sink sink; /* must be first */
	struct live_options options;
	struct profile *profile; /* owned */
	struct recent_samples recent;
	struct live_thread *threads; /* owned; by slot */
	uint32_t nr_threads, max_threads;
	struct live_process *processes; /* owned, with their names; by index */
	uint32_t nr_processes, max_processes;
	uint64_t first_ns, now_ns; /* of the samples; 0: none */
};

enum live_state live_state_of(uint32_t flags)
{
	if (flags & SAMPLE_HOLDS_GIL)
		return LIVE_HOLDS_GIL;
	if (flags & SAMPLE_WAITS_FOR_GIL)
		return LIVE_WAITS_FOR_GIL;
	return (flags & SAMPLE_IDLE) ? LIVE_WAITS : LIVE_RUNS;
}

const char *live_state_name(enum live_state state)
{
	static const char *const names[NR_LIVE_STATES] = {
		[LIVE_HOLDS_GIL] = "gil",
		[LIVE_WAITS_FOR_GIL] = "waits-for-gil",
		[LIVE_RUNS] = "runs",
		[LIVE_WAITS] = "waits",
	};

	return names[state];
}

/* The window. */

static uint64_t window_ns(const struct live *live)
{
	const uint64_t ticks_ns = LIVE_WINDOW_TICKS * live->options.interval_ns;

	return ticks_ns > LIVE_WINDOW_NS ? ticks_ns : LIVE_WINDOW_NS;
}

/* Take the oldest sample out of the window. */
static void forget_oldest(struct live *live)
{
	struct recent_samples *recent = &live->recent;
	const struct recent_sample *oldest = &recent->rows[recent->first];
	const struct profile_sample *placed = &oldest->placed;
	struct live_thread *thread = &live->threads[oldest->slot];

	profile_remove_base(live->profile, placed);
	if (thread->is_used && thread->thread.id == oldest->id) {
		thread->state_ns[live_state_of(placed->flags)] -= placed->wall_ns;
		if (placed->flags & SAMPLE_GC)
			thread->gc_ns -= placed->wall_ns;
		thread->is_used = --thread->nr_recent != 0;
	}
	recent->first = (recent->first + 1) & (recent->max - 1);
	recent->nr--;
}

/* Make room for one more sample. Returns 0 or -ENOMEM. */
static int reserve(struct live *live)
{
	enum { FIRST_MAX = 1024 };
	struct recent_samples *recent = &live->recent;
	const uint32_t max = recent->max ? 2 * recent->max : FIRST_MAX;
	struct recent_sample *rows;

	if (recent->nr < recent->max)
		return 0;
	if (recent->max == LIVE_MAX_RECENT) {
		forget_oldest(live);
		return 0;
	}
	rows = malloc(max * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < recent->nr; i++)
		rows[i] = recent->rows[(recent->first + i) & (recent->max - 1)];
	free(recent->rows);
	*recent = (struct recent_samples){.rows = rows, .nr = recent->nr, .max = max};
	return 0;
}

void live_advance(struct live *live, uint64_t now_ns)
{
	const struct recent_samples *recent = &live->recent;

	if (now_ns > live->now_ns)
		live->now_ns = now_ns;
	while (recent->nr &&
	       live->now_ns - recent->rows[recent->first].placed.time_ns >= window_ns(live))
		forget_oldest(live);
}

/* The sink. */

/* Returns the entry of a thread, which is begun if another thread had its slot; NULL: no memory. */
static struct live_thread *get_thread(struct live *live, const struct sample_thread *thread)
{
	const uint32_t slot = thread->slot;
	struct live_thread *threads =
		array_reserve(live->threads, slot + 1, &live->max_threads, sizeof(*threads));

	if (!threads)
		return NULL;
	live->threads = threads;
	for (; live->nr_threads <= slot; live->nr_threads++)
		threads[live->nr_threads] = (struct live_thread){.is_used = false};
	if (!threads[slot].is_used || threads[slot].thread.id != thread->id)
		threads[slot] = (struct live_thread){.is_used = false};
	return &threads[slot];
}

static void count_thread(struct live_thread *entry, const struct sample *sample, uint32_t node)
{
	entry->is_used = true;
	entry->thread = *sample->thread;
	entry->flags = sample->flags;
	entry->node = node;
	entry->nr_recent++;
	entry->state_ns[live_state_of(sample->flags)] += sample->wall_ns;
	if (sample->flags & SAMPLE_GC)
		entry->gc_ns += sample->wall_ns;
}

static int live_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct live *live = (struct live *)sink;
	struct recent_sample entry = {.slot = sample->thread->slot, .id = sample->thread->id};
	const uint64_t begin_ns = sample->time_ns - sample->wall_ns;
	struct live_thread *thread;
	int err;

	/* The time of a sample may begin before that of one that came earlier. */
	if (!live->first_ns || begin_ns < live->first_ns)
		live->first_ns = begin_ns;
	live_advance(live, sample->time_ns);
	thread = get_thread(live, sample->thread);
	err = thread ? profile_place(live->profile, sample, &entry.placed) : -ENOMEM;
	if (!err)
		err = reserve(live);
	if (!err)
		err = profile_add(live->profile, LIVE_ALL, &entry.placed);
	if (!err)
		err = profile_add(live->profile, LIVE_RECENT, &entry.placed);
	if (err)
		return err;
	live->recent.rows[(live->recent.first + live->recent.nr++) & (live->recent.max - 1)] =
		entry;
	count_thread(thread, sample, entry.placed.node);
	return 0;
}

static void live_renamed(struct sample_sink *sink, const struct sample_thread *thread)
{
	struct live *live = (struct live *)sink;

	if (thread->slot < live->nr_threads && live->threads[thread->slot].is_used &&
	    live->threads[thread->slot].thread.id == thread->id)
		live->threads[thread->slot].thread = *thread;
}

int live_set_process(struct live *live, uint32_t index, const struct process_info *info)
{
	struct live_process *processes;
	char *name;

	if (index >= PROFILE_MAX_PROCESSES)
		return 0;
	processes =
		array_reserve(live->processes, index + 1, &live->max_processes, sizeof(*processes));
	name = strdup(info->name ? info->name : "");
	if (processes)
		live->processes = processes;
	if (!processes || !name) {
		free(name);
		return -ENOMEM;
	}
	for (; live->nr_processes <= index; live->nr_processes++)
		processes[live->nr_processes] = (struct live_process){.pid = 0};
	free(processes[index].name);
	processes[index] = (struct live_process){info->pid, name};
	return 0;
}

static struct profile *new_profile(const struct live_options *options)
{
	const struct profile_options profile = {
		.mode = options->mode,
		.by_line = true,
		.keep_plumbing = options->keep_plumbing,
		.has_base = true,
		.max_nodes = LIVE_MAX_NODES,
	};

	return profile_create(&profile);
}

int live_reset(struct live *live, enum profile_mode mode)
{
	struct live_options options = live->options;
	struct profile *profile;

	options.mode = mode;
	profile = new_profile(&options);
	if (!profile)
		return -ENOMEM;
	profile_destroy(live->profile);
	live->profile = profile;
	live->options = options;
	live->recent.first = live->recent.nr = 0;
	live->nr_threads = 0;
	live->first_ns = live->now_ns = 0;
	return 0;
}

struct live *live_create(const struct live_options *options)
{
	static const struct sample_sink_ops ops = {
		.sample = live_sample,
		.renamed = live_renamed,
	};
	struct live *live = calloc(1, sizeof(*live));

	if (!live)
		return NULL;
	live->sink.ops = &ops;
	live->options = *options;
	live->profile = new_profile(options);
	if (live->profile)
		return live;
	free(live);
	return NULL;
}

void live_destroy(struct live *live)
{
	if (!live)
		return;
	profile_destroy(live->profile);
	free(live->recent.rows);
	free(live->threads);
	for (uint32_t i = 0; i < live->nr_processes; i++)
		free(live->processes[i].name);
	free(live->processes);
	free(live);
}

struct sample_sink *live_sink(struct live *live)
{
	return &live->sink;
}

const struct profile *live_profile(const struct live *live)
{
	return live->profile;
}

uint64_t live_recent_ns(const struct live *live)
{
	const uint64_t passed_ns = live->first_ns ? live->now_ns - live->first_ns : 0;

	return passed_ns < window_ns(live) ? passed_ns : window_ns(live);
}

const struct live_thread *live_threads(const struct live *live, uint32_t *ret_nr)
{
	*ret_nr = live->nr_threads;
	return live->threads;
}

uint32_t live_nr_processes(const struct live *live)
{
	return live->nr_processes;
}

const struct live_process *live_process(const struct live *live, uint32_t index)
{
	return index < live->nr_processes && live->processes[index].pid ? &live->processes[index]
									: NULL;
}

/* Returns how many processes have recent samples. */
static uint32_t count_processes(const struct live *live)
{
	cleanup_free bool *is_seen = calloc((size_t)live->nr_processes + 1, sizeof(*is_seen));
	uint32_t nr = 0;

	for (uint32_t i = 0; is_seen && i < live->nr_threads; i++) {
		const uint32_t process = live->threads[i].thread.process;

		if (!live->threads[i].is_used || process >= live->nr_processes)
			continue;
		nr += !is_seen[process];
		is_seen[process] = true;
	}
	return nr;
}

void live_summarize(const struct live *live, struct live_summary *ret_summary)
{
	const uint64_t recent_ns = live_recent_ns(live);
	struct live_summary summary = {.nr_processes = count_processes(live)};
	uint64_t gil_ns = 0, gil_wait_ns = 0, gc_ns = 0;

	for (uint32_t i = 0; i < live->nr_threads; i++) {
		const struct live_thread *thread = &live->threads[i];

		if (!thread->is_used)
			continue;
		summary.nr_threads++;
		summary.nr_idle += live_state_of(thread->flags) == LIVE_WAITS;
		gil_ns += thread->state_ns[LIVE_HOLDS_GIL];
		gil_wait_ns += thread->state_ns[LIVE_WAITS_FOR_GIL];
		gc_ns += thread->gc_ns;
	}
	summary.gil_share = live_share(gil_ns, recent_ns);
	summary.gil_wait_share = live_share(gil_wait_ns, recent_ns);
	summary.gc_share = live_share(gc_ns, recent_ns);
	*ret_summary = summary;
}
