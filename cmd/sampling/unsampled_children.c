/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/unsampled_children.h"

#include <stddef.h>

#include "cmd/ls/python_processes.h"
#include "procmem/cleanup.h"
#include "procmem/process.h"
#include "procmem/tree/process_list.h"

#define FIRST_PAUSE_NS 50000000u

void unsampled_children_update(struct unsampled_children *children, pid_t parent_pid,
			       uint64_t now_ns)
{
	if (now_ns < children->next_ns)
		return;
	if (children->next_ns)
		unsampled_children_look(children, parent_pid);
	children->pause_ns = children->pause_ns ? 2 * children->pause_ns : FIRST_PAUSE_NS;
	children->next_ns = now_ns + children->pause_ns;
}

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

void unsampled_children_look(struct unsampled_children *children, pid_t parent_pid)
{
	cleanup_free struct listed_process *descendants = NULL;
	struct process_list list = {0};
	size_t nr_descendants = 0;
	uint32_t nr = 0;

	if (process_list_read(&list) == 0)
		(void)process_list_descendants(&list, parent_pid, &descendants, &nr_descendants);
	for (size_t i = 0; i < nr_descendants; i++)
		nr += is_python(descendants[i].pid);
	if (nr > children->nr)
		children->nr = nr;
	process_list_done(&list);
}
