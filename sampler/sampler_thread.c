/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/python/frames.h"
#include "sampler/sampler_state.h"
#include "sampler/ticker.h"

/* So many links may be learnt in one tick for one thread; the rest at the next ones. */
enum { MAX_NEW_LINKS = 64 };

/*
 * So often a thread is copied again in one tick because of generators never seen before,
 * and so often at all: theirs are code objects that were never seen either.
 */
enum { MAX_RETAKES_FOR_LINKS = 4, MAX_RETAKES = 8 };

/* System calls of reading a file of /proc: it is opened, read to its end, and closed. */
enum { FILE_SYSCALLS = 4 };

/* Whether the target lives in another PID namespace than we; it never changes. */
static bool in_other_namespace(struct sampler *sampler)
{
	enum { NR_LINKS = 2 };
	bool other;

	if (sampler->pid_namespace == NAMESPACE_NOT_ASKED) {
		sampler->stats.other_syscalls += NR_LINKS;
		if (process_other_namespace(sampler->process, "pid", &other) != 0)
			other = false;
		sampler->pid_namespace = other ? NAMESPACE_OTHER : NAMESPACE_OURS;
	}
	return sampler->pid_namespace == NAMESPACE_OTHER;
}

static int compare_tasks(const void *a, const void *b)
{
	pid_t x = ((const struct process_thread *)a)->ns_tid;
	pid_t y = ((const struct process_thread *)b)->ns_tid;

	return (x > y) - (x < y);
}

/*
 * Have the kernel's list of threads. One reading serves all that are new with a thread
 * list: each costs two files for every thread there is.
 */
static void read_tasks(struct sampler *sampler)
{
	/* Of the folder: opened, made a stream (2), read in one piece and to the end, closed. */
	enum { FOLDER_SYSCALLS = 6, FILES_OF_A_THREAD = 2 };

	if (sampler->tasks_refresh == sampler->snapshot.nr_refreshes)
		return;
	free(sampler->tasks);
	sampler->tasks = NULL;
	sampler->nr_tasks = 0;
	sampler->tasks_refresh = sampler->snapshot.nr_refreshes;
	if (process_threads(sampler->process, &sampler->tasks, &sampler->nr_tasks) == 0)
		qsort(sampler->tasks, sampler->nr_tasks, sizeof(*sampler->tasks), compare_tasks);
	sampler->stats.other_syscalls +=
		FOLDER_SYSCALLS + sampler->nr_tasks * FILES_OF_A_THREAD * FILE_SYSCALLS;
}

/* The thread that knows itself as native_tid; NULL if there is none. */
static const struct process_thread *find_task(struct sampler *sampler, pid_t native_tid)
{
	const struct process_thread wanted = {.ns_tid = native_tid};

	read_tasks(sampler);
	if (!sampler->nr_tasks)
		return NULL;
	return bsearch(&wanted, sampler->tasks, sampler->nr_tasks, sizeof(wanted), compare_tasks);
}

/* Read the name of the thread info->tid. */
static void read_name(struct sampler *sampler, struct sample_thread *info)
{
	char path[64];
	size_t length;

	(void)snprintf(path, sizeof(path), "task/%d/comm", info->tid);
	(void)process_read_file(sampler->process, path, info->name, sizeof(info->name));
	length = strcspn(info->name, "\n");
	info->name[length < sizeof(info->name) ? length : sizeof(info->name) - 1] = '\0';
	sampler->stats.other_syscalls += FILE_SYSCALLS;
}

/* Give a thread its id in our namespace and its name: 0 and "" if they cannot be told. */
static void describe_thread(struct sampler *sampler, const struct snapshot_thread *thread,
			    struct sample_thread *info)
{
	const uint64_t native_tid = thread->ref.native_tid;

