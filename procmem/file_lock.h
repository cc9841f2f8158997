/* SPDX-License-Identifier: MIT */
/*
 * Who holds the lock on a file that a process waits for. Source: proc_locks(5); fs/locks.c
 * (lock_get_status(), posix_locks_conflict(), flock_locks_conflict()).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A lock that a process waits for. The file is named as /proc/locks does. */
struct wanted_lock {
	uint32_t device_major, device_minor;
	uint64_t inode;
	bool is_flock;	     /* by flock(2), or else by fcntl(2): these do not exclude each other */
	bool is_shared;	     /* only an exclusive one is in the way */
	uint64_t start, end; /* bytes, end included: UINT64_MAX if it is the end of the file */
	pid_t not_pid;	     /* whose locks are not in the way; 0: nobody's */
};

/*
 * Read all of /proc/locks; *ret_text is allocated (free() it). Returns 0, -ENOMEM, -E2BIG (longer
 * than 100,000 locks), or the errno of reading it.
 */
int file_locks_read(char **ret_text);

/*
 * Find in that text a process that holds a lock which is in the way of a wanted one. Returns 0; or
 * -ENOENT: there is none, or its id is not known here, as of a lock of an open file description.
 */
int file_lock_find(const char *text, const struct wanted_lock *wanted, pid_t *ret_pid);
