/* SPDX-License-Identifier: MIT */
#include "sampler/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/base/addr_map.h"

static void thread_destroy(struct snapshot_thread *thread)
{
	if (!thread)
		return;
	witness_close(&thread->proof.witness);
	free(thread);
}

void snapshot_done(struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		thread_destroy(snapshot->threads[i]);
	free(snapshot->threads);
	free(snapshot->interpreters);
	look_memory_done(&snapshot->instant.look);
	*snapshot = (struct snapshot){0};
}

/* Where the GIL is that serves the interpreter of index i and may be its own. */
static struct gil_place gil_place_of(const struct snapshot *snapshot, size_t i)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	struct gil_place place = {.addr = 0};

	if (offsets->interpreter.gil_locked != OFFSET_ABSENT) {
		if (snapshot->build->free_threaded)
			place.holder_offset = GIL_ENABLED_BEFORE_HOLDER;
		place.addr = snapshot->interpreters[i].ref.addr +
			     offsets->interpreter.gil_last_holder - place.holder_offset;
		place.locked_offset =
			offsets->interpreter.gil_locked - offsets->interpreter.gil_last_holder;
	} else if (i + 1 != snapshot->nr_interpreters) {
		/*
		 * Before 3.12 there is one for all: that of the main one, the oldest and so the
		 * last.
		 */
	} else if (offsets->runtime.gil_locked != OFFSET_ABSENT) {
		place.addr = snapshot->runtime_addr + offsets->runtime.gil_last_holder;
		place.locked_offset =
			offsets->runtime.gil_locked - offsets->runtime.gil_last_holder;
	} else {
		place.addr = snapshot->current_thread_addr;
	}
	return place;
}

/* Copy the interpreters of a list that was read, few as a rule; false if out of memory. */
static bool refresh_interpreters(struct snapshot *snapshot, const struct thread_list *list)
{
	struct snapshot_interpreter *interpreters =
		calloc(list->nr_interpreters, sizeof(*interpreters));

	if (!interpreters)
		return false;
	for (size_t i = 0; i < list->nr_interpreters; i++) {
		for (size_t j = snapshot->nr_interpreters; j-- > 0;)
			if (snapshot->interpreters[j].ref.addr == list->interpreters[i].addr)
				interpreters[i] = snapshot->interpreters[j];
		interpreters[i].ref = list->interpreters[i];
	}
	free(snapshot->interpreters);
	snapshot->interpreters = interpreters;
	snapshot->nr_interpreters = list->nr_interpreters;
	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		interpreters[i].gil.place = gil_place_of(snapshot, i);
	return true;
}

/* The known thread of a reference, or NULL. Thread states are used again: the ids tell. */
static struct snapshot_thread *thread_find(const struct addr_map *known,
					   const struct thread_ref *ref)
{
	struct snapshot_thread *thread = addr_map_get(known, ref->addr);

	return thread && !thread->seen && !thread->has_ended &&
			       thread->ref.native_tid == ref->native_tid &&
			       thread->ref.thread_id == ref->thread_id &&
			       thread->ref.unique_id == ref->unique_id
		       ? thread
		       : NULL;
}

/*
 * Fill threads[] from the list: known ones are taken over, each with its slot, and the rest made,
 * with the lowest slots that none of those has. used has a byte for each slot there may be. False:
 * no memory.
 */
static bool refresh_threads(struct snapshot *snapshot, const struct thread_list *list,
			    struct snapshot_thread **threads, uint8_t *used)
{
	struct addr_map known = {0};
	bool complete = true;
	uint32_t slot = 0;

	for (size_t i = 0; complete && i < snapshot->nr_threads; i++)
		complete =
			!addr_map_put(&known, snapshot->threads[i]->ref.addr, snapshot->threads[i]);
	for (size_t i = 0; complete && i < list->nr_threads; i++) {
		threads[i] = thread_find(&known, &list->threads[i]);
		if (!threads[i])
			continue;
		threads[i]->seen = true;
		threads[i]->ref = list->threads[i];
		used[threads[i]->slot] = 1;
	}
	addr_map_done(&known);
	for (size_t i = 0; complete && i < list->nr_threads; i++) {
		if (threads[i])
			continue;
		threads[i] = calloc(1, sizeof(**threads));
		if (!threads[i])
			return false;
		while (used[slot])
			slot++;
		used[slot] = 1;
		snapshot->nr_slots += slot == snapshot->nr_slots;
		threads[i]->ref = list->threads[i];
		threads[i]->is_new = true;
		threads[i]->slot = slot;
	}
	return complete;
}

/* Read the lists, of this program and no other. Errors of thread_list_read(). */
static int read_list(struct snapshot *snapshot, struct thread_list *ret_list)
{
	struct thread_list list = {0};
	int err = thread_list_read(snapshot->memory, snapshot->build, snapshot->runtime_addr,
				   snapshot->is_still, &list);
	/* Behind the read, and also where that failed: an exec may be why. */
	int check_err = remote_memory_check(snapshot->memory);

	if (!err && check_err)
		thread_list_done(&list);
	if (err || check_err)
		return check_err ? check_err : err;
	snapshot->list_err = list.err;
	*ret_list = list;
	return 0;
}

int snapshot_refresh(struct snapshot *snapshot)
{
	struct thread_list list;
	cleanup_free struct snapshot_thread **threads = NULL;
	cleanup_free uint8_t *used = NULL;
	bool complete;
	int err = read_list(snapshot, &list);

	if (err)
		return err;
	threads = calloc(list.nr_threads + 1, sizeof(struct snapshot_thread *));
	used = calloc(snapshot->nr_slots + list.nr_threads + 1, 1);
	complete = threads && used && refresh_interpreters(snapshot, &list) &&
		   refresh_threads(snapshot, &list, threads, used);
	if (complete) {
		/* Threads that are not in the list end here. */
		for (size_t i = 0; i < snapshot->nr_threads; i++)
			if (!snapshot->threads[i]->seen)
				thread_destroy(snapshot->threads[i]);
		free(snapshot->threads);
		snapshot->threads = take_ptr(threads);
		snapshot->nr_threads = list.nr_threads;
		snapshot->nr_refreshes++;
		snapshot->stale = false;
	}
	for (size_t i = 0; threads && i < list.nr_threads; i++)
		if (threads[i] && !threads[i]->seen) /* made here */
			thread_destroy(threads[i]);
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		snapshot->threads[i]->seen = false;
	thread_list_done(&list);
	return complete ? 0 : -ENOMEM;
}
