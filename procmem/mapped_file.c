/* SPDX-License-Identifier: MIT */
#include "procmem/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "procmem/cleanup.h"

/* How far a name is trusted to lead to the mapping's file before its device is checked. */
enum trust {
	/* The name is a path: both device and inode must match. */
	TRUST_PATH,
	/*
	 * The kernel's own link to the file. The inode must still match, because the target may
	 * have mapped another file since. The device need not: maps shows the device of the
	 * superblock, which on btrfs, and on overlayfs of some kernels, differs from the st_dev of
	 * the file.
	 */
	TRUST_KERNEL_LINK,
};

static bool is_mapped_file(const struct stat *st, const struct mapping *mapping, enum trust trust)
{
	if (!S_ISREG(st->st_mode) || st->st_ino != mapping->inode)
		return false;
	return trust == TRUST_KERNEL_LINK ||
	       (major(st->st_dev) == mapping->dev_major && minor(st->st_dev) == mapping->dev_minor);
}

/*
 * Open the file if it is the mapping's. An O_PATH descriptor is checked first, because opening a
 * device or a FIFO may have an effect. Returns a descriptor, -ENOENT or -EPERM.
 */
static int open_if_mapped(int dir_fd, const char *name, const struct mapping *mapping,
			  enum trust trust)
{
	cleanup_close int path_fd = openat(dir_fd, name, O_PATH | O_CLOEXEC);
	char link[32];
	struct stat st;

	if (path_fd < 0)
		return errno == EACCES || errno == EPERM ? -EPERM : -ENOENT;
	if (fstat(path_fd, &st) || !is_mapped_file(&st, mapping, trust))
		return -ENOENT;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	int fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return errno == EACCES || errno == EPERM ? -EPERM : -ENOENT;
	return fd;
}

static int open_map_file(const struct process *process, const struct mapping *mapping)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "map_files/%llx-%llx",
		       (unsigned long long)mapping->start, (unsigned long long)mapping->end);
	return open_if_mapped(process->proc_fd, name, mapping, TRUST_KERNEL_LINK);
}

/*
 * Open the process's executable if it is the mapped file. Inode numbers repeat across file
 * systems, so the link is trusted without the device only if it also reads the same as the
 * mapping's path.
 */
static int open_exe(const struct process *process, pid_t tid, const struct mapping *mapping)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	char target[PATH_MAX];
	size_t path_length = strlen(mapping->path);

	process_thread_path(name, tid, "exe");
	ssize_t length = readlinkat(process->proc_fd, name, target, sizeof(target));

	if (length < 0)
		return errno == EACCES ? -EPERM : -ENOENT;
	size_t mark_length = mapping->deleted ? strlen(" (deleted)") : 0;
	bool same_path = (size_t)length == path_length + mark_length &&
			 memcmp(target, mapping->path, path_length) == 0;

	return open_if_mapped(process->proc_fd, name, mapping,
			      same_path ? TRUST_KERNEL_LINK : TRUST_PATH);
}

/* Open the mapping's path below the process's root, or below ours if that fails (chroot). */
static int open_path(const struct process *process, pid_t tid, const struct mapping *mapping)
{
	char root[PROCESS_THREAD_PATH_MAX_BYTES];
	cleanup_free char *name = NULL;

	if (mapping->path[0] != '/')
		return -ENOENT;
	process_thread_path(root, tid, "root");
	if (asprintf(&name, "%s%s", root, mapping->path) < 0) {
		name = NULL; /* undefined after a failed asprintf() */
		return -ENOMEM;
	}
	int fd = open_if_mapped(process->proc_fd, name, mapping, TRUST_PATH);

	if (fd >= 0)
		return fd;
	int own_fd = open_if_mapped(AT_FDCWD, mapping->path, mapping, TRUST_PATH);

	return own_fd >= 0 ? own_fd : fd;
}

int mapped_file_open(const struct process *process, const struct mapping *mapping)
{
	pid_t tid;

	if (mapping->inode == 0)
		return -ENOENT;
	int fd = open_map_file(process, mapping);

	if (fd >= 0)
		return fd;
	/* The links of a main thread that has ended cannot be followed. */
	if (process_live_thread(process, &tid))
		return -ENOENT;
	fd = open_exe(process, tid, mapping);
	return fd >= 0 ? fd : open_path(process, tid, mapping);
}
