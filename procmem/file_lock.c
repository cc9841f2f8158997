/* SPDX-License-Identifier: MIT */
#include "procmem/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "procmem/procfile.h"

/* Limit on /proc/locks: 100,000 locks. In a longer one nothing is searched. */
#define LOCKS_MAX_BYTES ((size_t)8 << 20)

int file_lock_find(const char *text, const struct locked_file *file, pid_t *ret_pid)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		struct locked_file found;
		char kind[16];
		int pid;

		/* "1: FLOCK  ADVISORY  WRITE 4711 00:1b:438614 0 EOF"; waiters have "->" first. */
		if (sscanf(line, "%*u: %15s %*15s %*15s %d %" SCNx32 ":%" SCNx32 ":%" SCNu64, kind,
			   &pid, &found.device_major, &found.device_minor, &found.inode) != 5)
			continue;
		if (pid <= 0 || (strcmp(kind, "FLOCK") != 0 && strcmp(kind, "POSIX") != 0) ||
		    found.device_major != file->device_major ||
		    found.device_minor != file->device_minor || found.inode != file->inode)
			continue;
		*ret_pid = pid;
		return 0;
	}
	return -ENOENT;
}

int file_lock_holder(const struct locked_file *file, pid_t *ret_pid)
{
	cleanup_close int fd = procfile_open(AT_FDCWD, "/proc/locks");
	cleanup_free char *text = NULL;
	size_t size;
	int err = fd < 0 ? fd : procfile_read_whole(fd, LOCKS_MAX_BYTES, &text, &size);

	return err ? err : file_lock_find(text, file, ret_pid);
}
