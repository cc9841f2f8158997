/* SPDX-License-Identifier: MIT */
/*
 * Identifies threads: the id, whether it is the main thread, the kernel's name, and the name that
 * Python's threading gives it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/bounded_memory.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "sampler/cpython/threads/threads.h"
#include "sampler/sampler_state.h"

/* System calls to read a file of /proc: it is opened, read to its end, and closed. */
enum { FILE_SYSCALLS = 4 };

/*
 * Names are looked up when a thread is first seen, once more this much later (by then threading
 * knows it and its starter has named it), and at the end of a run.
 */
#define NAMES_AGAIN_NS 100000000u
enum { NAME_READINGS = 2, NAMED_AT_END };

/* Time limits, for a dump and for the end of a run. */
#define NAMES_OF_DUMP_NS 1000000000u
#define NAMES_AT_END_NS	 100000000u

/*
 * Read the kernel's list of threads, once for all new threads of a thread list: it takes two
 * files for every thread.
 */
static void read_os_threads(struct sampler *sampler)
{
	/* For the folder: opened, made a stream (2), read in one piece and to the end, closed. */
	enum { FOLDER_SYSCALLS = 6, FILES_OF_A_THREAD = 2 };

	if (sampler->identities.os_threads_refresh == sampler->snapshot.nr_refreshes)
		return;
	free(sampler->identities.os_threads);
	sampler->identities.os_threads = NULL;
	sampler->identities.nr_os_threads = 0;
	sampler->identities.os_threads_refresh = sampler->snapshot.nr_refreshes;
	(void)process_threads(sampler->process, &sampler->identities.os_threads,
			      &sampler->identities.nr_os_threads);
	sampler->stats.other_syscalls += FOLDER_SYSCALLS + sampler->identities.nr_os_threads *
								   FILES_OF_A_THREAD *
								   FILE_SYSCALLS;
}

/* Read the kernel's name of thread sampled->info->tid, if this tick may read more names. */
static void read_os_name(struct sampler *sampler, struct sampled_thread *sampled)
{
	struct sample_thread *info = sampled->info;
	char path[PROCESS_THREAD_PATH_MAX_BYTES];
	size_t length;

	sampled->identity.needs_os_name =
		!sampler->identities.nr_os_names_left && info->tid != sampler->process->pid;
	if (sampled->identity.needs_os_name)
		return;
	if (sampler->identities.nr_os_names_left)
		sampler->identities.nr_os_names_left--;
	process_thread_path(path, info->tid, "comm");
	(void)process_read_file(sampler->process, path, info->os_name, sizeof(info->os_name));
	length = strcspn(info->os_name, "\n");
	info->os_name[length < sizeof(info->os_name) ? length : sizeof(info->os_name) - 1] = '\0';
	sampler->stats.other_syscalls += FILE_SYSCALLS;
}

/*
 * The id of a thread in its own namespace, from its pthread_t; 0: unknown. The place where the
 * target's C library keeps it is learnt from the existing threads; if they are too few to be
 * sure, it is learnt again when there are more.
 */
static pid_t read_pthread(struct sampler *sampler, uint64_t ident)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	cleanup_free uint64_t *idents = NULL;
	cleanup_free pid_t *tids = NULL;
	pid_t tid;

	if (!sampler->identities.pthreads.is_sure &&
	    sampler->identities.pthreads_refresh != snapshot->nr_refreshes) {
		sampler->identities.pthreads_refresh = snapshot->nr_refreshes;
		read_os_threads(sampler);
		idents = calloc(snapshot->nr_threads + 1, sizeof(*idents));
		tids = calloc(sampler->identities.nr_os_threads + 1, sizeof(*tids));
	}
	if (idents && tids) {
		for (size_t i = 0; i < snapshot->nr_threads; i++)
			idents[i] = snapshot->threads[i]->ref.thread_id;
		for (size_t i = 0; i < sampler->identities.nr_os_threads; i++)
			tids[i] = sampler->identities.os_threads[i].ns_tid;
		(void)pthread_layout_learn(snapshot->memory, idents, snapshot->nr_threads, tids,
					   sampler->identities.nr_os_threads,
					   &sampler->identities.pthreads);
	}
	if (!sampler->identities.pthreads.is_known ||
	    pthread_read_tid(snapshot->memory, &sampler->identities.pthreads, ident, &tid))
		return 0;
	return tid;
}

/* Its ident in its interpreter, as a key: a pthread_t has 47 bits, MAX_INTERPRETERS 12. */
static remote_addr ident_key(const struct thread_ref *ref)
{
	return ref->thread_id | (uint64_t)ref->interpreter << 48;
}

