/* SPDX-License-Identifier: MIT */
#include "procmem/sched/task_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/descriptor_limit.h"
#include "procmem/procfile.h"

/* Enough for three numbers of at most 20 digits, and for a name and 52 fields. */
enum { SCHEDSTAT_MAX_BYTES = 80, STAT_MAX_BYTES = 1280 };

/* Fields of a stat file from the state, field 3, to the CPU, field 39. */
enum { FIELDS_TO_CPU = 36 };

/* Returns a descriptor, or a negative errno. */
static int open_file(const struct process *process, pid_t tid, const char *file)
{
	char name[PROCESS_TASK_NAME_MAX_BYTES];
	int fd;

	process_task_name(name, tid, file);
	fd = procfile_open(process->proc_fd, name);
	if (fd < 0 || !descriptor_limit_is_near(fd))
		return fd;
	(void)close(fd);
	return -EMFILE;
}

static int read_text(int fd, char *text, size_t max_bytes)
{
	const ssize_t length = pread(fd, text, max_bytes - 1, 0);

	if (length <= 0)
		return -ESRCH;
	text[length] = '\0';
	return 0;
}

int task_runs_open_count(const struct process *process, pid_t tid)
{
	cleanup_close int fd = open_file(process, tid, "schedstat");
	uint64_t nr_runs;
	int err = fd < 0 ? fd : task_runs_read_count(fd, &nr_runs);

	if (err == -ENOENT || (!err && !nr_runs))
		return -ENOTSUP;
	return err ? err : take_fd(fd);
}

int task_runs_read_count(int fd, uint64_t *ret_nr_runs)
{
	char text[SCHEDSTAT_MAX_BYTES];
	const char *last;
	int err = read_text(fd, text, sizeof(text));

	if (err)
		return err;
	last = strrchr(text, ' ');
	if (!last)
		return -EBADMSG;
	*ret_nr_runs = strtoull(last + 1, NULL, 10);
	return 0;
}

int task_runs_open(const struct process *process, pid_t tid, struct task_runs *ret_runs)
{
	struct task_runs runs = TASK_RUNS_CLOSED;
	int err;

	runs.stat_fd = open_file(process, tid, "stat");
	if (runs.stat_fd < 0)
		return runs.stat_fd == -ENOENT ? -ESRCH : runs.stat_fd;
	runs.schedstat_fd = task_runs_open_count(process, tid);
	err = runs.schedstat_fd < 0 ? runs.schedstat_fd : 0;
	if (err)
		task_runs_close(&runs);
	else
		*ret_runs = runs;
	return err;
}

void task_runs_close(struct task_runs *runs)
{
	if (runs->schedstat_fd >= 0)
		(void)close(runs->schedstat_fd);
	if (runs->stat_fd >= 0)
		(void)close(runs->stat_fd);
	*runs = TASK_RUNS_CLOSED;
}

int task_runs_read(const struct task_runs *runs, uint64_t *ret_nr_runs)
{
	return task_runs_read_count(runs->schedstat_fd, ret_nr_runs);
}

int task_now_parse(const char *text, struct task_now *ret_now)
{
	/* The name may contain anything, blanks and parentheses included. */
	const char *field = strrchr(text, ')');
	char *end;
	struct task_now now;
	unsigned long cpu;

	if (!field || field[1] != ' ' || !field[2])
		return -EBADMSG;
	field += 2;
	now.state = *field;
	for (int i = 0; field && i < FIELDS_TO_CPU; i++) {
		field = strchr(field, ' ');
		field = field ? field + 1 : NULL;
	}
	if (!field)
		return -EBADMSG;
	cpu = strtoul(field, &end, 10);
	if (end == field || cpu >= UINT32_MAX)
		return -EBADMSG;
	now.cpu = (uint32_t)cpu;
	*ret_now = now;
	return 0;
}

int task_runs_now(const struct task_runs *runs, struct task_now *ret_now)
{
	char text[STAT_MAX_BYTES];
	int err = read_text(runs->stat_fd, text, sizeof(text));

	return err ? err : task_now_parse(text, ret_now);
}
