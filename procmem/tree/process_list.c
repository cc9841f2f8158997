/* SPDX-License-Identifier: MIT */
#include "procmem/tree/process_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/procfile.h"

/* Enough for /proc/PID/stat up to field 20: numbers and a name of 64 bytes. */
enum { MAX_STAT_BYTES = 1024 };

/* Fields of stat, and the flag of a kernel thread: PF_KTHREAD, include/linux/sched.h. */
enum { FIELD_PARENT = 4, FIELD_FLAGS = 9, FIELD_NR_THREADS = 20, FLAG_KERNEL_THREAD = 0x00200000 };

int process_list_parse(const char *stat, struct listed_process *ret_process)
{
	/* The process chooses the name before it, which may contain ')' and digits. */
	const char *field = strrchr(stat, ')');
	unsigned long long flags = 0, nr_threads = 0;
	long parent = 0;
	char state;

	if (!field || field[1] != ' ' || !field[2])
		return -EBADMSG;
	state = field[2];
	field = strchr(field + 2, ' ');
	for (int i = FIELD_PARENT; field && i <= FIELD_NR_THREADS; i++) {
		if (i == FIELD_PARENT)
			parent = strtol(field, NULL, 10);
		else if (i == FIELD_FLAGS)
			flags = strtoull(field, NULL, 10);
		else if (i == FIELD_NR_THREADS)
			nr_threads = strtoull(field, NULL, 10);
		field = strchr(field + 1, ' ');
	}
	if (!field || parent < 0 || parent > INT32_MAX || nr_threads > UINT32_MAX)
		return -EBADMSG;
	/* A main thread that has ended is shown as a zombie while others run. */
	if ((flags & FLAG_KERNEL_THREAD) || (strchr("ZXx", state) && nr_threads <= 1))
		return -ENOENT;
	*ret_process = (struct listed_process){.pid = (pid_t)strtol(stat, NULL, 10),
					       .parent_pid = (pid_t)parent,
					       .nr_threads = (uint32_t)nr_threads};
	return 0;
}

/* Read a process below the open folder /proc. */
static int read_process(int proc_fd, const char *name, struct listed_process *ret_process)
{
	char path[32];
	char stat[MAX_STAT_BYTES];

	if (name[strspn(name, "0123456789")] ||
	    snprintf(path, sizeof(path), "%s/stat", name) >= (int)sizeof(path))
		return -ENOENT;
	cleanup_close int fd = procfile_open(proc_fd, path);

	if (fd < 0 || procfile_read(fd, stat, sizeof(stat)) < 0)
		return -ESRCH;
	return process_list_parse(stat, ret_process);
}

static int compare(const void *a, const void *b)
{
	const struct listed_process *one = a, *two = b;

	return (one->pid > two->pid) - (one->pid < two->pid);
}

int process_listing_open(struct process_listing *ret_listing)
{
	DIR *folder = opendir("/proc");

	if (!folder)
		return -errno;
	*ret_listing = (struct process_listing){.folder = folder};
	return 0;
}

int process_listing_step(struct process_listing *listing, uint32_t max_entries)
{
	struct process_list *list = &listing->list;

	for (uint32_t i = 0; i < max_entries; i++) {
		const struct dirent *entry = readdir(listing->folder);
		struct listed_process process, *grown;

		if (!entry) {
			if (list->nr_processes)
				qsort(list->processes, list->nr_processes, sizeof(process),
				      compare);
			return 0;
		}
		if (read_process(dirfd(listing->folder), entry->d_name, &process))
			continue;
		grown = array_reserve(list->processes, (uint32_t)list->nr_processes + 1,
				      &listing->max_processes, sizeof(process));
		if (!grown)
			return -ENOMEM;
		list->processes = grown;
		grown[list->nr_processes++] = process;
	}
	return -EAGAIN;
}

void process_listing_close(struct process_listing *listing)
{
	if (listing->folder)
		(void)closedir(listing->folder);
	process_list_done(&listing->list);
	*listing = (struct process_listing){0};
}

int process_list_read(struct process_list *ret_list)
{
	struct process_listing listing = {.folder = NULL};
	int err = process_listing_open(&listing);

	if (!listing.folder)
		return err;
	do
		err = process_listing_step(&listing, UINT32_MAX);
	while (err == -EAGAIN);
	if (!err) {
		*ret_list = listing.list;
		listing.list = (struct process_list){0};
	}
	process_listing_close(&listing);
	return err;
}

void process_list_done(struct process_list *list)
{
	free(list->processes);
	*list = (struct process_list){0};
}

const struct listed_process *process_list_find(const struct process_list *list, pid_t pid)
{
	const struct listed_process wanted = {.pid = pid};

	return list->nr_processes ? bsearch(&wanted, list->processes, list->nr_processes,
					    sizeof(wanted), compare)
				  : NULL;
}

bool process_list_descends(const struct process_list *list, pid_t pid, pid_t ancestor)
{
	/* The list is not of one instant: after an id was used again it may hold a circle. */
	for (size_t i = 0; i < list->nr_processes; i++) {
		const struct listed_process *process = process_list_find(list, pid);

		if (!process || !process->parent_pid)
			return false;
		pid = process->parent_pid;
		if (pid == ancestor)
			return true;
	}
	return false;
}

int process_list_descendants(const struct process_list *list, pid_t ancestor,
			     struct listed_process **ret_descendants, size_t *ret_nr_descendants)
{
	struct listed_process *found = calloc(list->nr_processes + 1, sizeof(*found));
	size_t nr = 0;

	if (!found)
		return -ENOMEM;
	found[0].pid = ancestor;
	/* Each has one parent, so none is found twice: not even in a circle, but for its start. */
	for (size_t i = 0; i <= nr; i++)
		for (size_t k = 0; k < list->nr_processes; k++) {
			const struct listed_process *process = &list->processes[k];

			if (process->parent_pid == found[i].pid && process->pid != ancestor)
				found[++nr] = *process;
		}
	memmove(found, found + 1, nr * sizeof(*found));
	*ret_descendants = found;
	*ret_nr_descendants = nr;
	return 0;
}

int process_cpu_time(pid_t pid, uint64_t *ret_ns)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &time))
		return -ESRCH;
	*ret_ns = timespec_ns(time);
	return 0;
}
