/* SPDX-License-Identifier: MIT */
#include "cmd/output_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "procmem/cleanup.h"

/*
 * The longest chain of symbolic links that the kernel follows: MAXSYMLINKS,
 * include/linux/namei.h.
 */
enum { MAX_LINKS = 40 };

/* Names to try for a file that replaces no other one. */
enum { MAX_COUNTER = 100000 };

/* Temporary names to try: earlier processes with our id may have left some behind. */
enum { MAX_NAMES = 100 };

/* Names. */

/* Returns the length of the folder part of a name, including its '/'; 0 if there is none. */
static int folder_length(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? (int)(slash - name + 1) : 0;
}

/*
 * Returns the path that the symbolic link name leads to, with a relative target resolved from
 * name's folder. The caller frees it. NULL with errno set on failure.
 */
static char *follow_link(const char *name)
{
	char text[PATH_MAX];
	char *next;
	ssize_t length = readlink(name, text, sizeof(text));

	if (length < 0)
		return NULL;
	if (asprintf(&next, "%.*s%.*s", text[0] == '/' ? 0 : folder_length(name), name, (int)length,
		     text) < 0)
		return NULL;
	return next;
}

/*
 * Follow all symbolic links of path; the file at the end need not exist. The caller frees the
 * name. Returns NULL if out of memory.
 */
static char *follow_links(const char *path)
{
	char *name = strdup(path);

	for (int i = 0; name && i < MAX_LINKS; i++) {
		char *next = follow_link(name);

		if (!next)
			break;
		free(name);
		name = next;
	}
	return name;
}

static bool same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether two paths are the same name in the same folder. */
static bool same_name(const char *a, const char *b)
{
	cleanup_free char *a_folder = NULL, *b_folder = NULL;
	struct stat a_status, b_status;

	if (strcmp(a + folder_length(a), b + folder_length(b)) != 0)
		return false;
	if (asprintf(&a_folder, "%.*s.", folder_length(a), a) < 0)
		a_folder = NULL;
	if (asprintf(&b_folder, "%.*s.", folder_length(b), b) < 0)
		b_folder = NULL;
	return a_folder && b_folder && stat(a_folder, &a_status) == 0 &&
	       stat(b_folder, &b_status) == 0 && same_inode(&a_status, &b_status);
}

/* The temporary file. */

static void close_stream(struct output_file *file)
{
	if (file->stream && file->stream != stdout)
		(void)fclose(file->stream);
	file->stream = NULL;
}

/* Restore the signal mask: there is no temporary file left to clean up. */
static void release_temporary(struct output_file *file)
{
	free(file->temporary);
	file->temporary = NULL;
	(void)sigprocmask(SIG_SETMASK, &file->signals, NULL);
}

static void remove_temporary(struct output_file *file)
{
	if (!file->temporary)
		return;
	(void)unlink(file->temporary);
	release_temporary(file);
}

/* Block all signals until release_temporary(). */
static void block_signals(struct output_file *file)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &file->signals);
}

static int open_temporary(struct output_file *file)
{
	int fd, err;

	if (asprintf(&file->temporary, "%.*s.pysample-XXXXXX", folder_length(file->target),
		     file->target) < 0) {
		file->temporary = NULL;
		return -ENOMEM;
	}
	block_signals(file);
	fd = mkostemp(file->temporary, O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		release_temporary(file);
		return err;
	}
	file->stream = fdopen(fd, "w");
	if (file->stream)
		return 0;
	err = -errno;
	(void)close(fd);
	remove_temporary(file);
	return err;
}

/* Open a file without a name in target's folder, or one with a temporary name if that fails. */
static int open_unnamed(struct output_file *file)
{
	cleanup_free char *folder = NULL;
	int fd, err;

	if (asprintf(&folder, "%.*s.", folder_length(file->target), file->target) < 0) {
		folder = NULL;
		return -ENOMEM;
	}
	fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0) {
		err = open_temporary(file);
		if (!err)
			(void)sigprocmask(SIG_SETMASK, &file->signals, NULL);
		return err;
	}
	file->stream = fdopen(fd, "w");
	if (file->stream)
		return 0;
	err = -errno;
	(void)close(fd);
	return err;
}

