/* SPDX-License-Identifier: MIT */
#include "procmem/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "procmem/procfile.h"

/* Limit on /proc/locks: 100,000 locks. */
#define LOCKS_MAX_BYTES ((size_t)8 << 20)

int file_locks_read(char **ret_text)
{
	cleanup_close int fd = procfile_open(AT_FDCWD, "/proc/locks");
	size_t size;

	return fd < 0 ? fd : procfile_read_whole(fd, LOCKS_MAX_BYTES, ret_text, &size);
}

/*
 * Parse a line: "1: FLOCK  ADVISORY  WRITE 4711 00:1b:438614 0 EOF"; those of waiters have "->"
 * first. Returns the process that holds a lock in the way of the wanted one, or 0.
 */
static pid_t holder_of(const char *line, const struct wanted_lock *wanted)
{
	uint32_t device_major, device_minor;
	char kind[16], access[16], end[24];
	uint64_t inode, first, last;
	int pid;

	/* NOLINTNEXTLINE(cert-err34-c): the kernel prints numbers of these types */
	if (sscanf(line,
		   "%*u: %15s %*15s %15s %d %" SCNx32 ":%" SCNx32 ":%" SCNu64 " %" SCNu64 " %23s",
		   kind, access, &pid, &device_major, &device_minor, &inode, &first, end) != 8)
		return 0;
	last = strcmp(end, "EOF") == 0 ? UINT64_MAX : strtoull(end, NULL, 10);
	if (strcmp(kind, wanted->is_flock ? "FLOCK" : "POSIX") != 0 ||
	    (wanted->is_shared && strcmp(access, "WRITE") != 0) || first > wanted->end ||
	    last < wanted->start || device_major != wanted->device_major ||
	    device_minor != wanted->device_minor || inode != wanted->inode)
		return 0;
	return pid > 0 && pid != wanted->not_pid ? pid : 0;
}

int file_lock_find(const char *text, const struct wanted_lock *wanted, pid_t *ret_pid)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const pid_t pid = holder_of(line, wanted);

		if (!pid)
			continue;
		*ret_pid = pid;
		return 0;
	}
	return -ENOENT;
}
