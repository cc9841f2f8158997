/* SPDX-License-Identifier: MIT */
#include "cmd/dump/wait_text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "output/dump/thread_waiting.h"
#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/file_lock.h"
#include "procmem/sched/blocking_calls.h"

/* Descriptors of a poll that are read, and bits of a select. */
enum { POLL_MAX_READ = 1024, SELECT_MAX_BITS = 1024 };

enum { LINK_MAX_BYTES = 512, NAME_MAX_BYTES = 64 };

/* fcntl(2): F_SETLKW, and F_OFD_SETLKW, on 64-bit machines. */
enum { OP_SETLKW = 7, OP_OFD_SETLKW = 38 };

/* A thread and its process, for the words about it. */
struct waiter {
	struct wait_scene *scene;
	size_t index;
	const struct process *process; /* the tree's process index */
	struct remote_memory *memory;  /* of that */
	const uint64_t *arguments;
};

/* What is read once for all threads. */

void wait_scene_init(struct wait_scene *scene, const struct tree *tree)
{
	*scene = (struct wait_scene){.tree = tree};
}

void wait_scene_done(struct wait_scene *scene)
{
	for (uint32_t i = 0; i < scene->nr_namespaces; i++)
		socket_list_done(&scene->namespaces[i].sockets);
	free(scene->namespaces);
	pipe_ends_done(&scene->pipes);
	free(scene->locks);
	*scene = (struct wait_scene){.tree = NULL};
}

/* Returns the sockets of the network namespace of a process; NULL if out of memory. */
static const struct socket_list *read_sockets(struct wait_scene *scene,
					      const struct process *process)
{
	struct net_namespace wanted = {.inode = (uint64_t)process->pid};
	struct net_namespace *rows;
	struct stat status;

	/* Those of unknown namespaces are the sockets of the process alone. */
	if (fstatat(process->proc_fd, "ns/net", &status, 0) == 0)
		wanted = (struct net_namespace){.device = status.st_dev, .inode = status.st_ino};
	for (uint32_t i = 0; i < scene->nr_namespaces; i++)
		if (scene->namespaces[i].device == wanted.device &&
		    scene->namespaces[i].inode == wanted.inode)
			return &scene->namespaces[i].sockets;
	rows = array_reserve(scene->namespaces, scene->nr_namespaces + 1, &scene->max_namespaces,
			     sizeof(*rows));
	if (!rows)
		return NULL;
	scene->namespaces = rows;
	rows[scene->nr_namespaces++] = wanted;
	/* Of sockets that are missing for lack of memory the number is shown. */
	(void)socket_list_read(&rows[scene->nr_namespaces - 1].sockets, process);
	return &rows[scene->nr_namespaces - 1].sockets;
}

/* Returns the ends of a pipe that processes of the tree have, as far as memory suffices. */
static const struct pipe_end *find_pipe(struct wait_scene *scene, uint64_t inode, size_t *ret_nr)
{
	if (!scene->has_pipes)
		(void)pipe_ends_read(&scene->pipes, scene->tree);
	scene->has_pipes = true;
	return pipe_ends_find(&scene->pipes, inode, ret_nr);
}

/* Returns the locks of files, or NULL. */
static const char *read_locks(struct wait_scene *scene)
{
	if (!scene->has_locks)
		(void)file_locks_read(&scene->locks);
	scene->has_locks = true;
	return scene->locks;
}

/* Descriptors. */

/* Read the link of a descriptor. Returns false if there is none. */
static bool read_link(const struct process *process, uint64_t number, char link[LINK_MAX_BYTES])
{
	char name[NAME_MAX_BYTES];
	ssize_t length;

	(void)snprintf(name, sizeof(name), "fd/%" PRIu64, number);
	length = number <= INT_MAX ? readlinkat(process->proc_fd, name, link, LINK_MAX_BYTES - 1)
				   : -1;
	if (length < 0)
		return false;
	link[length] = '\0';
	return true;
}

