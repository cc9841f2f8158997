/* SPDX-License-Identifier: MIT */
/*
 * The processes of a tree: a root and all its descendants, as they come and go. A process belongs
 * to the tree from its fork on, whatever becomes of its parent: daemons that lost theirs stay.
 * Threads are no processes; clone(2), vfork(2) and posix_spawn(3) count as fork(2) does.
 *
 * The kernel reports each fork where that is allowed (procmem/tree/process_events.h), so that none
 * is missed, however short a process lives. Without that, new process ids are looked at in each
 * process_tree_read(), which misses processes that come and go between two reads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How a tree learns of processes, the preferred first. */
enum process_tree_source {
	PROCESS_TREE_CONNECTOR,	   /* the proc connector */
	PROCESS_TREE_PERF_CPU,	   /* perf events of each CPU */
	PROCESS_TREE_PERF_THREADS, /* perf events that threads and processes inherit */
	PROCESS_TREE_NEW_IDS,	   /* process ids given out since the last read */
	NR_PROCESS_TREE_SOURCES,
};

/* The bit of a source in process_tree_options.sources. */
#define PROCESS_TREE_SOURCE_BIT(source) (1u << (source))

struct process_tree_options {
	unsigned int sources; /* those that may be used; 0: all */
};

enum process_tree_change_kind {
	PROCESS_JOINED,	      /* forked by a member; or found, at the start or after a loss */
	PROCESS_HAS_EXECUTED, /* it has called exec(2), with success */
	PROCESS_ENDED,	      /* all its threads have; its parent may not have waited for it yet */
};

struct process_tree_change {
	enum process_tree_change_kind kind;
	pid_t pid; /* in our PID namespace */
	/* that forked it; if it was found, the one at that time; 0 for PROCESS_ENDED */
	pid_t parent_pid;
	int wait_status;  /* of PROCESS_ENDED, as of wait(2); -1: unknown */
	uint64_t time_ns; /* CLOCK_MONOTONIC: when it happened, or when it was found */
};

/*
 * Exact, except for the last. A process that has ended before a read is still reported, as joined
 * and ended.
 */
struct process_tree_stats {
	uint64_t nr_joined; /* with the root */
	uint64_t nr_ended;
	uint64_t nr_losses; /* times that events were lost; processes were then listed */
	/*
	 * PROCESS_TREE_NEW_IDS: processes and threads of this PID namespace that ended unseen, so
	 * an upper bound of those missed. 0 for the other sources.
	 */
	uint64_t nr_maybe_missed;
};

struct process_tree;

typedef void (*process_tree_handler)(void *context, const struct process_tree_change *change);

/*
 * Follow the process root and its descendants. The first process_tree_read() reports those that
 * exist as joined, each parent before its children, with the root first. Options may be NULL: all
 * sources are tried in order.
 *
 * To miss nothing, open the tree before the root runs. PROCESS_TREE_PERF_THREADS wakes and counts
 * by events of the calling thread, which must live as long as the tree; and it loses processes that
 * a program with the set-user-ID bit starts. The rights that opening needs are not needed later.
 *
 * Returns 0; -ESRCH if there is no such process; -ENOTSUP if no source can be used; or -ENOMEM.
 * process_tree_close() accepts NULL.
 */
int process_tree_open(pid_t root, const struct process_tree_options *options,
		      struct process_tree **ret_tree);
void process_tree_close(struct process_tree *tree);

/*
 * Returns a descriptor for poll(2), owned by the tree. It is readable when there are events of the
 * proc connector, of any processes; when a ring of perf is half full, as to be woken for each event
 * would cost the target more than the events do; and when a process has ended whose end no event
 * tells. With any other source than the connector read the tree at each tick, too.
 */
int process_tree_fd(const struct process_tree *tree);

/* Returns how the tree learns of processes. */
enum process_tree_source process_tree_source(const struct process_tree *tree);

/* Returns what the tree has counted. */
struct process_tree_stats process_tree_stats(const struct process_tree *tree);

/* Whether pid is a member that has not ended, by the changes reported so far. */
bool process_tree_has(const struct process_tree *tree, pid_t pid);

/*
 * Report what changed since the last call, in order, by calling handler with context. It must not
 * call the tree. Never blocks. Returns 0; -EAGAIN after 1,000 events or if more is known already:
 * call again, now or at the next tick; or -ENOMEM: processes were left out.
 */
int process_tree_read(struct process_tree *tree, process_tree_handler handler, void *context);
