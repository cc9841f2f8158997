/* SPDX-License-Identifier: MIT */
/* When the names are read that Python's threading has for threads, and of which. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/bounded_memory.h"
#include "sampler/sampler_state.h"
#include "sampler/ticker.h"

/*
 * A thread's name is looked for when the thread is new and once more so much later: by
 * then threading knows it, and whoever started it has named it. Then at the end of a run.
 */
#define NAMES_AGAIN_NS 100000000u
enum { NAME_READINGS = 2, NAMED_AT_END };

/* So many are read in one pass over the threads of an interpreter. */
enum { NAMES_OF_PASS = NAMES_OF_TICK };

/* Which threads' names to read. */
enum names_wanted {
	NAMES_OF_NEW,	 /* of which none was looked for yet */
	NAMES_OF_RECENT, /* and those that were looked for once, long enough ago */
	NAMES_OF_ALL,	 /* that were not NAMED_AT_END */
};

/* A reading of names: which, and what there is for it. */
struct reading {
	struct sampler *sampler;
	enum names_wanted wanted;
	bool is_last;		  /* of a run */
	struct sample_sink *sink; /* may be NULL */
	struct bounded_memory memory;
	size_t max_threads; /* so many more may be looked for */
};

/* Some threads of one interpreter whose names are wanted. */
struct names {
	struct named_thread threads[NAMES_OF_PASS]; /* index is that of the snapshot's */
	size_t nr_threads;
};

static bool needs_name(const struct sampler *sampler, const struct sampled_thread *sampled,
		       enum names_wanted wanted)
{
	switch (wanted) {
	case NAMES_OF_NEW:
		return sampled->nr_named == 0;
	case NAMES_OF_RECENT:
		return sampled->nr_named == 0 ||
		       (sampled->nr_named == 1 &&
			sampled->first_ns + NAMES_AGAIN_NS <= sampler->names_due_ns);
	case NAMES_OF_ALL:
		break;
	}
	return sampled->nr_named != NAMED_AT_END;
}

static bool is_wanted(const struct reading *reading, const struct snapshot_thread *thread)
{
	struct sampler *sampler = reading->sampler;

	return !thread->is_new && thread->copied && thread->ref.thread_id &&
	       needs_name(sampler, &sampler->threads[thread->slot], reading->wanted) &&
	       sampler_thread_of_ident(sampler, thread) == thread;
}

/* Read the kernel's name of a thread that had none yet, and tell the sink. */
static void name_late(struct reading *reading, struct sampled_thread *sampled)
{
	struct sample_sink *sink = reading->sink;

	sampler_identify_late(reading->sampler, sampled);
	if (sink && sink->ops->renamed && !sampled->info->is_named)
		sink->ops->renamed(sink, sampled->info);
}

/*
 * Put the next wanted threads of one interpreter into names, of those in front of *end, the
 * last of which is the oldest, and move *end to where to go on.
 */
static void collect(struct reading *reading, size_t *end, struct names *names)
{
	struct sampler *sampler = reading->sampler;
	const struct snapshot *snapshot = &sampler->snapshot;
	const size_t interpreter = snapshot->threads[*end - 1]->ref.interpreter;

	names->nr_threads = 0;
	for (; *end > 0 && names->nr_threads < NAMES_OF_PASS && reading->max_threads > 0; --*end) {
		const struct snapshot_thread *thread = snapshot->threads[*end - 1];
		struct sampled_thread *sampled;

		if (thread->ref.interpreter != interpreter)
			return;
		if (!is_wanted(reading, thread))
			continue;
		sampled = &sampler->threads[thread->slot];
		if (sampled->needs_os_name)
			name_late(reading, sampled);
		sampled->nr_named = reading->is_last ? NAMED_AT_END : sampled->nr_named + 1;
		names->threads[names->nr_threads++] = (struct named_thread){
			.ident = thread->ref.thread_id,
			.native_id = sampled->info->is_main ? 0 : (uint64_t)sampled->own_tid,
			.index = *end - 1,
		};
		reading->max_threads--;
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
static int read_names(struct reading *reading, struct names *names)
{
	struct sampler *sampler = reading->sampler;
	struct snapshot *snapshot = &sampler->snapshot;
	size_t index = snapshot->threads[names->threads[0].index]->ref.interpreter;
	struct snapshot_interpreter *interpreter = &snapshot->interpreters[index];
	int err = thread_names_read(&reading->memory.memory, sampler->build, interpreter->ref.addr,
				    &interpreter->name_hints, names->threads, names->nr_threads);

	for (size_t i = 0; !err && i < names->nr_threads; i++)
		rename_thread(sampler, &names->threads[i], reading->sink);
	return err == -ENOENT ? 0 : err;
}

/* Read what is wanted of the reading, the oldest threads first. */
static int read_wanted(struct reading *reading)
{
	struct names names;
	size_t end = reading->sampler->snapshot.nr_threads;
	int err = 0;

	while (!err && end > 0 && reading->max_threads > 0 && reading->memory.nr_left > 0) {
		collect(reading, &end, &names);
		if (names.nr_threads)
			err = read_names(reading, &names);
	}
	return err;
}

/* Begin a reading of max_threads names at most, until cut_ns or until *stop is set. */
static void reading_init(struct reading *reading, struct sampler *sampler, size_t max_threads,
			 const volatile sig_atomic_t *stop, uint64_t cut_ns)
{
	*reading = (struct reading){.sampler = sampler, .max_threads = max_threads};
	bounded_memory_init(&reading->memory, sampler->snapshot.memory,
			    NAMES_MAX_READS + max_threads * NAME_MAX_READS, stop, cut_ns);
}

int sampler_names_read(struct sampler *sampler)
{
	struct reading reading;

	reading_init(&reading, sampler, sampler->snapshot.nr_threads, NULL,
		     clock_now_ns() + NAMES_OF_DUMP_NS);
	return read_wanted(&reading);
}

int sampler_names_end(struct sampler *sampler, struct sample_sink *sink)
{
	struct reading reading;
	int err;

	/* *stop is what ends most runs. */
	reading_init(&reading, sampler, sampler->snapshot.nr_threads, NULL,
		     clock_now_ns() + NAMES_AT_END_NS);
	reading.sink = sink;
	reading.is_last = true;
	err = read_wanted(&reading);
	if (err)
		return err;
	reading.wanted = NAMES_OF_ALL;
	return read_wanted(&reading);
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
	struct reading reading;
	int err;

	if (!is_due && !sampler->has_new_threads)
		return 0;
	if (is_due)
		sampler->names_due_ns = now_ns;
	reading_init(&reading, sampler, NAMES_OF_TICK, sampler->snapshot.stop, sampler->cut_ns);
	reading.sink = sink;
	reading.wanted = is_due ? NAMES_OF_RECENT : NAMES_OF_NEW;
	err = read_wanted(&reading);
	/* There may be more: the next tick goes on with them. */
	if (err || !reading.max_threads)
		return err;
	sampler->has_new_threads = false;
	if (is_due)
		sampler->names_due_ns = 0;
	/* Those that come until then are read with them, if they are old enough. */
	if (!sampler->names_due_ns && has_recent_threads(sampler))
		sampler->names_due_ns = now_ns + NAMES_AGAIN_NS;
	return 0;
}
