/* SPDX-License-Identifier: MIT */
/*
 * Reads the small text files of /proc, and the "Key: value" lines of /proc/PID/status. Source:
 * proc_pid_status(5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Only the Groups line makes a status file long: it has up to NGROUPS_MAX (65536) numbers. */
#define PROCFILE_STATUS_MAX_BYTES (1u << 20)

/* Open a file or folder below dir_fd for reading. Returns a descriptor or negative errno. */
int procfile_open(int dir_fd, const char *name);

/* Read at most max_bytes - 1 bytes and terminate them. Returns the length or negative errno. */
ssize_t procfile_read(int fd, char *buffer, size_t max_bytes);

/*
 * Read to the end. *ret_text is allocated (free() it) and terminated; *ret_size is its length
 * without the NUL. Returns 0, -E2BIG if it is longer than max_bytes, -ENOMEM, or another errno.
 */
int procfile_read_whole(int fd, size_t max_bytes, char **ret_text, size_t *ret_size);

/*
 * Parse the number at index (from 0) of the line "key:" of a status file, in this base. Returns
 * false if there is none. The process cannot forge a line: the kernel escapes newlines in its
 * name, which is on the first line.
 */
bool procfile_number(const char *text, const char *key, unsigned int index, int base,
		     uint64_t *ret_number);

/*
 * The id of a process or thread in its own PID namespace: the last one of the line "NSpid:" of its
 * status file, or id without that line (before Linux 4.1).
 */
pid_t procfile_innermost_id(const char *text, pid_t id);