/*
 * The oldest thread state in an interpreter that names the same thread as this one. If that is
 * another state, this one has the ids of the thread that made it: up to 3.11 every state has them
 * until its own thread begins, and one of PyThreadState_New() keeps them.
 */
static const struct snapshot_thread *thread_of_ident(struct sampler *sampler,
						     const struct snapshot_thread *thread)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	const struct snapshot_thread *oldest;

	if (!thread->ref.thread_id)
		return thread;
	if (sampler->identities.idents_refresh != snapshot->nr_refreshes) {
		addr_map_done(&sampler->identities.idents);
		for (size_t i = snapshot->nr_threads; i-- > 0;)
			if (addr_map_put(&sampler->identities.idents,
					 ident_key(&snapshot->threads[i]->ref),
					 snapshot->threads[i]))
				return thread;
		sampler->identities.idents_refresh = snapshot->nr_refreshes;
	}
	oldest = addr_map_get(&sampler->identities.idents, ident_key(&thread->ref));
	return oldest ? oldest : thread;
}

/* Find out whose stacks all pending addresses are on, by the current mappings. */
static void resolve_all(struct sampler *sampler, const struct maps *maps)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	const pid_t pid = sampler->process->pid;
	cleanup_free uint64_t *ids = calloc(snapshot->nr_threads + 1, sizeof(*ids));
	struct stack_context context = {
		.memory = snapshot->instant.look.inner,
		.maps = maps,
		.thread_ids = ids,
		.nr_thread_ids = ids ? snapshot->nr_threads : 0,
	};

	for (size_t i = 0; i < context.nr_thread_ids; i++) {
		ids[i] = snapshot->threads[i]->ref.thread_id;
		if (snapshot->threads[i]->tid == pid)
			context.main_thread_id = ids[i];
	}
	for (size_t i = 0; i < snapshot->nr_threads && !snapshot_stopped(snapshot); i++) {
		struct snapshot_thread *thread = snapshot->threads[i];
		struct stack_thread named = {.thread_id = thread->ref.thread_id};
		pid_t tid;

		if (!thread->stack.pending_addr)
			continue;
		/* If several states have its id, any of them will do. */
		tid = thread_of_ident(sampler, thread)->tid;
		if (tid && process_has_thread(sampler->process, tid)) {
			named.is_main = tid == pid;
			named.is_other = tid != pid;
		}
		thread_stack_resolve(&thread->stack, &named, &context);
	}
}

void sampler_resolve_stacks(struct sampler *sampler, bool is_urgent)
{
	enum { SHARE = 50 };
	const struct snapshot *snapshot = &sampler->snapshot;
	const uint64_t begin_ns = sampler->stacks.has_pending ? clock_now_ns() : 0;
	struct maps maps;

	if (!sampler->stacks.has_pending || (!is_urgent && begin_ns < sampler->stacks.due_ns))
		return;
	sampler->stacks.has_pending = false;
	if (!maps_read(sampler->process, &maps)) {
		resolve_all(sampler, &maps);
		maps_done(&maps);
	} else {
		/* Fall back to evidence. */
		for (size_t i = 0; i < snapshot->nr_threads; i++)
			snapshot->threads[i]->stack.has_unknown_stack = true;
	}
	sampler->stats.other_syscalls += FILE_SYSCALLS;
	sampler->stacks.due_ns = begin_ns + (clock_now_ns() - begin_ns) * SHARE;
}

/* Set a thread's id in our namespace and its kernel name, from own_tid. */
static void find_thread(struct sampler *sampler, struct sampled_thread *sampled)
{
	struct sample_thread *info = sampled->info;

	if (!sampler->identities.is_in_other_namespace) {
		info->tid = sampled->identity.own_tid;
		read_os_name(sampler, sampled);
		return;
	}
	read_os_threads(sampler);
	info->tid = 0;
	for (size_t i = 0; !info->tid && i < sampler->identities.nr_os_threads; i++) {
		const struct process_thread *thread = &sampler->identities.os_threads[i];

		if (thread->ns_tid == sampled->identity.own_tid) {
			info->tid = thread->tid;
			memcpy(info->os_name, thread->name, sizeof(info->os_name));
		}
	}
}

/*
 * Use the process's only thread. In a child forked by C code a state has the id that its thread
 * had in the parent (3.11 and newer).
 */
static void adopt_only_thread(struct sampler *sampler, struct sampled_thread *sampled)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	pid_t only_tid;

	if (!process_has_one_thread(sampler->process))
		return;
	read_os_threads(sampler);
	only_tid = sampler->identities.nr_os_threads ? sampler->identities.os_threads[0].ns_tid : 0;
	/* If another state belongs to that thread, this one is a leftover. */
	for (size_t i = 0; only_tid && i < snapshot->nr_threads; i++)
		if (snapshot->threads[i]->ref.native_tid == (uint64_t)only_tid)
			return;
	sampled->identity.own_tid = only_tid;
	if (only_tid)
		find_thread(sampler, sampled);
}

