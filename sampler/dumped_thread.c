/* SPDX-License-Identifier: MIT */
#include "sampler/dumped_thread.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/cleanup.h"
#include "sampler/python/loop_entries.h"
#include "sampler/sampler_state.h"

/* What stands for the innermost loop of a state that has none in the copy, outside of all others. */
#define NO_LOOP UINT64_MAX

/* The first state of the thread from index on; NULL: there is none. */
static struct snapshot_thread *find_state(const struct sampler *sampler, pid_t tid, size_t *index)
{
	const struct snapshot *snapshot = &sampler->snapshot;

	for (; *index < snapshot->nr_threads; ++*index) {
		struct snapshot_thread *thread = snapshot->threads[*index];

		if (!thread->is_new && sampler->threads[thread->slot].info->tid == tid)
			return snapshot->threads[(*index)++];
	}
	return NULL;
}

static const struct frame_list *list_of(const struct sampler *sampler,
					const struct snapshot_thread *thread)
{
	return &sampler->threads[thread->slot].list;
}

/* What a state that was looked at has for its innermost loop from sp_addr on. 0; -ENOMEM, … */
static int find_loop(const struct sampler *sampler, const struct snapshot_thread *thread,
		     remote_addr sp_addr, remote_addr *ret_loop_addr)
{
	const struct frame_list *list = list_of(sampler, thread);
	cleanup_free struct loop_entry *entries = NULL;
	remote_addr loop_addr = NO_LOOP;
	int err = loop_entries_read(&sampler->codes, thread->ref.addr, list, true, &entries);

	if (err)
		return err;
	for (uint32_t i = 0; i < list->nr_frames; i++)
		if (entries[i].c_addr >= sp_addr && entries[i].c_addr < loop_addr)
			loop_addr = entries[i].c_addr;
	*ret_loop_addr = loop_addr;
	return 0;
}

/* The state of which the loop is innermost; a stack that is in motion is one that runs. */
static int choose(struct sampler *sampler, pid_t tid, remote_addr sp_addr,
		  struct snapshot_thread **chosen)
{
	struct snapshot_thread *thread;
	remote_addr least_addr = NO_LOOP;
	size_t index = 0;

	while ((thread = find_state(sampler, tid, &index))) {
		remote_addr loop_addr;
		int err = sampler_thread_look(sampler, thread, false);

		if (err == -EBADMSG)
			*chosen = thread;
		if (!err)
			err = find_loop(sampler, thread, sp_addr, &loop_addr);
		if (err == -ENOENT)
			continue; /* it has ended */
		if (err)
			return err;
		if (loop_addr < least_addr) {
			least_addr = loop_addr;
			*chosen = thread;
		}
	}
	return 0;
}

int dumped_thread_look(struct sampler *sampler, pid_t tid, remote_addr sp_addr,
		       struct snapshot_thread **ret_thread, const struct frame_list **ret_late)
{
	static const struct frame_list not_known;
	size_t index = 0;
	struct snapshot_thread *thread = find_state(sampler, tid, &index);
	int err;

	if (!thread)
		return -ENOENT;
	if (find_state(sampler, tid, &index))
		err = choose(sampler, tid, sp_addr, &thread);
	else
		err = sampler_thread_look(sampler, thread, false);
	if (err && err != -EBADMSG)
		return err;
	*ret_thread = thread;
	*ret_late = err ? &not_known : list_of(sampler, thread);
	return 0;
}
