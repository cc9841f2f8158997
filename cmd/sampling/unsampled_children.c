/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/unsampled_children.h"

#include <errno.h>

#include "cmd/ls/python_processes.h"
#include "procmem/process.h"

#define FIRST_PAUSE_NS 50000000u

/* What a step does, each in about 100 us. */
enum { STEP_ENTRIES = 8, STEP_ANCESTRIES = 64, STEP_PROCESSES = 2 };

static bool is_python(pid_t pid)
{
	struct process process;
	bool appears;

	if (process_open(pid, &process, NULL) != 0)
		return false;
	appears = python_appears(&process);
	process_close(&process);
	return appears;
}

/* Judge the next processes of the list. Returns whether there are more. */
static bool judge(struct unsampled_children *children, pid_t parent_pid)
{
	const struct process_list *list = &children->listing.list;
	unsigned int nr_looked_at = 0;

	for (unsigned int i = 0; i < STEP_ANCESTRIES; i++) {
		pid_t pid;

		if (children->nr_judged == list->nr_processes)
			return false;
		pid = list->processes[children->nr_judged++].pid;
		if (!process_list_descends(list, pid, parent_pid))
			continue;
		children->nr_found += is_python(pid);
		if (++nr_looked_at == STEP_PROCESSES)
			break;
	}
	return true;
}

/* Take a step of a look, which may be its first. Returns whether there are more. */
static bool step(struct unsampled_children *children, pid_t parent_pid)
{
	int err = 0;

	if (!children->listing.folder)
		err = process_listing_open(&children->listing);
	if (!err && !children->is_listed) {
		err = process_listing_step(&children->listing, STEP_ENTRIES);
		if (err == -EAGAIN)
			return true;
		children->is_listed = !err;
	}
	if (!err && judge(children, parent_pid))
		return true;
	if (children->nr_found > children->nr)
		children->nr = children->nr_found;
	unsampled_children_done(children);
	return false;
}

void unsampled_children_update(struct unsampled_children *children, pid_t parent_pid,
			       uint64_t now_ns)
{
	if (now_ns < children->next_ns)
		return;
	if (children->next_ns && step(children, parent_pid))
		return;
	children->pause_ns = children->pause_ns ? 2 * children->pause_ns : FIRST_PAUSE_NS;
	children->next_ns = now_ns + children->pause_ns;
}

void unsampled_children_look(struct unsampled_children *children, pid_t parent_pid)
{
	unsampled_children_done(children);
	while (step(children, parent_pid))
		;
}

void unsampled_children_done(struct unsampled_children *children)
{
	process_listing_close(&children->listing);
	children->is_listed = false;
	children->nr_judged = 0;
	children->nr_found = 0;
}
