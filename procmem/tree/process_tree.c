/* SPDX-License-Identifier: MIT */
#include "procmem/tree/process_tree.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/descriptor_limit.h"
#include "procmem/tree/parent_list.h"
#include "procmem/tree/pid_table.h"
#include "procmem/tree/process_events.h"

/* At most this many events are handled per read, so that a tick is not late for long. */
enum { MAX_EVENTS = 1000 };

/* At most this many ends are fetched per system call. */
enum { MAX_READY = 64 };

/*
 * Passes over the processes of a running tree until all threads are followed. Each pass finds those
 * that were created during the one before, by threads that were not followed yet.
 */
enum { MAX_PASSES = 100 };

struct process_tree {
	pid_t root;
	enum process_tree_source source;
	struct process_events *events;
	struct pid_table members;
	/*
	 * Members without events of their ends, for which no pidfd could be opened. They are looked
	 * for at each read.
	 */
	uint32_t nr_unwatched;
	/*
	 * Members that may have ended. The first nr_over of them have; they are reported once the
	 * events up to now are.
	 */
	pid_t *ending;
	uint32_t nr_ending, max_ending, nr_over;
	bool must_list; /* list the processes that exist when the events are read */
	int epoll_fd;	/* the events, and pidfds with the id as their data */
	uint64_t opened_ns;
	struct process_tree_stats stats;
};

/* What a read needs. */
struct reading {
	struct process_tree *tree;
	process_tree_handler handler;
	void *context;
};

/* Membership. */

/* Returns the pidfd of a process, or negative errno. */
static int open_pidfd(pid_t pid)
{
	const int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return -errno;
	if (!descriptor_limit_is_near(fd))
		return fd;
	(void)close(fd);
	return -EMFILE;
}

/* Whether the process of a pidfd has ended. -1: it is not known to have. */
static bool pidfd_is_ready(int fd)
{
	struct pollfd ended = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&ended, 1, 0) > 0;
}

/* Await the end of a member. Returns 0, -ESRCH if it has ended, or another errno. */
static int watch(struct process_tree *tree, struct pid_entry *member)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)member->pid};
	const int fd = open_pidfd(member->pid);

	if (fd < 0)
		return fd;
	if (pidfd_is_ready(fd)) {
		(void)close(fd);
		return -ESRCH;
	}
	if (epoll_ctl(tree->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
		(void)close(fd);
		return -ENOMEM;
	}
	member->pidfd = fd;
	return 0;
}

/* Report that a member has ended, and forget it. */
static void end_member(const struct reading *reading, const struct pid_entry *member)
{
	struct process_tree *tree = reading->tree;
	const struct process_tree_change change = {
		.kind = PROCESS_ENDED,
		.pid = member->pid,
		.wait_status = member->wait_status,
		.time_ns = member->end_ns ? member->end_ns : clock_now_ns(),
	};

	if (member->pidfd >= 0)
		(void)close(member->pidfd);
	else
		tree->nr_unwatched -= !tree->events->reports_ends;
	pid_table_remove(&tree->members, member);
	tree->stats.nr_ended++;
	reading->handler(reading->context, &change);
}

/* Find out whether a member has ended before its end is reported. Returns 0 or -ENOMEM. */
static int suspect(struct process_tree *tree, pid_t pid)
{
	pid_t *ending = array_reserve(tree->ending, tree->nr_ending + 1, &tree->max_ending,
				      sizeof(*ending));

	if (!ending)
		return -ENOMEM;
	tree->ending = ending;
	ending[tree->nr_ending++] = pid;
	return 0;
}