	info->interpreter_id = sampler->snapshot.interpreters[thread->ref.interpreter].ref.id;
	if (!native_tid || native_tid > INT32_MAX)
		return;
	info->tid = (pid_t)native_tid;
	if (!sampler->process)
		return;
	if (in_other_namespace(sampler)) {
		const struct process_thread *task = find_task(sampler, (pid_t)native_tid);

		info->tid = task ? task->tid : 0;
		if (task)
			memcpy(info->name, task->name, sizeof(info->name));
	} else {
		read_name(sampler, info);
	}
	info->is_main = info->tid == sampler->process->pid && info->interpreter_id == 0;
}

int sampler_thread_begin(struct sampler *sampler, const struct snapshot_thread *thread)
{
	struct sampled_thread *sampled;
	struct sample_thread *info;

	if (thread->slot >= sampler->nr_threads) {
		uint32_t nr = sampler->snapshot.nr_slots;
		struct sampled_thread *threads =
			reallocarray(sampler->threads, nr, sizeof(*threads));

		if (!threads)
			return -ENOMEM;
		memset(threads + sampler->nr_threads, 0,
		       (nr - sampler->nr_threads) * sizeof(*threads));
		sampler->threads = threads;
		sampler->nr_threads = nr;
	}
	if ((sampler->nr_infos & (sampler->nr_infos - 1)) == 0) {
		uint32_t nr = sampler->nr_infos ? sampler->nr_infos * 2 : 1;
		struct sample_thread **infos =
			reallocarray(sampler->infos, nr, sizeof(struct sample_thread *));

		if (!infos)
			return -ENOMEM;
		sampler->infos = infos;
	}
	info = calloc(1, sizeof(*info));
	if (!info)
		return -ENOMEM;
	info->id = sampler->nr_infos;
	sampler->infos[sampler->nr_infos++] = info;
	describe_thread(sampler, thread, info);
	sampled = &sampler->threads[thread->slot];
	sampled->info = info;
	sampled->nr_same = 0;
	sampled->nr_shown = 0;
	sampled->last_ns = sampler->last_tick_ns;
	return 0;
}

/* Walk a thread's copied stack once. */
static int walk_once(struct sampler *sampler, struct snapshot_thread *thread,
		     struct frame_walk *ret_walk)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	int err;

	*ret_walk = (struct frame_walk){
		.build = sampler->build,
		.codes = &sampler->codes,
		.clock = &thread->clock,
		.copy = &thread->stack,
		.list = &sampled->list,
	};
	/* A counter that is not where our table says proves nothing. */
	if (sampler->codes.next_version_unusable)
		thread->clock.has_next_version = false;
	err = sampler->build->traits.frames_on_heap ? frames_walk_heap(ret_walk)
						    : frames_walk_up(ret_walk);
	if (sampled->nr_shown > sampled->list.nr_unchanged)
		sampled->nr_shown = sampled->list.nr_unchanged;
	return err;
}

/* Walk a thread's stack, learning the links that turn out to be missing: *ret_nr_learnt. */
static int walk_links(struct sampler *sampler, struct snapshot_thread *thread,
		      struct frame_walk *walk, int *ret_nr_learnt)
{
	int err = walk_once(sampler, thread, walk);
	int i;

	for (i = 0; i < MAX_NEW_LINKS && err == -EAGAIN; i++) {
		err = stack_copy_add_link(&thread->stack, sampler->snapshot.memory,
					  &sampler->build->offsets, walk->wanted_link_addr);
		if (err) {
			walk->loss = LOSS_LINK;
			return err == -E2BIG ? -EBADMSG : err;
		}
		err = walk_once(sampler, thread, walk);
	}
	*ret_nr_learnt = i;
	if (err != -EAGAIN)
		return err;
	walk->loss = LOSS_LINK;
	return -EBADMSG;
}

