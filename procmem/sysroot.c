/* SPDX-License-Identifier: MIT */
#include "procmem/sysroot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "procmem/cleanup.h"

/*
 * A rename anywhere in the system can make openat2() fail with EAGAIN for a path with ".." or a
 * link; the call must then be repeated (openat2(2)). With threads that did nothing but rename, one
 * in twenty look-ups of paths with six ".." failed, and none more than four times in a row.
 */
enum { OPENAT2_MAX_TRIES = 64 };

int sysroot_open(const char *path, struct sysroot *ret_sysroot, struct message *reterr)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		int error = errno;

		message_set(reterr, "cannot open the folder %s: %s", path, strerror(error));
		return -error;
	}
	ret_sysroot->fd = fd;
	return 0;
}

void sysroot_close(struct sysroot *sysroot)
{
	if (!sysroot)
		return;
	cleanup_close_fn(&sysroot->fd);
	*sysroot = SYSROOT_OWN;
}

/* Map errno: whatever a path itself can cause is -ENOENT; other failures keep their error. */
static int path_error(void)
{
	switch (errno) {
	case EACCES:
	case EPERM:
		return -EPERM;
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
		return -errno;
	default:
		return -ENOENT;
	}
}

/* Descend from the folder one name at a time, following no link. Returns an O_PATH descriptor. */
static int find_without_links(int folder_fd, const char *path)
{
	cleanup_close int fd = fcntl(folder_fd, F_DUPFD_CLOEXEC, 0);
	char name[NAME_MAX + 1];

	while (fd >= 0 && *path) {
		size_t length = strcspn(path, "/");

		if (length >= sizeof(name) || (length == 2 && memcmp(path, "..", 2) == 0))
			return -ENOENT;
		memcpy(name, path, length);
		name[length] = '\0';
		path += length + strspn(path + length, "/");
		if (length == 0)
			continue;
		int next_fd = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

		(void)close(fd);
		fd = next_fd;
	}
	return fd < 0 ? path_error() : take_fd(fd);
}

/* Wrap openat2(2). Returns an O_PATH descriptor, or -1 and errno. */
static long find_with_links(int folder_fd, const char *path, uint64_t resolve)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = resolve};

	for (unsigned int i = 0; i < OPENAT2_MAX_TRIES; i++) {
		long fd = syscall(SYS_openat2, folder_fd, path, &how, sizeof(how));

		if (fd >= 0 || errno != EAGAIN)
			return fd;
	}
	return -1;
}

static int find_inside(int folder_fd, const char *path)
{
	long fd = find_with_links(folder_fd, path, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);

	/* A seccomp filter that does not know openat2() gives EPERM. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return find_without_links(folder_fd, path);
	return fd < 0 ? path_error() : (int)fd;
}

/* Find a path in our own root. No magic link of /proc can lead to another process's files. */
static int find_own(const char *path)
{
	long fd = find_with_links(AT_FDCWD, path, RESOLVE_NO_MAGICLINKS);
	cleanup_close int root_fd = -1;

	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return fd < 0 ? path_error() : (int)fd;
	/* By the kernel's name: an emulator of another machine has another folder at "/". */
	root_fd = open("/proc/self/root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root_fd < 0 ? path_error() : find_without_links(root_fd, path);
}

/*
 * Whether the file that an O_PATH descriptor refers to may be opened: a regular one that is in no
 * file system of the kernel, where reading may have an effect or reveals kernel state.
 */
static bool is_plain_file(int path_fd)
{
	static const long kernel_types[] = {
		PROC_SUPER_MAGIC,   SYSFS_MAGIC,	 DEBUGFS_MAGIC,	   TRACEFS_MAGIC,
		CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, SECURITYFS_MAGIC, SELINUX_MAGIC,
		BPF_FS_MAGIC,	    EFIVARFS_MAGIC,	 BINFMTFS_MAGIC,
	};
	struct stat st;
	struct statfs fs;

	if (fstat(path_fd, &st) || !S_ISREG(st.st_mode) || fstatfs(path_fd, &fs))
		return false;
	for (size_t i = 0; i < sizeof(kernel_types) / sizeof(kernel_types[0]); i++)
		if (kernel_types[i] == fs.f_type)
			return false;
	return true;
}

/*
 * Open what was found for reading. found_fd may be an error, which is returned; a descriptor is
 * consumed.
 */
static int open_found(int found_fd)
{
	char link[32];
	cleanup_close int path_fd = found_fd;

	if (found_fd < 0)
		return found_fd;
	if (!is_plain_file(path_fd))
		return -ENOENT;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	int fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? path_error() : fd;
}

int sysroot_open_file(const struct sysroot *sysroot, const char *path)
{
	return open_found(sysroot->fd >= 0 ? find_inside(sysroot->fd, path) : find_own(path));
}

int sysroot_open_named(const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	return open_found(fd < 0 ? path_error() : fd);
}