/* Whether a descriptor may be read from: the owner's permissions of its link are those. */
static bool may_read(const struct process *process, uint64_t number)
{
	char name[NAME_MAX_BYTES];
	struct stat status;

	(void)snprintf(name, sizeof(name), "fd/%" PRIu64, number);
	return fstatat(process->proc_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (status.st_mode & S_IRUSR);
}

/* Append which processes of the tree have the other end of a pipe; itself only if no other has. */
static void append_pipe(struct text *text, const struct waiter *waiter, uint64_t number,
			uint64_t inode)
{
	enum { MAX_LISTED = 4 };
	const struct tree *tree = waiter->scene->tree;
	const bool reads = may_read(waiter->process, number);
	const struct pipe_end *ends;
	bool has_itself = false;
	size_t nr_ends, nr = 0, last = waiter->index;

	ends = find_pipe(waiter->scene, inode, &nr_ends);
	text_printf(text, "a pipe %s", reads ? "from" : "to");
	for (size_t i = 0; i < nr_ends; i++) {
		const size_t process = ends[i].process;

		if (!(reads ? ends[i].writes : ends[i].reads))
			continue;
		has_itself |= process == waiter->index;
		if (process == waiter->index || process == last)
			continue;
		last = process;
		if (nr++ == MAX_LISTED) {
			text_puts(text, " or …");
			return;
		}
		text_printf(text, "%s%d", nr > 1 ? " or " : " process ",
			    tree->taken[process]->target.process.pid);
	}
	if (!nr)
		text_puts(text, has_itself ? " this process itself"
					   : " a process outside of those shown");
}

/* Append what a descriptor refers to, after a blank and a preposition. */
static void append_descriptor(struct text *text, const struct waiter *waiter, uint64_t number)
{
	char link[LINK_MAX_BYTES];
	const struct socket_list *sockets;
	char name[SOCKET_NAME_MAX_BYTES];
	uint64_t inode;

	text_puts(text, " on ");
	if (!read_link(waiter->process, number, link)) {
		text_printf(text, "descriptor %" PRIu64, number);
	} else if ((inode = link_inode(link, "socket:[")) &&
		   (sockets = read_sockets(waiter->scene, waiter->process))) {
		socket_list_name(sockets, inode, name);
		text_puts(text, name);
	} else if ((inode = link_inode(link, "pipe:["))) {
		append_pipe(text, waiter, number, inode);
	} else {
		text_puts(text, link);
	}
}

/* Append a number of descriptors, or the only one. */
static void append_descriptors(struct text *text, const struct waiter *waiter, uint64_t nr,
			       uint64_t first)
{
	if (nr == 1)
		append_descriptor(text, waiter, first);
	else
		text_printf(text, " on %" PRIu64 " descriptors", nr);
}

static void append_poll(struct text *text, const struct waiter *waiter)
{
	const uint64_t nr = waiter->arguments[1];
	struct pollfd first;

	if (nr == 0 || nr > POLL_MAX_READ ||
	    remote_memory_read(waiter->memory, waiter->arguments[0], &first, sizeof(first)) ||
	    first.fd < 0)
		text_printf(text, " on %" PRIu64 " descriptors", nr);
	else
		append_descriptors(text, waiter, nr, (uint64_t)first.fd);
}

static void append_epoll(struct text *text, const struct waiter *waiter)
{
	char name[NAME_MAX_BYTES];
	cleanup_free char *info = NULL;
	uint64_t nr = 0, first = 0;
	size_t size;

	(void)snprintf(name, sizeof(name), "fdinfo/%" PRIu64, waiter->arguments[0]);
	if (process_read_whole_file(waiter->process, name, 1u << 24, &info, &size))
		return;
	for (const char *line = info; (line = strstr(line, "tfd:")); line++)
		if (nr++ == 0)
			first = strtoull(line + strlen("tfd:"), NULL, 10);
	append_descriptors(text, waiter, nr, first);
}

/* Append a time, rounded to what people compare. */
static void append_time(struct text *text, uint64_t time_ns)
{
	const double time_s = (double)time_ns / NS_PER_S;

	if (time_ns < NS_PER_S)
		text_printf(text, "%.0f ms", time_s * 1e3);
	else
		text_printf(text, "%.*f s", time_s < 10 ? 1 : 0, time_s);
}

/* Read a timespec, or a timeval with unit_ns 1000. Returns false if it is missing or invalid. */
static bool read_time(const struct waiter *waiter, uint64_t addr, uint64_t unit_ns,
		      uint64_t *ret_time_ns)
{
	uint64_t words[2];
	uint64_t time_ns;

	if (!addr || remote_memory_read(waiter->memory, addr, words, sizeof(words)) ||
	    words[1] >= NS_PER_S / unit_ns ||
	    __builtin_mul_overflow(words[0], NS_PER_S, &time_ns) ||
	    __builtin_add_overflow(time_ns, words[1] * unit_ns, ret_time_ns))
		return false;
	return true;
}

static void append_select(struct text *text, const struct waiter *waiter, bool has_timeval)
{
	const uint64_t nr_bits = waiter->arguments[0];
	uint64_t nr = 0, first = 0, time_ns;

	/* Without descriptors it sleeps: time.sleep() before 3.11. */
	if (!nr_bits && read_time(waiter, waiter->arguments[4], has_timeval ? 1000 : 1, &time_ns)) {
		text_puts(text, " for ");
		append_time(text, time_ns);
	}
	for (size_t set = 1; nr_bits && nr_bits <= SELECT_MAX_BITS && set <= 3; set++) {
		uint64_t bits[SELECT_MAX_BITS / 64] = {0};

		if (!waiter->arguments[set] ||
		    remote_memory_read(waiter->memory, waiter->arguments[set], bits,
				       (nr_bits + 63) / 64 * 8))
			continue;
		for (uint64_t i = 0; i < nr_bits; i++)
			if (bits[i / 64] >> i % 64 & 1 && nr++ == 0)
				first = i;
	}
	if (nr)
		append_descriptors(text, waiter, nr, first);
}

/*
 * Append how long a thread still sleeps, or how long it wanted to. Returns the length of the first,
 * which changes by itself.
 */
static size_t append_sleep(struct text *text, const struct waiter *waiter, enum call_kind kind)
{
	const size_t length = text->length;
	const uint64_t *arguments = waiter->arguments;
	const bool until = kind == CALL_CLOCK_SLEEP && arguments[1] == TIMER_ABSTIME;
	uint64_t time_ns, now_ns;

	if (!read_time(waiter, arguments[kind == CALL_CLOCK_SLEEP ? 2 : 0], 1, &time_ns))
		return 0;
	if (until && arguments[0] != CLOCK_MONOTONIC && arguments[0] != CLOCK_REALTIME)
		return 0;
	if (!until) {
		text_puts(text, " for ");
		append_time(text, time_ns);
		return 0;
	}
	now_ns = clock_ns((clockid_t)arguments[0]);
	text_puts(text, " for another ");
	append_time(text, time_ns > now_ns ? time_ns - now_ns : 0);
	return text->length - length;
}

/* Returns the number in a line "pos:\t4711" of a descriptor's fdinfo, or 0. */
static int64_t read_position(const struct waiter *waiter, uint64_t number)
{
	char name[NAME_MAX_BYTES];
	char text[256];

	(void)snprintf(name, sizeof(name), "fdinfo/%" PRIu64, number);
	if (process_read_file(waiter->process, name, text, sizeof(text)) < 0 ||
	    strncmp(text, "pos:", strlen("pos:")) != 0)
		return 0;
	return strtoll(text + strlen("pos:"), NULL, 10);
}

/* Set the kind and the bytes of a lock by fcntl(2): of the whole file if they cannot be read. */
static void read_flock(const struct waiter *waiter, int64_t file_bytes, struct wanted_lock *wanted)
{
	struct flock lock;
	int64_t start, end;

	wanted->start = 0;
	wanted->end = UINT64_MAX;
	if (remote_memory_read(waiter->memory, waiter->arguments[2], &lock, sizeof(lock)))
		return;
	wanted->is_shared = lock.l_type == F_RDLCK;
	start = lock.l_whence == SEEK_CUR   ? read_position(waiter, waiter->arguments[0])
		: lock.l_whence == SEEK_END ? file_bytes
					    : 0;
	if (__builtin_add_overflow(start, lock.l_start, &start) ||
	    __builtin_add_overflow(start, lock.l_len, &end))
		return;
	/* A negative length is that of the bytes in front. */
	wanted->start = (uint64_t)(end < start ? end : start);
	if (lock.l_len)
		wanted->end = (uint64_t)(end < start ? start : end) - 1;
}

/* Append a file that is locked, and who holds a lock that is in the way. */
static void append_lock(struct text *text, const struct waiter *waiter, bool is_flock)
{
	const uint64_t *arguments = waiter->arguments;
	char name[NAME_MAX_BYTES];
	struct stat status;
	const char *locks;
	pid_t holder;

	append_descriptor(text, waiter, arguments[0]);
	(void)snprintf(name, sizeof(name), "fd/%" PRIu64, arguments[0]);
	locks = read_locks(waiter->scene);
	if (!locks || fstatat(waiter->process->proc_fd, name, &status, 0))
		return;
	struct wanted_lock wanted = {
		.device_major = major(status.st_dev),
		.device_minor = minor(status.st_dev),
		.inode = status.st_ino,
		.is_flock = is_flock,
		.is_shared = is_flock && (arguments[1] & LOCK_SH),
		.end = UINT64_MAX,
	};

	if (!is_flock) {
		read_flock(waiter, status.st_size, &wanted);
		/* These belong to a process, the others to open files, of which it may have more. */
		wanted.not_pid = arguments[1] == OP_SETLKW ? waiter->process->pid : 0;
	}
	if (file_lock_find(locks, &wanted, &holder) == 0)
		text_printf(text, ", locked by process %d", holder);
}

static void append_process(struct text *text, uint64_t argument)
{
	const int32_t pid = (int32_t)argument;

	if (pid > 0)
		text_printf(text, " for process %d", pid);
	else
		text_puts(text, " for a child");
}

/* Append what the arguments refer to. Returns the length of a time at the end that runs out. */
static size_t append_arguments(struct text *text, const struct waiter *waiter,
			       const struct blocking_call *call)
{
	const uint64_t *arguments = waiter->arguments;

	switch (call->kind) {
	case CALL_DESCRIPTOR:
		append_descriptor(text, waiter, arguments[0]);
		break;
	case CALL_POLL:
		append_poll(text, waiter);
		break;
	case CALL_SELECT:
		append_select(text, waiter, strcmp(call->name, "select") == 0);
		break;
	case CALL_EPOLL:
		append_epoll(text, waiter);
		break;
	case CALL_WAIT4:
		append_process(text, arguments[0]);
		break;
	case CALL_WAITID:
		append_process(text, arguments[0] == 1 ? arguments[1] : 0);
		break;
	case CALL_SLEEP:
	case CALL_CLOCK_SLEEP:
		return append_sleep(text, waiter, call->kind);
	case CALL_FLOCK:
		append_lock(text, waiter, true);
		break;
	case CALL_FCNTL:
		if (arguments[1] == OP_SETLKW || arguments[1] == OP_OFD_SETLKW)
			append_lock(text, waiter, false);
		else
			append_descriptor(text, waiter, arguments[0]);
		break;
	case CALL_FUTEX:
	case CALL_OTHER:
		break;
	}
	return 0;
}

/* Append what is known without the call: the state, and where in the kernel it waits. */
static void append_state(struct text *text, const struct thread_wait *wait)
{
	if (thread_wait_is_frozen(wait))
		text_puts(text, "is frozen");
	else if (wait->wchan[0] && strchr("SDI", wait->state))
		text_printf(text, "waits in the kernel's %s", wait->wchan);
	else if (strchr("DTt", wait->state))
		text_puts(text, thread_state_text(wait->state));
}

void wait_text_append(struct text *text, struct wait_scene *scene, size_t i,
		      const struct looked_thread *thread, const char **ret_call,
		      size_t *ret_time_bytes)
{
	const struct waiter waiter = {
		.scene = scene,
		.index = i,
		.process = &scene->tree->taken[i]->target.process,
		.memory = &scene->tree->taken[i]->target.live.memory,
		.arguments = thread->call.arguments,
	};
	const struct blocking_call *call =
		thread->has_call ? blocking_call_find(thread->call.number) : NULL;
	const bool is_stopped = thread->wait.state == 'T' || thread->wait.state == 't' ||
				thread_wait_is_frozen(&thread->wait);

	*ret_call = NULL;
	*ret_time_bytes = 0;
	if (!thread->is_waiting)
		return;
	if (!thread->has_call || is_stopped || thread->call.number < 0) {
		if (thread->has_call && thread_wait_is_for_page(&thread->wait))
			text_puts(text, "waits for a page of its memory");
		else
			append_state(text, &thread->wait);
		return;
	}
	if (!call) {
		text_printf(text, "waits in system call %" PRId64, thread->call.number);
		return;
	}
	text_printf(text, "waits in %s", call->name);
	*ret_time_bytes = append_arguments(text, &waiter, call);
	*ret_call = call->name;
}