/* Whether the walk came upon what had not been seen before the copy was taken. */
static bool needs_retake(const struct frame_walk *walk, int nr_learnt, int nr_retakes)
{
	if (walk->has_new_code)
		return nr_retakes < MAX_RETAKES;
	if (walk->nr_late || walk->moved)
		return nr_retakes < MAX_RETAKES_FOR_LINKS;
	return walk->trimmed && nr_learnt > 0 && nr_retakes < MAX_RETAKES_FOR_LINKS;
}

int sampler_thread_walk(struct sampler *sampler, struct snapshot_thread *thread,
			enum sample_loss *ret_loss)
{
	struct frame_walk walk;
	int nr_learnt = 0;
	int err = walk_links(sampler, thread, &walk, &nr_learnt);

	for (int i = 0; (!err || walk.moved) && needs_retake(&walk, nr_learnt, i); i++) {
		err = snapshot_retake(&sampler->snapshot, thread);
		if (err)
			return err;
		if (!thread->copied) {
			*ret_loss = LOSS_LINK;
			return -EBADMSG;
		}
		err = walk_links(sampler, thread, &walk, &nr_learnt);
	}
	if (!err && walk.has_new_code) {
		walk.loss = LOSS_CODE;
		err = -EBADMSG;
	}
	if (err == -EBADMSG)
		*ret_loss = walk.loss;
	sampler->threads[thread->slot].trimmed = !err && walk.trimmed;
	return err;
}

/* Put the frames that people see into sampled->frames. *ret_nr_frames or -ENOMEM. */
static int show_frames(const struct code_cache *codes, struct sampled_thread *sampled,
		       uint32_t *ret_nr_frames)
{
	const struct frame_list *list = &sampled->list;
	uint32_t first = sampled->nr_shown < list->nr_frames ? sampled->nr_shown : list->nr_frames;
	uint32_t nr;

	if (list->has_dying || sampled->shown_dying)
		first = 0;
	nr = first ? list->frames[first - 1].nr_begun : 0;
	if (list->nr_frames > sampled->max_frames) {
		struct frame *frames =
			reallocarray(sampled->frames, list->max_frames, sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		sampled->frames = frames;
		sampled->max_frames = list->max_frames;
	}
	for (uint32_t i = first; i < list->nr_frames; i++) {
		const struct walked_frame *walked = &list->frames[i];
		struct frame *frame = &sampled->frames[nr];
		int32_t line;

		if (!frame_visible(list, i))
			continue;
		line = code_line(codes, walked->code, walked->instr_ptr);
		if (nr >= sampled->nr_same || frame->function != walked->code->function ||
		    frame->line != line) {
			*frame = (struct frame){.function = walked->code->function, .line = line};
			if (sampled->nr_same > nr)
				sampled->nr_same = nr;
		}
		nr++;
	}
	sampled->nr_shown = list->nr_frames;
	sampled->nr_listed = list->nr_frames;
	sampled->listed_trimmed = sampled->trimmed;
	sampled->shown_dying = list->has_dying;
	*ret_nr_frames = nr;
	return 0;
}

int sampler_thread_emit(struct sampler *sampler, const struct snapshot_thread *thread,
			struct sample sample, struct sample_sink *sink)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	int err = show_frames(&sampler->codes, sampled, &sample.nr_frames);

	if (err)
		return err;
	sample.wall_ns = sampled->last_ns ? sample.time_ns - sampled->last_ns : 0;
	sample.thread = sampled->info;
	sample.frames = sampled->frames;
	sample.nr_unchanged =
		sampled->nr_same < sample.nr_frames ? sampled->nr_same : sample.nr_frames;
	if (thread->holds_gil)
		sample.flags |= SAMPLE_HOLDS_GIL;
	sampled->last_ns = sample.time_ns;
	err = sink->ops->sample(sink, &sample);
	sampled->nr_same = sample.nr_frames;
	if (!sampler->stats.samples++)
		sampler->stats.first_sample_ns = clock_now_ns();
	if (sampled->trimmed)
		sampler->stats.trimmed++;
	return err;
}
