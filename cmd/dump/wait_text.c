/* SPDX-License-Identifier: MIT */
#include "cmd/dump/wait_text.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/file_lock.h"
#include "procmem/sched/blocking_calls.h"
#include "procmem/socket_name.h"

/* Descriptors of a poll that are read, and bits of a select. */
enum { POLL_MAX_READ = 1024, SELECT_MAX_BITS = 1024 };

/* The descriptors of a process that are searched for the other end of a pipe. */
enum { PIPE_MAX_DESCRIPTORS = 4096 };

enum { LINK_MAX_BYTES = 512, NAME_MAX_BYTES = 64 };

/* fcntl(2): F_SETLKW, and F_OFD_SETLKW, on 64-bit machines. */
enum { OP_SETLKW = 7, OP_OFD_SETLKW = 38 };

/* A thread and its process, for the words about it. */
struct scene {
	const struct tree *tree;
	size_t index;
	const struct process *process; /* tree's process index */
	struct remote_memory *memory;  /* of that */
	const uint64_t *arguments;
};

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

/* Whether a descriptor of a process may be written to, or else read from. */
static bool has_access(const struct process *process, const char *number, bool writes)
{
	char name[NAME_MAX_BYTES];
	char text[1024];
	const char *flags;
	unsigned int value;

	(void)snprintf(name, sizeof(name), "fdinfo/%.16s", number);
	if (process_read_file(process, name, text, sizeof(text)) < 0)
		return false;
	flags = strstr(text, "flags:");
	if (!flags || sscanf(flags, "flags: %o", &value) != 1)
		return false;
	return (value & O_ACCMODE) == O_RDWR ||
	       (value & O_ACCMODE) == (writes ? O_WRONLY : O_RDONLY);
}

