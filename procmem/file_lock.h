/* SPDX-License-Identifier: MIT */
/* Who holds a lock on a file. Source: proc_locks(5); fs/locks.c (lock_get_status()). */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* A file as /proc/locks names it. */
struct locked_file {
	uint32_t device_major, device_minor;
	uint64_t inode;
};

/*
 * Find a process that holds a lock on a file, by flock(2) or fcntl(2). Returns 0; -ENOENT (there is
 * none, or its id is not known here, as of a lock of an open file description); -ENOMEM, or the
 * errno of reading /proc/locks. file_lock_find() searches its text, with the first two results.
 */
int file_lock_holder(const struct locked_file *file, pid_t *ret_pid);
int file_lock_find(const char *text, const struct locked_file *file, pid_t *ret_pid);