/* Make a process a member, and report it. Returns 0 or -ENOMEM. */
static int join(const struct reading *reading, pid_t pid, pid_t parent_pid, uint64_t time_ns)
{
	struct process_tree *tree = reading->tree;
	struct pid_entry *member = pid_table_find(&tree->members, pid);
	const struct process_tree_change change = {
		.kind = PROCESS_JOINED,
		.pid = pid,
		.parent_pid = parent_pid,
		.wait_status = -1,
		.time_ns = time_ns,
	};
	int err;

	/* It may have been found in a list. Otherwise its id was another member's before. */
	if (member && !member->end_ns && !pidfd_is_ready(member->pidfd))
		return 0;
	if (member)
		end_member(reading, member);
	member = pid_table_add(&tree->members, pid);
	if (!member)
		return -ENOMEM;
	member->parent_pid = parent_pid;
	tree->stats.nr_joined++;
	reading->handler(reading->context, &change);
	if (tree->events->reports_ends)
		return 0;
	err = watch(tree, member);
	tree->nr_unwatched += err != 0; /* also for end_member() */
	return err == -ESRCH ? suspect(tree, pid) : 0;
}

/* Ends. */

/* Suspect those whose pidfd says so. Returns 0 or -ENOMEM. */
static int read_pidfds(struct process_tree *tree)
{
	struct epoll_event ready[MAX_READY];
	const int nr = epoll_wait(tree->epoll_fd, ready, MAX_READY, 0);
	int err = 0;

	for (int i = 0; i < nr && !err; i++)
		if (ready[i].data.u64)
			err = suspect(tree, (pid_t)ready[i].data.u64);
	return err;
}

/*
 * Judge a member that may have ended. When only its main thread has, its end is awaited. Without a
 * pidfd that thread's end is taken for the whole, as it is for nearly all.
 */
static bool is_over(struct process_tree *tree, struct pid_entry *member)
{
	if (member->pidfd >= 0)
		return pidfd_is_ready(member->pidfd);
	if (watch(tree, member))
		return true;
	member->end_ns = 0;
	member->wait_status = -1;
	return false;
}

/* Judge all that may have ended, and keep those that have. */
static void judge(struct process_tree *tree)
{
	uint32_t nr = tree->nr_over;

	for (uint32_t i = nr; i < tree->nr_ending; i++) {
		struct pid_entry *member = pid_table_find(&tree->members, tree->ending[i]);

		if (!member || member->is_over || !is_over(tree, member))
			continue;
		member->is_over = true;
		tree->ending[nr++] = member->pid;
	}
	tree->nr_ending = tree->nr_over = nr;
}

/* Report the ends that were judged; others may have come meanwhile. */
static void report_ends(const struct reading *reading)
{
	struct process_tree *tree = reading->tree;

	if (!tree->nr_over)
		return;
	for (uint32_t i = 0; i < tree->nr_over; i++) {
		struct pid_entry *member = pid_table_find(&tree->members, tree->ending[i]);

		if (member && member->is_over)
			end_member(reading, member);
	}
	tree->nr_ending -= tree->nr_over;
	memmove(tree->ending, tree->ending + tree->nr_over,
		tree->nr_ending * sizeof(*tree->ending));
	tree->nr_over = 0;
}

/* Whether a process has ended, even if its parent has not waited for it. */
static bool has_ended(pid_t pid)
{
	cleanup_close const int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? kill(pid, 0) && errno == ESRCH : pidfd_is_ready(fd);
}

/* Suspect the members without a pidfd that are gone. Returns 0 or -ENOMEM. */
static int suspect_gone(struct process_tree *tree)
{
	int err = 0;

	for (uint32_t i = 0; i < tree->members.max_entries && !err; i++) {
		const struct pid_entry *member = &tree->members.entries[i];

		if (member->pid && member->pidfd < 0 && has_ended(member->pid))
			err = suspect(tree, member->pid);
	}
	return err;
}

/* Events. */

static int handle_event(const struct reading *reading, const struct process_event *event)
{
	struct process_tree *tree = reading->tree;
	struct pid_entry *member = pid_table_find(&tree->members, event->pid);
	const struct process_tree_change executed = {
		.kind = PROCESS_HAS_EXECUTED,
		.pid = event->pid,
		.parent_pid = member ? member->parent_pid : 0,
		.wait_status = -1,
		.time_ns = event->time_ns,
	};

	switch (event->kind) {
	case PROCESS_FORKED:
		return pid_table_find(&tree->members, event->parent_pid)
			       ? join(reading, event->pid, event->parent_pid, event->time_ns)
			       : 0;
	case PROCESS_CALLED_EXEC:
		if (member)
			reading->handler(reading->context, &executed);
		return 0;
	case PROCESS_MAIN_THREAD_ENDED:
		if (!member || member->pidfd >= 0)
			return 0;
		member->end_ns = event->time_ns;
		member->wait_status = event->wait_status;
		return suspect(tree, member->pid);
	case PROCESS_EVENTS_LOST:
		tree->stats.nr_losses++;
		tree->must_list = true;
		return 0;
	}
	return 0;
}

