/* SPDX-License-Identifier: MIT */
/*
 * The processes that exist, each with its parent at this moment: what is left to ask when events
 * were lost or have not begun. Source: proc_pid_stat(5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct parent_of {
	pid_t pid, parent_pid; /* in our PID namespace */
	uint64_t
		start_ticks; /* when pid was started; later ones have the same or a higher number */
};

/*
 * List all processes, the oldest first. Those that start or end during the call may be missing.
 * *ret_parents is allocated (free() it). Returns 0, -ENOMEM, or the errno of opening /proc.
 */
int parent_list(struct parent_of **ret_parents, size_t *ret_nr_parents);

/* Read the parent of one process or thread. Returns 0, -ESRCH if it has ended, or -EBADMSG. */
int parent_read(pid_t pid, struct parent_of *ret_parent);
