/* SPDX-License-Identifier: MIT */
/*
 * The small text files of /proc: how they are read whole, and the "Key: value"
 * lines of /proc/PID/status. Source: proc_pid_status(5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A status file is long only by its Groups line: at most NGROUPS_MAX (65536) numbers. */
#define PROCFILE_STATUS_MAX_BYTES (1u << 20)

/* Open a file or folder below dir_fd for reading. The descriptor, or negative errno. */
int procfile_open(int dir_fd, const char *name);

/* Read at most max_bytes - 1 bytes and terminate them. The length, or negative errno. */
ssize_t procfile_read(int fd, char *buffer, size_t max_bytes);

/*
 * Read to the end. *ret_text is allocated (free() it) and terminated, *ret_size
 * its length without the NUL. 0; -E2BIG (more than max_bytes), -ENOMEM, or
 * another errno.
 */
int procfile_read_whole(int fd, size_t max_bytes, char **ret_text, size_t *ret_size);

/*
 * The number at index (from 0) of the line "key:" of a status file, in that
 * base; false if there is none. The process cannot forge a line: its name, in
 * the first one, has its newlines escaped.
 */
bool procfile_number(const char *text, const char *key, unsigned int index, int base,
		     uint64_t *ret_number);