void sampler_identify(struct sampler *sampler, const struct snapshot_thread *thread,
		      struct sampled_thread *sampled)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	const struct process *process = sampler->process;
	const uint64_t native_tid = thread->ref.native_tid;
	struct sample_thread *info = sampled->info;
	pid_t live_tid;

	sampled->identity.own_tid = 0;
	sampled->identity.needs_os_name = false;
	info->interpreter_id = snapshot->interpreters[thread->ref.interpreter].ref.id;
	info->ident = thread->ref.thread_id;
	if (thread_of_ident(sampler, thread) != thread)
		return;
	/* Its id in its own namespace; 0: unknown. */
	if (native_tid || !thread->ref.thread_id || !process)
		sampled->identity.own_tid = native_tid > INT32_MAX ? 0 : (pid_t)native_tid;
	else
		sampled->identity.own_tid = read_pthread(sampler, thread->ref.thread_id);
	if (!process) {
		info->tid = sampled->identity.own_tid;
		return;
	}
	if (sampled->identity.own_tid) {
		find_thread(sampler, sampled);
		if (!info->os_name[0] && !sampled->identity.needs_os_name)
			adopt_only_thread(sampler, sampled);
		/* An id read from the target's memory must be a thread of the process. */
		if (!native_tid && info->tid && !info->os_name[0] &&
		    !process_has_thread(process, info->tid)) {
			info->tid = 0;
			sampled->identity.needs_os_name = false;
		}
	} else if (!native_tid && sampler->identities.pthreads.is_known &&
		   thread == snapshot->threads[snapshot->nr_threads - 1] &&
		   process_live_thread(process, &live_tid) == 0 && live_tid != process->pid) {
		/*
		 * The main thread, which has ended: CPython keeps its thread state, the oldest
		 * one, but the id in the C library's struct is gone.
		 */
		info->tid = process->pid;
		read_os_name(sampler, sampled);
	}
	memcpy(info->name, info->os_name, sizeof(info->os_name));
	info->is_main = info->tid == process->pid && info->interpreter_id == 0;
}

/* Names. */

/* A reading of names, with its limits. */
struct reading {
	struct sampler *sampler;
	uint32_t max_named;	  /* skip threads that were looked up this often */
	bool is_last;		  /* at the end of a run */
	struct sample_sink *sink; /* may be NULL */
	struct bounded_memory memory;
	size_t max_threads; /* number of threads that may still be looked up */
};

static bool needs_name(const struct reading *reading, const struct snapshot_thread *thread)
{
	struct sampler *sampler = reading->sampler;
	const struct sampled_thread *sampled = &sampler->threads[thread->slot];

	/* A new thread may have no entry in threads yet: the tick that found it was cut off. */
	if (thread->is_new || !thread->was_copied || !thread->ref.thread_id ||
	    sampled->identity.nr_named >= reading->max_named)
		return false;
	/* The second lookup is due long enough after the first. */
	if (sampled->identity.nr_named && !reading->is_last &&
	    sampled->identity.first_ns + NAMES_AGAIN_NS > sampler->identities.names_due_ns)
		return false;
	return thread_of_ident(sampler, thread) == thread;
}

static void report_name(const struct reading *reading, const struct sample_thread *info)
{
	if (reading->sink && reading->sink->ops->renamed)
		reading->sink->ops->renamed(reading->sink, info);
}

/* Set a thread's name, and report it to sink if it has changed. */
static void rename_thread(const struct reading *reading, const struct named_thread *named)
{
	struct sampler *sampler = reading->sampler;
	const uint32_t slot = sampler->snapshot.threads[named->index]->slot;
	const pid_t own_tid = sampler->threads[slot].identity.own_tid;
	struct sample_thread *info = sampler->threads[slot].info;

	if (!named->name[0] || (info->is_named && strcmp(info->name, named->name) == 0))
		return;
	/*
	 * The thread may have ended, and a new one with its ident may have been named. Check the
	 * id in the pthread_t, which is only learnt if nothing else has the id, before 3.11.
	 */
	if (sampler->identities.pthreads.is_known && own_tid &&
	    read_pthread(sampler, named->ident) != own_tid)
		return;
	memcpy(info->name, named->name, sizeof(info->name));
	info->is_named = true;
	report_name(reading, info);
}

/*
 * Read the names of the next wanted threads of one interpreter before *end, oldest first, and
 * move *end to where to continue.
 */