/* Link a file without a name under a temporary name that no other file has. */
static int link_temporary(struct output_file *file)
{
	char opened[sizeof("/proc/self/fd/") + 11];

	(void)snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fileno(file->stream));
	for (unsigned int i = 0; i < MAX_NAMES; i++) {
		char *name;

		if (asprintf(&name, "%.*s.pysample-%d-%u", folder_length(file->target),
			     file->target, getpid(), i) < 0)
			return -ENOMEM;
		if (linkat(AT_FDCWD, opened, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
			file->temporary = name;
			return 0;
		}
		free(name);
		if (errno != EEXIST)
			break;
	}
	return -errno;
}

/* Returns the permissions that the umask gives a new file. */
static mode_t new_file_mode(void)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	return 0666 & ~mask;
}

/*
 * Set a file's owner, which only root can, and its group. Returns whether the file has that group
 * now.
 */
static bool set_owner(int fd, uid_t owner, gid_t group)
{
	struct stat status;

	return fchown(fd, owner, group) == 0 || fchown(fd, (uid_t)-1, group) == 0 ||
	       (fstat(fd, &status) == 0 && status.st_gid == group);
}

/*
 * Give the temporary file the attributes of the file that it replaces. If it cannot have that
 * group, its own group gets no more permissions than everybody, whatever the old group had.
 */
static void copy_attributes(const struct output_file *file)
{
	int fd = fileno(file->stream);
	mode_t mode = new_file_mode();
	struct stat status;

	if (!file->counter_at && lstat(file->target, &status) == 0 && S_ISREG(status.st_mode)) {
		mode = status.st_mode & 0777;
		if (!set_owner(fd, status.st_uid, status.st_gid))
			mode &= S_IRWXU | (mode & S_IRWXO) << 3 | S_IRWXO;
	}
	(void)fchmod(fd, mode);
}

/* Opening. */

static int failed(const struct output_file *file, int err, struct message *reterr)
{
	const char *name = file->path ? file->path : "standard output";

	message_set(reterr, "cannot write %s: %s", name, strerror(-err));
	return err;
}

/* Write to stdout. Returns -EBADF if it is closed or opened for reading only. */
static int open_stdout(struct output_file *file)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	file->stream = stdout;
	return 0;
}

/*
 * Whether path is the file that is open as stdout: replacing or truncating it would lose its
 * contents.
 */
static bool is_stdout(const char *path)
{
	struct stat status, out_status;

	return stat(path, &status) == 0 && fstat(STDOUT_FILENO, &out_status) == 0 &&
	       same_inode(&status, &out_status) && !S_ISCHR(status.st_mode);
}