/* Handle the events that are queued. Returns 0, -EAGAIN, or -ENOMEM if one could not be. */
static int read_events(const struct reading *reading)
{
	struct process_events *events = reading->tree->events;
	struct process_event event;
	int memory_err = 0;

	for (unsigned int i = 0; i < MAX_EVENTS; i++) {
		int err = events->ops->next(events, &event);

		if (err == -EAGAIN)
			return err;
		if (err)
			return memory_err;
		err = handle_event(reading, &event);
		memory_err = err ? err : memory_err;
	}
	return -EAGAIN;
}

/* Report the processes that exist and are not members yet. */
static int list_members(const struct reading *reading, uint64_t now_ns)
{
	struct process_tree *tree = reading->tree;
	cleanup_free struct parent_of *parents = NULL;
	uint64_t nr_before;
	size_t nr_parents;
	int err = parent_list(&parents, &nr_parents);

	if (err)
		return err;
	if (!tree->stats.nr_joined) {
		struct parent_of root = {.pid = tree->root};

		(void)parent_read(tree->root, &root);
		err = join(reading, root.pid, root.parent_pid, now_ns);
	}
	/*
	 * The oldest are first, so once is enough, but for those started within a tick. A member
	 * whose end is known is listed until its parent has waited for it.
	 */
	do {
		nr_before = tree->stats.nr_joined;
		for (size_t i = 0; i < nr_parents && !err; i++)
			if (pid_table_find(&tree->members, parents[i].parent_pid) &&
			    !pid_table_find(&tree->members, parents[i].pid))
				err = join(reading, parents[i].pid, parents[i].parent_pid, now_ns);
	} while (!err && tree->stats.nr_joined > nr_before);
	return err;
}

/* Handle events, then list what they do not tell. Returns 0, -EAGAIN or another errno. */
static int read_changes(const struct reading *reading)
{
	struct process_tree *tree = reading->tree;
	const uint64_t now_ns = clock_now_ns();
	const int err = read_events(reading);
	int list_err = 0;

	if (err == -EAGAIN)
		return err;
	if (tree->must_list)
		list_err = list_members(reading, now_ns);
	if (!list_err && (tree->must_list || tree->nr_unwatched))
		list_err = suspect_gone(tree);
	tree->must_list = false;
	return list_err ? list_err : err;
}

int process_tree_read(struct process_tree *tree, process_tree_handler handler, void *context)
{
	const struct reading reading = {tree, handler, context};
	int ends_err, err = 0;

	/* What is found is stamped with the time before all events; its end may be no event. */
	if (!tree->stats.nr_joined) {
		err = list_members(&reading, tree->opened_ns);
		if (!err)
			err = suspect_gone(tree);
	}
	/* Before the events, because this resets the readiness of perf's descriptors. */
	ends_err = read_pidfds(tree);
	if (!err)
		err = read_changes(&reading);
	if (err == -EAGAIN)
		return err;
	/* The threads that outlived a main thread may have forked since the events were read. */
	judge(tree);
	if (tree->nr_over && !err)
		err = read_events(&reading);
	if (err == -EAGAIN)
		return err;
	report_ends(&reading);
	if (!err)
		err = ends_err;
	return err || !(tree->nr_ending || tree->must_list) ? err : -EAGAIN;
}

/* Opening. */

