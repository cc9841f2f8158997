/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/session_children.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/print.h"
#include "cmd/sampling/session_process.h"
#include "procmem/array.h"
#include "procmem/clock.h"
#include "procmem/descriptor_limit.h"

enum exit_status session_children_open(struct session *session, struct message *reterr)
{
	int err;

	descriptor_limit_raise(); /* for several of each process */
	err = process_tree_open(session->root.pid, NULL, &session->tree);

	if (!err)
		return EXIT_OK;
	if (err == -ESRCH)
		message_set(reterr, "process %d does not exist", session->root.pid);
	else
		message_set(reterr, "cannot follow the processes that process %d starts: %s",
			    session->root.pid, strerror(-err));
	return EXIT_ERROR;
}

/* Returns the index of the first child whose id is not below pid, or the number of children. */
static uint32_t position(const struct session_children *children, pid_t pid)
{
	uint32_t from = 0, to = children->nr;

	while (from < to) {
		const uint32_t middle = from + (to - from) / 2;

		if (children->list[middle]->pid < pid)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* The process with that id; NULL: it is not sampled or searched. */
static struct session_process *find(struct session *session, pid_t pid)
{
	const struct session_children *children = &session->children;
	const uint32_t index = position(children, pid);

	if (pid == session->root.pid)
		return &session->root;
	return index < children->nr && children->list[index]->pid == pid ? children->list[index]
									 : NULL;
}

/*
 * Whether a child has ended that has no sample and may have been a Python: no search has read its
 * mappings and found none. A process that has ended has no mappings.
 */
static bool was_too_short(const struct session_process *child)
{
	const bool was_read =
		child->target.maps.nr_mappings && child->search.schedule.err == -ENOENT;

	return child->course.after == TARGET_ENDED && !child->has_samples && !was_read;
}

/* Add a child; there is room for it. */
static void insert(struct session_children *children, struct session_process *child)
{
	const uint32_t index = position(children, child->pid);

	memmove(children->list + index + 1, children->list + index,
		(children->nr++ - index) * sizeof(struct session_process *));
	children->list[index] = child;
}

/* Forget a child. */
static void drop(struct session_children *children, uint32_t index)
{
	struct session_process *child = children->list[index];

	memmove(children->list + index, children->list + index + 1,
		(--children->nr - index) * sizeof(struct session_process *));
	children->nr_too_short += was_too_short(child);
	session_process_close(child);
	free(child);
}

/*
 * Append a child, and begin to sample or search it. Returns 0; -ESRCH if it has ended already; or
 * an error that ends the run.
 */
static int add_child(struct session *session, pid_t pid, pid_t parent_pid, uint64_t forked_ns)
{
	struct session_children *children = &session->children;
	struct session_process **list = array_reserve(
		children->list, children->nr + 1, &children->max, sizeof(struct session_process *));
	struct session_process *child = calloc(1, sizeof(*child));
	struct message why = {0};
	const struct target_wait wait = {
		.wait_ns = TARGET_STARTING_NS,
		.for_any = true,
		.stop = session->options.wait.stop,
	};

	if (list)
		children->list = list;
	if (!list || !child) {
		free(child);
		return -ENOMEM;
	}
	child->pid = pid;
	child->parent_pid = parent_pid;
	if (target_open_process(pid, &child->target, &why) != EXIT_OK) {
		session_process_close(child);
		free(child);
		/* It may be another user's: EPERM. */
		if (!process_tree_has(session->tree, pid) || (kill(pid, 0) != 0 && errno == ESRCH))
			return -ESRCH;
		session_process_refuse(session, pid, &why);
		return 0;
	}
	if (session->options.full_command)
		target_show_arguments(&child->target);
	insert(children, child);
	return session_process_fork(session, child, find(session, parent_pid), forked_ns, &wait);
}

/* A process has begun. */
static int join(struct session *session, pid_t pid, pid_t parent_pid, uint64_t time_ns)
{
	int err;

	if (pid == session->root.pid)
		return 0;
	err = add_child(session, pid, parent_pid, time_ns);
	session->children.nr_too_short += err == -ESRCH;
	return err == -ESRCH ? 0 : err;
}

/* A process has called exec. */
static int execute(struct session *session, pid_t pid, pid_t parent_pid, uint64_t time_ns)
{
	struct session_process *process = find(session, pid);
	int err;

	if (!process) {
		/* One that has ended was counted when it joined, or ran no Python before. */
		err = add_child(session, pid, parent_pid, 0);
		return err == -ESRCH ? 0 : err;
	}
	return session_process_executed(session, process, time_ns);
}

/* A process has ended. */
static int end(struct session *session, pid_t pid, uint64_t time_ns)
{
	struct session_children *children = &session->children;
	struct session_process *process = find(session, pid);
	int err;

	if (!process)
		return 0;
	err = session_process_exited(session, process, time_ns);
	if (process != &session->root)
		drop(children, position(children, pid));
	return err;
}

/* A change of the tree, for process_tree_read(). */
static void handle_change(void *context, const struct process_tree_change *change)
{
	struct session *session = context;
	int err = 0;

	if (session->children.err)
		return;
	switch (change->kind) {
	case PROCESS_JOINED:
		err = join(session, change->pid, change->parent_pid, change->time_ns);
		break;
	case PROCESS_HAS_EXECUTED:
		err = execute(session, change->pid, change->parent_pid, change->time_ns);
		break;
	case PROCESS_ENDED:
		err = end(session, change->pid, change->time_ns);
		break;
	}
	session->children.err = err;
}

/* Search a process if that is due. Lowers *ret_next_ns, and returns errors that end the run. */
static int search(struct session *session, struct session_process *process, uint64_t now_ns,
		  uint64_t *ret_next_ns, bool *ret_is_searched)
{
	const int err = session_process_search(session, process, now_ns);

	if (process->state != PROCESS_SEARCHED)
		return err;
	*ret_is_searched = true;
	if (process->search.next_ns < *ret_next_ns)
		*ret_next_ns = process->search.next_ns;
	return err;
}

int session_children_update(struct session *session, uint64_t now_ns, uint64_t *ret_next_ns,
			    bool *ret_is_over)
{
	struct session_children *children = &session->children;
	struct process_tree_stats stats;
	bool is_searched = false;
	int err;

	/* First, so that what is found belongs to the program that was reported last. */
	err = process_tree_read(session->tree, handle_change, session);
	*ret_next_ns = err == -EAGAIN ? now_ns : UINT64_MAX;
	if (err == -EAGAIN)
		err = 0;
	if (!err && !children->err)
		err = search(session, &session->root, now_ns, ret_next_ns, &is_searched);
	for (uint32_t i = children->nr; !err && !children->err && i-- > 0;) {
		struct session_process *child = children->list[i];

		err = search(session, child, now_ns, ret_next_ns, &is_searched);
		if (child->state == PROCESS_UNSAMPLED)
			drop(children, i);
	}
	stats = process_tree_stats(session->tree);
	*ret_is_over = !is_searched && stats.nr_joined && stats.nr_joined == stats.nr_ended;
	return err ? err : children->err;
}

int session_children_ended(struct session *session, const struct sampler *sampler,
			   enum sampler_end end, int err)
{
	for (uint32_t i = 0; i < session->children.nr; i++) {
		struct session_process *child = session->children.list[i];

		if (child->sampler == sampler)
			return session_process_ended(session, child, end, err);
	}
	return err;
}

int session_children_record(struct session *session)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < session->children.nr; i++)
		if (session->children.list[i]->is_recorded)
			err = session_process_record(session, session->children.list[i]);
	return err;
}

void session_children_close(struct session *session)
{
	struct session_children *children = &session->children;

	while (children->nr)
		drop(children, children->nr - 1);
	free(children->list);
	children->list = NULL;
	children->max = 0;
}
