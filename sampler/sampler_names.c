/* SPDX-License-Identifier: MIT */
/* When the names are read that Python's threading has for threads, and of which. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/sampler_state.h"

/*
 * A thread's name is looked for when the thread is new and once more so much later: by
 * then threading knows it, and whoever started it has named it. Then at the end of a run.
 */
#define NAMES_AGAIN_NS 100000000u
enum { NAME_READINGS = 2 };

/* Some threads of one interpreter whose names are wanted. */
struct names {
	struct named_thread *threads; /* owned; index is that of the snapshot's */
	size_t nr_threads;
};

static bool is_wanted(struct sampler *sampler, const struct snapshot_thread *thread,
		      enum names_wanted wanted)
{
	const struct sampled_thread *sampled;

	if (thread->is_new || !thread->copied || !thread->ref.thread_id ||
	    sampler_thread_is_unbound(sampler, thread))
		return false;
	sampled = &sampler->threads[thread->slot];
	if (wanted == NAMES_OF_RECENT && sampled->nr_named == 1)
		return sampled->first_ns + NAMES_AGAIN_NS <= sampler->names_due_ns;
	return wanted == NAMES_OF_ALL || sampled->nr_named == 0;
}

/*
 * Put the wanted threads of the interpreter of snapshot thread *index into names, which has
 * room for all there are, and move *index behind them: an interpreter's come in a row.
 */
static void collect(struct sampler *sampler, size_t *index, enum names_wanted wanted,
		    struct names *names)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	const size_t interpreter = snapshot->threads[*index]->ref.interpreter;

	names->nr_threads = 0;
	for (; *index < snapshot->nr_threads; ++*index) {
		const struct snapshot_thread *thread = snapshot->threads[*index];
		struct sampled_thread *sampled;

		if (thread->ref.interpreter != interpreter)
			return;
		if (!is_wanted(sampler, thread, wanted))
			continue;
		sampled = &sampler->threads[thread->slot];
		sampled->nr_named++;
		names->threads[names->nr_threads++] = (struct named_thread){
			.ident = thread->ref.thread_id,
			.native_id = sampled->info->is_main ? 0 : (uint64_t)sampled->own_tid,
			.index = *index,
		};
	}
}

/* Give a thread its name, and tell sink if that is another one than before. */
static void rename_thread(struct sampler *sampler, const struct named_thread *named,
			  struct sample_sink *sink)
{
	const struct snapshot_thread *thread = sampler->snapshot.threads[named->index];
	struct sample_thread *info = sampler->threads[thread->slot].info;

	if (!named->name[0] || (info->is_named && strcmp(info->name, named->name) == 0))
		return;
	/* It may have ended meanwhile, and the next one with its ident have been named. */
	if (!sampler_has_pthread(sampler, named->ident, sampler->threads[thread->slot].own_tid))
		return;
	memcpy(info->name, named->name, sizeof(info->name));
	info->is_named = true;
	if (sink && sink->ops->renamed)
		sink->ops->renamed(sink, info);
}

/* Read what names has, all of one interpreter. */
static int read_names(struct sampler *sampler, struct names *names, struct sample_sink *sink)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	size_t interpreter = snapshot->threads[names->threads[0].index]->ref.interpreter;
	int err = thread_names_read(snapshot->memory, sampler->build,
				    snapshot->interpreters[interpreter].ref.addr,
				    &sampler->name_hints, names->threads, names->nr_threads);

	for (size_t i = 0; !err && i < names->nr_threads; i++)
		rename_thread(sampler, &names->threads[i], sink);
	return err == -ENOENT ? 0 : err;
}

int sampler_names_read(struct sampler *sampler, enum names_wanted wanted, struct sample_sink *sink)
{
	const size_t nr_threads = sampler->snapshot.nr_threads;
	struct names names = {.threads = calloc(nr_threads + 1, sizeof(*names.threads))};
	int err = names.threads ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < nr_threads;) {
		collect(sampler, &i, wanted, &names);
		if (names.nr_threads)
			err = read_names(sampler, &names, sink);
	}
	free(names.threads);
	return err;
}

/* Whether there are threads that were looked for but once. */
static bool has_recent_threads(const struct sampler *sampler)
{
	const struct snapshot *snapshot = &sampler->snapshot;

	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (!snapshot->threads[i]->is_new &&
		    sampler->threads[snapshot->threads[i]->slot].nr_named < NAME_READINGS)
			return true;
	return false;
}

int sampler_names_tick(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns)
{
	const bool is_due = sampler->names_due_ns && now_ns >= sampler->names_due_ns;
	int err;

	if (!is_due && !sampler->has_new_threads)
		return 0;
	sampler->has_new_threads = false;
	if (is_due)
		sampler->names_due_ns = now_ns;
	err = sampler_names_read(sampler, is_due ? NAMES_OF_RECENT : NAMES_OF_NEW, sink);
	if (is_due)
		sampler->names_due_ns = 0;
	/* Those that come until then are read with them, if they are old enough. */
	if (!sampler->names_due_ns && has_recent_threads(sampler))
		sampler->names_due_ns = now_ns + NAMES_AGAIN_NS;
	return err;
}