/* Follow the threads of the tree as it is now, where the source does not see all processes. */
static int follow_all(struct process_tree *tree)
{
	struct process_events *events = tree->events;
	bool is_complete = !events->ops->follow;
	int err = 0;

	for (unsigned int i = 0; i < MAX_PASSES && !is_complete && !err; i++) {
		cleanup_free struct parent_of *parents = NULL;
		struct pid_table seen = {0};
		size_t nr_parents = 0;

		err = events->ops->follow(events, tree->root, &is_complete);
		if (!err)
			err = parent_list(&parents, &nr_parents);
		if (!err && !pid_table_add(&seen, tree->root))
			err = -ENOMEM;
		for (size_t k = 0; k < nr_parents && !err; k++) {
			bool is_known = true;

			if (!pid_table_find(&seen, parents[k].parent_pid))
				continue;
			err = events->ops->follow(events, parents[k].pid, &is_known);
			is_complete = is_complete && is_known;
			if (!err && !pid_table_add(&seen, parents[k].pid))
				err = -ENOMEM;
		}
		pid_table_done(&seen);
	}
	return err;
}

static int open_events(enum process_tree_source source, struct process_events **ret_events)
{
	switch (source) {
	case PROCESS_TREE_CONNECTOR:
		return process_events_open_connector(ret_events);
	case PROCESS_TREE_PERF_CPU:
		return process_events_open_perf(true, ret_events);
	case PROCESS_TREE_PERF_THREADS:
		return process_events_open_perf(false, ret_events);
	case PROCESS_TREE_NEW_IDS:
		return process_events_open_new_ids(ret_events);
	case NR_PROCESS_TREE_SOURCES:
		break;
	}
	return -ENOTSUP;
}

/* Open a source for the tree. */
static int use_source(struct process_tree *tree, enum process_tree_source source)
{
	struct epoll_event event = {.events = EPOLLIN}; /* no process has the id 0 */
	int err = open_events(source, &tree->events);

	if (err)
		return err;
	tree->source = source;
	err = follow_all(tree);
	if (!err && tree->events->fd >= 0 &&
	    epoll_ctl(tree->epoll_fd, EPOLL_CTL_ADD, tree->events->fd, &event))
		err = -errno;
	if (err) {
		process_events_close(tree->events);
		tree->events = NULL;
	}
	return err;
}

int process_tree_open(pid_t root, const struct process_tree_options *options,
		      struct process_tree **ret_tree)
{
	const unsigned int sources = options && options->sources ? options->sources : UINT32_MAX;
	struct process_tree *tree = calloc(1, sizeof(*tree));
	int err = -ENOTSUP;

	if (!tree)
		return -ENOMEM;
	tree->root = root;
	tree->opened_ns = clock_now_ns();
	tree->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (tree->epoll_fd < 0)
		err = -errno;
	else if (root <= 0 || (kill(root, 0) && errno == ESRCH))
		err = -ESRCH;
	for (int source = 0;
	     source < NR_PROCESS_TREE_SOURCES && err && err != -ESRCH && tree->epoll_fd >= 0;
	     source++)
		if (sources & PROCESS_TREE_SOURCE_BIT(source))
			err = use_source(tree, (enum process_tree_source)source);
	if (err) {
		process_tree_close(tree);
		return err == -ESRCH || err == -ENOMEM ? err : -ENOTSUP;
	}
	*ret_tree = tree;
	return 0;
}

void process_tree_close(struct process_tree *tree)
{
	if (!tree)
		return;
	for (uint32_t i = 0; i < tree->members.max_entries; i++)
		if (tree->members.entries[i].pid && tree->members.entries[i].pidfd >= 0)
			(void)close(tree->members.entries[i].pidfd);
	process_events_close(tree->events);
	pid_table_done(&tree->members);
	free(tree->ending);
	if (tree->epoll_fd >= 0)
		(void)close(tree->epoll_fd);
	free(tree);
}

int process_tree_fd(const struct process_tree *tree)
{
	return tree->epoll_fd;
}

enum process_tree_source process_tree_source(const struct process_tree *tree)
{
	return tree->source;
}

struct process_tree_stats process_tree_stats(const struct process_tree *tree)
{
	struct process_tree_stats stats = tree->stats;

	if (tree->events->ops->nr_maybe_missed)
		stats.nr_maybe_missed = tree->events->ops->nr_maybe_missed(tree->events);
	return stats;
}

bool process_tree_has(const struct process_tree *tree, pid_t pid)
{
	return pid_table_find(&tree->members, pid) != NULL;
}
