/* SPDX-License-Identifier: MIT */
/*
 * The Python processes that descend from a process which is sampled alone: what -s would add. They
 * are looked for now and then, because they may be gone when the run ends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "procmem/tree/process_list.h"

/* Zeroed, nothing was looked at. */
struct unsampled_children {
	uint32_t nr;	   /* the most that any look has found */
	uint64_t pause_ns; /* between the last look and the next one */
	uint64_t next_ns;  /* time of the next look, CLOCK_MONOTONIC */

	/* The look that is under way, in steps. */
	struct process_listing listing;
	bool is_listed;
	size_t nr_judged;  /* of the list */
	uint32_t nr_found; /* of those */
};

/*
 * If it is time for a look, take a step of it, which is small enough for a tick: a look goes
 * through all processes of the machine. The first one begins after 50 ms, each other one twice as
 * long after the last. Errors are as if there were no children.
 */
void unsampled_children_update(struct unsampled_children *children, pid_t parent_pid,
			       uint64_t now_ns);

/* Look at once, to the end. */
void unsampled_children_look(struct unsampled_children *children, pid_t parent_pid);

/* Give up the look that is under way. nr stays. */
void unsampled_children_done(struct unsampled_children *children);
