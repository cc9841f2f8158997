/* SPDX-License-Identifier: MIT */
/*
 * What changed between repeated dumps: which stacks appeared, went, have other threads, or threads
 * that wait for something else; and which threads have not run at all.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "output/dump/paragraphs.h"
#include "output/dump/thread_groups.h"
#include "output/dump/thread_waiting.h"
#include "output/text/text.h"

/* How a group differs from the one of the dump before with its stack. */
enum group_change {
	GROUP_NEW,     /* there was none */
	GROUP_THREADS, /* it had other threads */
	GROUP_WAITS,   /* a thread waited for something else */
	GROUP_RAN,     /* none of that, but a thread ran in between, or may have */
	GROUP_SAME,
};

/* A thread of an earlier dump. */
struct seen_thread {
	pid_t pid, tid;
	struct thread_waiting waiting; /* owned */
};

/* A group of an earlier dump, or a paragraph about tasks, which has no members. */
struct seen_group {
	char *key;		     /* owned; its stack, and its thread if it is alone */
	char *threads;		     /* owned; its threads, or tasks, as printed */
	struct seen_thread *members; /* owned; ascending by pid and tid */
	uint32_t nr_members;
	enum group_change change;
	uint64_t since_ns; /* since when it has been GROUP_SAME */
};

/* What the last dump had. Empty when all zero. */
struct dump_changes {
	struct seen_group *groups; /* owned; in the order of the dump */
	uint32_t nr_groups;
	const struct seen_group **by_key; /* owned, the array only; sorted */
};

/* Free and empty it. Accepts NULL. */
void dump_changes_done(struct dump_changes *changes);

/*
 * Append how the groups of a dump at now_ns differ from those of the dump before: each new stack
 * with its threads; each group that has other threads, or threads that wait for something else;
 * those that are gone; those whose stack is the same but whose threads ran, or may have; and for
 * how long the others have not changed. The same for paragraphs about tasks, of which it is never
 * known that they did not run. Then remember all this. Returns 0; or -ENOMEM, and nothing is
 * remembered.
 */
int dump_changes_append(struct text *text, struct dump_changes *changes,
			const struct thread_groups *groups, const struct paragraphs *tasks,
			uint64_t now_ns);
