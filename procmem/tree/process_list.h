/* SPDX-License-Identifier: MIT */
/* The processes that /proc shows, and which of them started which. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct listed_process {
	pid_t pid;
	pid_t parent_pid; /* 0: none, or one outside our PID namespace */
	uint32_t nr_threads;
};

/* In ascending order of their ids. All zero: empty. */
struct process_list {
	struct listed_process *processes; /* owned */
	size_t nr_processes;
};

/*
 * List all processes but kernel threads and those that have ended. One that begins or ends
 * meanwhile may be missing. Returns 0, -ENOMEM, or the errno of opening /proc.
 * process_list_done() accepts an empty list.
 */
int process_list_read(struct process_list *ret_list);
void process_list_done(struct process_list *list);

/* The same in steps, for those who cannot wait for a machine with many processes. Zeroed: closed. */
struct process_listing {
	DIR *folder; /* owned; /proc */
	struct process_list list;
	uint32_t max_processes;
};

/*
 * Begin a list, add the next max_entries entries of /proc to it, and close it. Steps return 0 when
 * the list is complete, which the caller then may take; -EAGAIN: there is more; or -ENOMEM.
 * process_listing_open() returns the errno of opening /proc, and process_listing_close() accepts a
 * closed one.
 */
int process_listing_open(struct process_listing *ret_listing);
int process_listing_step(struct process_listing *listing, uint32_t max_entries);
void process_listing_close(struct process_listing *listing);

/*
 * Parse the text of /proc/PID/stat, terminated. Returns 0; -ENOENT if it is a kernel thread or has
 * ended; -EBADMSG if it is malformed. Source: proc_pid_stat(5).
 */
int process_list_parse(const char *stat, struct listed_process *ret_process);

/* Returns the process with this id, borrowed from the list, or NULL. */
const struct listed_process *process_list_find(const struct process_list *list, pid_t pid);

/* Whether ancestor is the parent of pid, or its parent's, and so on. */
bool process_list_descends(const struct process_list *list, pid_t pid, pid_t ancestor);

/*
 * List the descendants of ancestor, each parent before its children, without ancestor itself.
 * *ret_descendants is allocated (free() it). Returns 0 or -ENOMEM.
 */
int process_list_descendants(const struct process_list *list, pid_t ancestor,
			     struct listed_process **ret_descendants, size_t *ret_nr_descendants);

/*
 * Read the CPU time that all threads of a process have used, ended ones included, in nanoseconds.
 * It is exact to a tick of the scheduler. Returns 0, or -ESRCH. Needs no permission. Source:
 * clock_getcpuclockid(3).
 */
int process_cpu_time(pid_t pid, uint64_t *ret_ns);
