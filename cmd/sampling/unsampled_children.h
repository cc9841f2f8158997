/* SPDX-License-Identifier: MIT */
/*
 * The Python processes that descend from a process which is sampled alone: what -s would add. They
 * are looked for now and then, because they may be gone when the run ends.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Zeroed, nothing was looked at. */
struct unsampled_children {
	uint32_t nr;	   /* the most that any look has found */
	uint64_t pause_ns; /* between the last look and the next one */
	uint64_t next_ns;  /* time of the next look, CLOCK_MONOTONIC */
};

/*
 * If it is time for a look, look: after 50 ms at first, then after twice as long each time, because
 * a look reads what /proc shows of all processes. Errors are as if there were no children.
 */
void unsampled_children_update(struct unsampled_children *children, pid_t parent_pid,
			       uint64_t now_ns);

/* Look at once. */
void unsampled_children_look(struct unsampled_children *children, pid_t parent_pid);
