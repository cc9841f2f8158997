/* SPDX-License-Identifier: MIT */
#include "procmem/sched/run_count.h"

#include <errno.h>
#include <unistd.h>

#include "procmem/cleanup.h"
#include "procmem/descriptor_limit.h"
#include "procmem/procfile.h"

/* Returns a descriptor, or a negative errno. */
static int open_file(const struct process *process, pid_t tid, const char *file)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	int fd;

	process_thread_path(name, tid, file);
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

int run_count_open_fd(const struct process *process, pid_t tid)
{
	cleanup_close int fd = open_file(process, tid, "schedstat");
	uint64_t nr_runs;
	int err = fd < 0 ? fd : run_count_read_fd(fd, &nr_runs);

	if (err == -ENOENT || (!err && !nr_runs))
		return -ENOTSUP;
	return err ? err : take_fd(fd);
}

int run_count_read_fd(int fd, uint64_t *ret_nr_runs)
{
	char text[THREAD_SCHEDSTAT_MAX_BYTES];
	int err = read_text(fd, text, sizeof(text));

	return err ? err : thread_schedstat_parse(text, ret_nr_runs);
}

int run_count_open(const struct process *process, pid_t tid, struct run_count *ret_runs)
{
	struct run_count runs = RUN_COUNT_CLOSED;
	int err;

	runs.stat_fd = open_file(process, tid, "stat");
	if (runs.stat_fd < 0)
		return runs.stat_fd == -ENOENT ? -ESRCH : runs.stat_fd;
	runs.schedstat_fd = run_count_open_fd(process, tid);
	err = runs.schedstat_fd < 0 ? runs.schedstat_fd : 0;
	if (err)
		run_count_close(&runs);
	else
		*ret_runs = runs;
	return err;
}

void run_count_close(struct run_count *runs)
{
	if (runs->schedstat_fd >= 0)
		(void)close(runs->schedstat_fd);
	if (runs->stat_fd >= 0)
		(void)close(runs->stat_fd);
	*runs = RUN_COUNT_CLOSED;
}

int run_count_read(const struct run_count *runs, uint64_t *ret_nr_runs)
{
	return run_count_read_fd(runs->schedstat_fd, ret_nr_runs);
}

int run_count_read_stat(const struct run_count *runs, struct thread_stat *ret_stat)
{
	char text[THREAD_STAT_MAX_BYTES];
	int err = read_text(runs->stat_fd, text, sizeof(text));

	return err ? err : thread_stat_parse(text, ret_stat);
}

uint64_t run_count_read_once(const struct process *process, pid_t tid)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	char text[THREAD_SCHEDSTAT_MAX_BYTES];
	uint64_t nr_runs;

	process_thread_path(name, tid, "schedstat");
	if (process_read_file(process, name, text, sizeof(text)) < 0 ||
	    thread_schedstat_parse(text, &nr_runs))
		return 0;
	return nr_runs;
}