static int read_some(struct reading *reading, size_t *end)
{
	struct sampler *sampler = reading->sampler;
	struct snapshot *snapshot = &sampler->snapshot;
	const size_t index = snapshot->threads[*end - 1]->ref.interpreter;
	struct snapshot_interpreter *interpreter = &snapshot->interpreters[index];
	struct named_thread named[MAX_NAMES_PER_TICK];
	size_t nr = 0;
	int err;

	for (; *end > 0 && nr < MAX_NAMES_PER_TICK && reading->max_threads > 0; --*end) {
		const struct snapshot_thread *thread = snapshot->threads[*end - 1];
		struct sampled_thread *sampled;

		if (thread->ref.interpreter != index)
			break;
		if (!needs_name(reading, thread))
			continue;
		sampled = &sampler->threads[thread->slot];
		if (sampled->identity.needs_os_name) {
			/*
			 * There was no room for the kernel's name, which is its only name so far.
			 */
			sampler->identities.nr_os_names_left = 1;
			read_os_name(sampler, sampled);
			if (!sampled->info->is_named) {
				memcpy(sampled->info->name, sampled->info->os_name,
				       sizeof(sampled->info->os_name));
				report_name(reading, sampled->info);
			}
		}
		sampled->identity.nr_named =
			reading->is_last ? NAMED_AT_END : sampled->identity.nr_named + 1;
		named[nr++] = (struct named_thread){
			.ident = thread->ref.thread_id,
			.native_id =
				sampled->info->is_main ? 0 : (uint64_t)sampled->identity.own_tid,
			.index = *end - 1,
		};
		reading->max_threads--;
	}
	if (!nr)
		return 0;
	err = thread_names_read(&reading->memory.memory, sampler->build, interpreter->ref.addr,
				&interpreter->name_hints, named, nr);
	for (size_t i = 0; !err && i < nr; i++)
		rename_thread(reading, &named[i]);
	return err == -ENOENT ? 0 : err;
}

/* Read the names of threads that were looked up less than max_named times, oldest first. */
static int read_wanted(struct reading *reading, uint32_t max_named)
{
	size_t end = reading->sampler->snapshot.nr_threads;
	int err = 0;

	reading->max_named = max_named;
	while (!err && end > 0 && reading->max_threads > 0 && reading->memory.nr_left > 0)
		err = read_some(reading, &end);
	return err;
}

/* Begin a reading of at most max_threads names, until cut_ns or until *stop is set. */
static void reading_init(struct reading *reading, struct sampler *sampler, size_t max_threads,
			 struct sample_sink *sink, const volatile sig_atomic_t *stop,
			 uint64_t cut_ns)
{
	*reading = (struct reading){.sampler = sampler, .max_threads = max_threads, .sink = sink};
	bounded_memory_init(&reading->memory, sampler->snapshot.memory,
			    NAMES_BASE_READS + max_threads * READS_PER_NAME, stop, cut_ns);
}

int sampler_names_read(struct sampler *sampler, struct sample_sink *sink, bool is_last)
{
	const uint64_t max_ns = is_last ? NAMES_AT_END_NS : NAMES_OF_DUMP_NS;
	struct reading reading;
	int err;

	/* Ignore *stop, which ends most runs. */
	reading_init(&reading, sampler, sampler->snapshot.nr_threads, sink, NULL,
		     clock_now_ns() + max_ns);
	reading.is_last = is_last;
	err = read_wanted(&reading, 1);
	return err || !is_last ? err : read_wanted(&reading, NAMED_AT_END);
}

int sampler_names_tick(struct sampler *sampler, struct sample_sink *sink, uint64_t now_ns)
{
	const struct snapshot *snapshot = &sampler->snapshot;
	const bool is_due =
		sampler->identities.names_due_ns && now_ns >= sampler->identities.names_due_ns;
	struct reading reading;
	int err;

	if (!is_due && !sampler->identities.has_new_threads)
		return 0;
	if (is_due)
		sampler->identities.names_due_ns = now_ns;
	reading_init(&reading, sampler, MAX_NAMES_PER_TICK, sink, sampler->snapshot.stop,
		     sampler->tick.cut_ns);
	err = read_wanted(&reading, is_due ? NAME_READINGS : 1);
	/* There may be more for the next tick. */
	if (err || !reading.max_threads)
		return err;
	sampler->identities.has_new_threads = false;
	if (is_due)
		sampler->identities.names_due_ns = 0;
	/*
	 * Some were looked up only once. Threads that start before the next reading are read with
	 * it, if they are old enough.
	 */
	for (size_t i = 0; !sampler->identities.names_due_ns && i < snapshot->nr_threads; i++)
		if (!snapshot->threads[i]->is_new &&
		    sampler->threads[snapshot->threads[i]->slot].identity.nr_named < NAME_READINGS)
			sampler->identities.names_due_ns = now_ns + NAMES_AGAIN_NS;
	return 0;
}