/* Whether a process has the end of a pipe that is written to, or else read from. */
static bool has_end(const struct process *process, const char *pipe, bool writes)
{
	const int fd = openat(process->proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool found = false;

	if (!folder && fd >= 0)
		(void)close(fd);
	for (int i = 0; folder && !found && i < PIPE_MAX_DESCRIPTORS && (entry = readdir(folder));
	     i++) {
		char link[LINK_MAX_BYTES];
		const ssize_t length =
			readlinkat(dirfd(folder), entry->d_name, link, sizeof(link) - 1);

		if (length < 0)
			continue;
		link[length] = '\0';
		found = strcmp(link, pipe) == 0 && has_access(process, entry->d_name, writes);
	}
	if (folder)
		(void)closedir(folder);
	return found;
}

/* Append which processes of the tree have the other end of a pipe; itself only if no other has. */
static void append_pipe(struct text *text, const struct scene *scene, uint64_t number,
			const char *pipe)
{
	enum { MAX_LISTED = 4 };
	char digits[NAME_MAX_BYTES];
	size_t nr = 0;
	bool reads;

	(void)snprintf(digits, sizeof(digits), "%" PRIu64, number);
	reads = has_access(scene->process, digits, false);
	text_printf(text, "a pipe %s", reads ? "from" : "to");
	for (size_t i = 0; i < scene->tree->nr_processes; i++) {
		const struct process *other = &scene->tree->taken[i]->target.process;

		if (i == scene->index || !has_end(other, pipe, reads))
			continue;
		if (nr++ == MAX_LISTED) {
			text_puts(text, " or …");
			return;
		}
		text_printf(text, "%s%d", nr > 1 ? " or " : " process ", other->pid);
	}
	if (!nr && has_end(scene->process, pipe, reads))
		text_puts(text, " this process itself");
	else if (!nr)
		text_puts(text, " a process outside of those shown");
}

/* Append what a descriptor refers to, after a blank and a preposition. */
static void append_descriptor(struct text *text, const struct scene *scene, uint64_t number)
{
	char link[LINK_MAX_BYTES];
	char name[SOCKET_NAME_MAX_BYTES];
	uint64_t inode;

	text_puts(text, " on ");
	if (!read_link(scene->process, number, link)) {
		text_printf(text, "descriptor %" PRIu64, number);
	} else if (sscanf(link, "socket:[%" SCNu64 "]", &inode) == 1) {
		socket_name_read(scene->process, inode, name);
		text_puts(text, name);
	} else if (strncmp(link, "pipe:[", strlen("pipe:[")) == 0) {
		append_pipe(text, scene, number, link);
	} else {
		text_puts(text, link);
	}
}

/* Append a number of descriptors, or the only one. */
static void append_descriptors(struct text *text, const struct scene *scene, uint64_t nr,
			       uint64_t first)
{
	if (nr == 1)
		append_descriptor(text, scene, first);
	else
		text_printf(text, " on %" PRIu64 " descriptors", nr);
}

static void append_poll(struct text *text, const struct scene *scene)
{
	const uint64_t nr = scene->arguments[1];
	struct pollfd first;

	if (nr == 0 || nr > POLL_MAX_READ ||
	    remote_memory_read(scene->memory, scene->arguments[0], &first, sizeof(first)) ||
	    first.fd < 0)
		text_printf(text, " on %" PRIu64 " descriptors", nr);
	else
		append_descriptors(text, scene, nr, (uint64_t)first.fd);
}

static void append_epoll(struct text *text, const struct scene *scene)
{
	char name[NAME_MAX_BYTES];
	cleanup_free char *info = NULL;
	uint64_t nr = 0, first = 0;
	size_t size;

	(void)snprintf(name, sizeof(name), "fdinfo/%" PRIu64, scene->arguments[0]);
	if (process_read_whole_file(scene->process, name, 1u << 24, &info, &size))
		return;
	for (const char *line = info; (line = strstr(line, "tfd:")); line++)
		if (nr++ == 0)
			(void)sscanf(line, "tfd: %" SCNu64, &first);
	append_descriptors(text, scene, nr, first);
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
static bool read_time(const struct scene *scene, uint64_t addr, uint64_t unit_ns,
		      uint64_t *ret_time_ns)
{
	uint64_t words[2];
	uint64_t time_ns;

	if (!addr || remote_memory_read(scene->memory, addr, words, sizeof(words)) ||
	    words[1] >= NS_PER_S / unit_ns ||
	    __builtin_mul_overflow(words[0], NS_PER_S, &time_ns) ||
	    __builtin_add_overflow(time_ns, words[1] * unit_ns, ret_time_ns))
		return false;
	return true;
}

static void append_select(struct text *text, const struct scene *scene, bool has_timeval)
{
	const uint64_t nr_bits = scene->arguments[0];
	uint64_t nr = 0, first = 0, time_ns;

	/* Without descriptors it sleeps: time.sleep() before 3.11. */
	if (!nr_bits && read_time(scene, scene->arguments[4], has_timeval ? 1000 : 1, &time_ns)) {
		text_puts(text, " for ");
		append_time(text, time_ns);
	}
	for (size_t set = 1; nr_bits && nr_bits <= SELECT_MAX_BITS && set <= 3; set++) {
		uint64_t bits[SELECT_MAX_BITS / 64] = {0};

		if (!scene->arguments[set] ||
		    remote_memory_read(scene->memory, scene->arguments[set], bits,
				       (nr_bits + 63) / 64 * 8))
			continue;
		for (uint64_t i = 0; i < nr_bits; i++)
			if (bits[i / 64] >> i % 64 & 1 && nr++ == 0)
				first = i;
	}
	if (nr)
		append_descriptors(text, scene, nr, first);
}

/*
 * Append how long a thread still sleeps, or how long it wanted to. Returns the length of the first,
 * which changes by itself.
 */
static size_t append_sleep(struct text *text, const struct scene *scene, enum call_kind kind)
{
	const size_t length = text->length;
	const uint64_t *arguments = scene->arguments;
	const bool until = kind == CALL_CLOCK_SLEEP && arguments[1] == TIMER_ABSTIME;
	uint64_t time_ns, now_ns;

	if (!read_time(scene, arguments[kind == CALL_CLOCK_SLEEP ? 2 : 0], 1, &time_ns))
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

/* Append a file that is locked, and who holds the lock. */
static void append_lock(struct text *text, const struct scene *scene)
{
	char name[NAME_MAX_BYTES];
	struct stat status;
	pid_t holder;

	append_descriptor(text, scene, scene->arguments[0]);
	(void)snprintf(name, sizeof(name), "fd/%" PRIu64, scene->arguments[0]);
	if (fstatat(scene->process->proc_fd, name, &status, 0))
		return;
	const struct locked_file file = {
		.device_major = major(status.st_dev),
		.device_minor = minor(status.st_dev),
		.inode = status.st_ino,
	};

	if (file_lock_holder(&file, &holder) == 0)
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
static size_t append_arguments(struct text *text, const struct scene *scene,
			       const struct blocking_call *call)
{
	const uint64_t *arguments = scene->arguments;

	switch (call->kind) {
	case CALL_DESCRIPTOR:
		append_descriptor(text, scene, arguments[0]);
		break;
	case CALL_POLL:
		append_poll(text, scene);
		break;
	case CALL_SELECT:
		append_select(text, scene, strcmp(call->name, "select") == 0);
		break;
	case CALL_EPOLL:
		append_epoll(text, scene);
		break;
	case CALL_WAIT4:
		append_process(text, arguments[0]);
		break;
	case CALL_WAITID:
		append_process(text, arguments[0] == 1 ? arguments[1] : 0);
		break;
	case CALL_SLEEP:
	case CALL_CLOCK_SLEEP:
		return append_sleep(text, scene, call->kind);
	case CALL_FLOCK:
		append_lock(text, scene);
		break;
	case CALL_FCNTL:
		if (arguments[1] == OP_SETLKW || arguments[1] == OP_OFD_SETLKW)
			append_lock(text, scene);
		else
			append_descriptor(text, scene, arguments[0]);
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
	if (wait->state == 'T' || wait->state == 't')
		text_puts(text, wait->state == 'T' ? "is stopped" : "is stopped by a tracer");
	else if (wait->wchan[0] && strchr("SDI", wait->state))
		text_printf(text, "waits in the kernel's %s", wait->wchan);
	else if (wait->state == 'D')
		text_puts(text, "waits uninterruptibly");
}

void wait_text_append(struct text *text, const struct tree *tree, size_t i,
		      const struct looked_thread *thread, const char **ret_call,
		      size_t *ret_time_bytes)
{
	const struct scene scene = {
		.tree = tree,
		.index = i,
		.process = &tree->taken[i]->target.process,
		.memory = &tree->taken[i]->target.live.memory,
		.arguments = thread->call.arguments,
	};
	const struct blocking_call *call =
		thread->has_call ? blocking_call_find(thread->call.number) : NULL;
	const bool is_stopped = thread->wait.state == 'T' || thread->wait.state == 't';

	*ret_call = NULL;
	*ret_time_bytes = 0;
	if (!thread->is_waiting)
		return;
	if (!thread->has_call || is_stopped) {
		append_state(text, &thread->wait);
		return;
	}
	if (thread->call.number < 0) {
		text_puts(text, "waits for a page of its memory");
		return;
	}
	if (!call) {
		text_printf(text, "waits in system call %" PRId64, thread->call.number);
		return;
	}
	text_printf(text, "waits in %s", call->name);
	*ret_time_bytes = append_arguments(text, &scene, call);
	*ret_call = call->name;
}
