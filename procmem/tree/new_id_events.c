/* SPDX-License-Identifier: MIT */
/*
 * Forks, found by looking at each process id that the kernel has given out since the last look. A
 * look at which there is none costs one read. Threads take ids, too; they are told apart and left
 * out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/procfile.h"
#include "procmem/tree/parent_list.h"
#include "procmem/tree/process_events.h"

/* When more ids than this are new, to list all processes is cheaper; so it is after a wrap. */
enum { MAX_NEW_IDS = 2048 };

/* Ids kept for a second look. Only those of the forks that are under way are needed. */
enum { MAX_UNSEEN = 64 };

/* The highest value of kernel.pid_max: proc_sys_kernel(5). */
enum { HIGHEST_MAX_ID = 1 << 22 };

struct new_id_events {
	struct process_events events;
	int last_id_fd;
	bool is_loadavg;	/* which file that is */
	pid_t max_id;		/* the highest possible one; the kernel then begins again */
	pid_t next_id, last_id; /* the ids of this look that are left: [next_id, last_id] */
	uint64_t nr_missed;
	/*
	 * The kernel gives out an id shortly before the process can be seen. So an id without a
	 * process is looked at again in the next look.
	 */
	pid_t unseen[MAX_UNSEEN];
	uint32_t nr_unseen, nr_second_look; /* the first nr_second_look of them are due now */
};

/* Returns the last id, or negative errno. */
static pid_t read_last_id(const struct new_id_events *ids)
{
	char text[128];
	const char *number = text;
	ssize_t nr_bytes = pread(ids->last_id_fd, text, sizeof(text) - 1, 0);

	if (nr_bytes <= 0)
		return -ENOTSUP;
	text[nr_bytes] = '\0';
	if (ids->is_loadavg) /* the last of five numbers */
		number = strrchr(text, ' ');
	const unsigned long id = number ? strtoul(number, NULL, 10) : 0;

	return id > 0 && id <= INT32_MAX ? (pid_t)id : -ENOTSUP;
}

/* Returns the highest id of a process that the kernel gives out. */
static pid_t read_max_id(void)
{
	char text[32];
	cleanup_close const int fd = procfile_open(AT_FDCWD, "/proc/sys/kernel/pid_max");
	const unsigned long id =
		fd >= 0 && procfile_read(fd, text, sizeof(text)) > 0 ? strtoul(text, NULL, 10) : 0;

	return id > 0 && id <= HIGHEST_MAX_ID ? (pid_t)id : HIGHEST_MAX_ID;
}

/* Returns 0 if id is a process, -ESRCH if there is none, or another errno if it is a thread. */
static int find_process(pid_t id)
{
	const int pidfd = (int)syscall(SYS_pidfd_open, id, 0);

	if (pidfd < 0)
		return -errno;
	(void)close(pidfd);
	return 0;
}

/* Begin to look at the ids that are new. Returns 0; -ENOENT: none; -E2BIG: too many. */
static int begin_look(struct new_id_events *ids)
{
	const pid_t last_id = read_last_id(ids);
	const pid_t nr_new = last_id - ids->last_id;

	if (last_id < 0)
		return -ENOENT;
	ids->nr_second_look = ids->nr_unseen;
	if (nr_new < 0 || nr_new > MAX_NEW_IDS) {
		ids->last_id = last_id;
		ids->next_id = last_id + 1;
		/* Those that still exist will be listed, so this is too many. */
		ids->nr_missed += (uint64_t)(nr_new < 0 ? nr_new + ids->max_id : nr_new);
		return -E2BIG;
	}
	ids->last_id = last_id;
	return nr_new || ids->nr_unseen ? 0 : -ENOENT;
}

/* Returns the next id of this look, or 0 after the last. */
static pid_t take_id(struct new_id_events *ids, bool *ret_is_second)
{
	*ret_is_second = ids->nr_second_look > 0;
	if (!ids->nr_second_look)
		return ids->next_id <= ids->last_id ? ids->next_id++ : 0;
	ids->nr_second_look--;
	ids->nr_unseen--;
	const pid_t id = ids->unseen[0];

	memmove(ids->unseen, ids->unseen + 1, ids->nr_unseen * sizeof(*ids->unseen));
	return id;
}

/* Returns whether id is a process whose parent is known. */
static bool look_at(struct new_id_events *ids, pid_t id, bool is_second,
		    struct process_event *ret_event)
{
	struct parent_of parent;
	int err = find_process(id);

	if (!err)
		err = parent_read(id, &parent);
	if (err == -ESRCH && !is_second && ids->nr_unseen < MAX_UNSEEN)
		ids->unseen[ids->nr_unseen++] = id;
	else
		ids->nr_missed += err == -ESRCH;
	if (err)
		return false;
	*ret_event = (struct process_event){
		.kind = PROCESS_FORKED,
		.pid = id,
		.parent_pid = parent.parent_pid,
		.wait_status = -1,
		.time_ns = clock_now_ns(),
	};
	return true;
}

static int new_id_next(struct process_events *events, struct process_event *ret_event)
{
	struct new_id_events *ids = (struct new_id_events *)events;
	const bool is_new_look = !ids->nr_second_look && ids->next_id > ids->last_id;
	bool is_second;
	pid_t id;

	if (is_new_look) {
		const int err = begin_look(ids);

		if (err == -E2BIG) {
			*ret_event = (struct process_event){.kind = PROCESS_EVENTS_LOST,
							    .wait_status = -1};
			return 0;
		}
		if (err)
			return err;
	}
	while ((id = take_id(ids, &is_second)))
		if (look_at(ids, id, is_second, ret_event))
			return 0;
	return -ENOENT;
}

static uint64_t nr_maybe_missed(const struct process_events *events)
{
	const struct new_id_events *ids = (const struct new_id_events *)events;

	return ids->nr_missed;
}

static void new_id_close(struct process_events *events)
{
	struct new_id_events *ids = (struct new_id_events *)events;

	(void)close(ids->last_id_fd);
	free(ids);
}

int process_events_open_new_ids(struct process_events **ret_events)
{
	static const struct process_events_ops ops = {
		.next = new_id_next,
		.nr_maybe_missed = nr_maybe_missed,
		.close = new_id_close,
	};
	struct new_id_events *ids = calloc(1, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	ids->events = (struct process_events){.ops = &ops, .fd = -1};
	ids->last_id_fd = procfile_open(AT_FDCWD, "/proc/sys/kernel/ns_last_pid");
	ids->is_loadavg = ids->last_id_fd < 0; /* a kernel without CONFIG_CHECKPOINT_RESTORE */
	if (ids->is_loadavg)
		ids->last_id_fd = procfile_open(AT_FDCWD, "/proc/loadavg");
	ids->last_id = ids->last_id_fd < 0 ? -ENOTSUP : read_last_id(ids);
	ids->next_id = ids->last_id + 1;
	ids->max_id = read_max_id();
	if (ids->last_id < 0 || find_process(getpid())) {
		if (ids->last_id_fd >= 0)
			(void)close(ids->last_id_fd);
		free(ids);
		return -ENOTSUP;
	}
	*ret_events = &ids->events;
	return 0;
}
