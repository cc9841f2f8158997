/* SPDX-License-Identifier: MIT */
/* What changed between repeated dumps: which stacks appeared, went, or have other threads. */
#pragma once

#include <stdint.h>

#include "output/dump/thread_groups.h"
#include "output/text/text.h"

/* A group of an earlier dump. */
struct seen_group {
	char *stack;   /* owned; whole lines */
	char *threads; /* owned; its threads as printed */
	uint32_t nr_threads;
	uint64_t since_ns; /* when it was first seen with these threads */
};

/* What the last dump had. Empty when all zero. */
struct dump_changes {
	struct seen_group *groups; /* owned */
	uint32_t nr_groups;
};

/* Free and empty it. Accepts NULL. */
void dump_changes_done(struct dump_changes *changes);

/*
 * Append how the groups of a dump at now_ns differ from those of the dump before: each new stack
 * with its threads; each group that has other threads or is gone; and for how long the others have
 * not changed. Then remember these groups. Returns 0; or -ENOMEM, and nothing is remembered.
 */
int dump_changes_append(struct text *text, struct dump_changes *changes,
			const struct thread_groups *groups, uint64_t now_ns);