/* Whether something is mounted on the name itself, as containers do with single files. */
static bool is_mount_point(const char *name)
{
	struct statx status;

	return statx(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &status) == 0 &&
	       (status.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* Whether a path names a file by an open descriptor. */
static bool is_descriptor(const char *path)
{
	return strncmp(path, "/dev/fd/", strlen("/dev/fd/")) == 0 ||
	       strncmp(path, "/proc/", strlen("/proc/")) == 0;
}

/*
 * Whether a new file under that name would look to everybody like the open one: the file has no
 * other name and no other owner.
 */
static bool is_replaceable(int fd, const char *name)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 && S_ISREG(opened.st_mode) && opened.st_nlink == 1 &&
	       (geteuid() == 0 || geteuid() == opened.st_uid) && lstat(name, &named) == 0 &&
	       same_inode(&opened, &named) && !is_mount_point(name);
}

/*
 * Prepare to replace name: check that a temporary file can be made in its folder. Takes ownership
 * of name, and frees it on failure.
 */
static int try_to_replace(struct output_file *file, char *name)
{
	int err = -ENOENT; /* if name ends in '/' */

	file->target = name;
	if (name[folder_length(name)])
		err = open_temporary(file);
	close_stream(file);
	remove_temporary(file);
	if (!err)
		return 0;
	free(name);
	file->target = NULL;
	return err;
}

static int open_path(struct output_file *file)
{
	cleanup_close int fd = open(file->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	bool exists = fd >= 0;
	char *name;

	if (!exists && errno != ENOENT)
		return -errno;
	name = follow_links(file->path);
	if (!name)
		return -ENOMEM;
	if (!exists)
		return try_to_replace(file, name);
	if (is_descriptor(file->path) || !is_replaceable(fd, name))
		free(name);
	else if (try_to_replace(file, name) == 0)
		return 0;
	file->stream = fdopen(fd, "w"); /* written in place */
	if (!file->stream)
		return -errno;
	(void)take_fd(fd);
	return 0;
}

int output_file_open(const char *path, struct output_file *ret_file, struct message *reterr)
{
	bool to_stdout = !path || strcmp(path, "-") == 0;
	struct output_file file = {.path = to_stdout ? NULL : path};
	int err = to_stdout || is_stdout(path) ? open_stdout(&file) : open_path(&file);

	if (err)
		return failed(&file, err, reterr);
	*ret_file = file;
	return 0;
}

int output_file_open_unique(const char *path, size_t counter_at, struct output_file *ret_file,
			    struct message *reterr)
{
	struct output_file file = {.path = path, .counter_at = counter_at};
	char *name = strdup(path);
	int err = name ? try_to_replace(&file, name) : -ENOMEM;

	if (err)
		return failed(&file, err, reterr);
	*ret_file = file;
	return 0;
}

struct written_file output_file_take_written(struct output_file *file)
{
	const struct written_file written = file->written;

	file->written = (struct written_file){0};
	return written;
}

void output_file_replace(struct output_file *file, struct written_file *written)
{
	free(file->target);
	file->target = written->name;
	file->counter_at = 0;
	*written = (struct written_file){0};
}

int output_file_open_again(const struct output_file *file, struct output_file *ret_file)
{
	char *target = NULL;

	if (!file->target)
		return -ENOTSUP;
	target = strdup(file->target);
	if (!target)
		return -ENOMEM;
	*ret_file = (struct output_file){
		.path = file->path, .target = target, .counter_at = file->counter_at};
	return 0;
}

bool output_file_has_fd(const struct output_file *file, int fd)
{
	struct stat status, other;
	int err = file->target ? stat(file->target, &status) : fstat(fileno(file->stream), &status);

	return !err && fstat(fd, &other) == 0 && same_inode(&status, &other) &&
	       S_ISREG(status.st_mode);
}

bool output_file_same(const struct output_file *a, const struct output_file *b)
{
	struct stat a_status, b_status;

	if (a->target && b->target)
		return same_name(a->target, b->target);
	if (a->target || b->target)
		return false;
	if (a->stream == b->stream)
		return true;
	return fstat(fileno(a->stream), &a_status) == 0 &&
	       fstat(fileno(b->stream), &b_status) == 0 && same_inode(&a_status, &b_status) &&
	       !S_ISCHR(a_status.st_mode);
}

bool output_file_is_ours(const struct output_file *file)
{
	cleanup_free char *folder = NULL;
	struct stat status;

	if (!file->target)
		return true;
	if (asprintf(&folder, "%.*s.", folder_length(file->target), file->target) < 0) {
		folder = NULL;
		return false;
	}
	/* Without this call (before 5.8) glibc's wrapper would check the permitted capabilities. */
	if (syscall(SYS_faccessat2, AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
		return false;
	return lstat(file->target, &status) != 0
		       ? errno == ENOENT
		       : status.st_uid == geteuid() && status.st_gid == getegid();
}

/* Writing. */

/* Create the new file with open_new() if the file is replaced; otherwise truncate it in place. */
static int begin(struct output_file *file, int (*open_new)(struct output_file *file),
		 struct message *reterr)
{
	struct stat status;
	int err = 0;

	if (file->target) {
		err = open_new(file);
		if (!err)
			copy_attributes(file);
	} else if (file->stream != stdout && fstat(fileno(file->stream), &status) == 0 &&
		   S_ISREG(status.st_mode) && ftruncate(fileno(file->stream), 0) != 0) {
		err = -errno;
	}
	if (!err)
		return 0;
	(void)failed(file, err, reterr);
	output_file_discard(file);
	return err;
}

int output_file_begin(struct output_file *file, struct message *reterr)
{
	return begin(file, open_temporary, reterr);
}

int output_file_begin_growing(struct output_file *file, struct message *reterr)
{
	int err = begin(file, open_unnamed, reterr);

	if (!err)
		file->is_growing = true;
	return err;
}

/* Report that a file did not get its name, and where its contents are. Returns err. */
static int failed_to_name(const struct output_file *file, int err, struct message *reterr)
{
	if (file->temporary && access(file->temporary, F_OK) == 0)
		message_set(reterr, "cannot write %s: %s; what was written is in %s", file->path,
			    strerror(-err), file->temporary);
	else
		message_set(reterr, "cannot write %s: %s; what was written is lost", file->path,
			    strerror(-err));
	return err;
}

/* Rename a file unless the new name exists. Returns 0 or a negative errno: -EEXIST. */
static int rename_new(const char *from, const char *to)
{
	if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	/* Some file systems cannot, such as NFS. */
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (link(from, to) != 0)
		return -errno;
	(void)unlink(from);
	return 0;
}

/* Rename the temporary file to target, or to the first free name with a counter. */
static int rename_unique(struct output_file *file)
{
	int err = rename_new(file->temporary, file->target);

	for (unsigned int i = 2; err == -EEXIST && i <= MAX_COUNTER; i++) {
		char *name;

		if (asprintf(&name, "%.*s-%u%s", (int)file->counter_at, file->path, i,
			     file->path + file->counter_at) < 0)
			return -ENOMEM;
		err = rename_new(file->temporary, name);
		if (err) {
			free(name);
		} else {
			free(file->target);
			file->target = name;
		}
	}
	return err;
}

/* Rename the temporary file, which stays if that fails. */
static int rename_temporary(struct output_file *file, struct message *reterr)
{
	int err;

	assert(file->temporary);
	if (file->counter_at)
		err = rename_unique(file);
	else
		err = rename(file->temporary, file->target) == 0 ? 0 : -errno;
	return err ? failed_to_name(file, err, reterr) : 0;
}

int output_file_publish(struct output_file *file, struct message *reterr)
{
	int err = 0;

	if (!file->target || file->is_published)
		return 0;
	block_signals(file);
	if (!file->temporary)
		err = link_temporary(file);
	err = err ? failed_to_name(file, err, reterr) : rename_temporary(file, reterr);
	if (err) {
		(void)sigprocmask(SIG_SETMASK, &file->signals, NULL);
		return err;
	}
	file->is_published = true;
	release_temporary(file);
	return 0;
}

int output_file_reopen(const struct output_file *file)
{
	char opened[sizeof("/proc/self/fd/") + 11];
	struct stat status;
	int fd;

	if (file->stream == stdout || fstat(fileno(file->stream), &status) != 0 ||
	    !S_ISREG(status.st_mode))
		return -ESPIPE;
	(void)snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fileno(file->stream));
	fd = open(opened, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Give a growing file its name, and check that the name still leads to it. */
static int finish_growing(struct output_file *file, struct message *reterr)
{
	int err = output_file_publish(file, reterr);

	if (!err && file->target && !output_file_has_fd(file, fileno(file->stream))) {
		err = -ESTALE;
		message_set(reterr,
			    "%s was removed or replaced while it was being written: the "
			    "recording is lost",
			    file->path);
	}
	return err;
}

/* Discard the file, but keep its name as that of a file that was written. */
static void discard_written(struct output_file *file, const struct stat *status)
{
	const struct written_file written = {
		.name = file->target,
		.device = status->st_dev,
		.inode = status->st_ino,
	};

	file->target = NULL;
	output_file_discard(file);
	file->written = written;
}

int output_file_finish(struct output_file *file, int err, struct message *reterr)
{
	bool stays = file->is_growing; /* keep what was written, under whichever name */
	struct stat status;
	const bool is_known = file->counter_at && fstat(fileno(file->stream), &status) == 0;

	if (!err && fflush(file->stream) != 0)
		err = -errno;
	if (err && file->is_growing && file->temporary)
		(void)failed_to_name(file, err, reterr);
	else if (err)
		(void)failed(file, err, reterr);
	else if (file->is_growing)
		err = finish_growing(file, reterr);
	if (file->stream != stdout && fclose(file->stream) != 0 && !err)
		err = failed(file, -errno, reterr);
	file->stream = NULL;
	if (!err && file->temporary) {
		err = rename_temporary(file, reterr);
		stays = true;
	}
	if (stays && file->temporary)
		release_temporary(file);
	if (is_known && (!err || file->is_published))
		discard_written(file, &status);
	else
		output_file_discard(file);
	return err;
}

void output_file_discard(struct output_file *file)
{
	if (!file)
		return;
	close_stream(file);
	remove_temporary(file);
	free(file->target);
	free(file->written.name);
	*file = (struct output_file){0};
}
