/* SPDX-License-Identifier: MIT */
#include "procmem/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "procmem/cleanup.h"

/* For file systems without O_TMPFILE: create a named file and unlink it at once. */
static int open_unlinked(const char *folder)
{
	cleanup_free char *name = NULL;
	int fd;

	if (asprintf(&name, "%s/.pysample-XXXXXX", folder) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)unlink(name);
	return fd;
}

static int open_in(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? open_unlinked(folder) : fd;
}

int temp_file_open(struct temp_file *ret_file, struct message *reterr)
{
	const char *own = getenv("TMPDIR");
	const char *const folders[] = {own && *own ? own : "/var/tmp", "/var/tmp", "/tmp"};
	int fd = -ENOENT;

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		fd = open_in(folders[i]);
		if (fd >= 0) {
			*ret_file = (struct temp_file){fd, folders[i]};
			return 0;
		}
	}
	message_set(reterr,
		    "cannot create a temporary file in %s, /var/tmp or /tmp: %s; set TMPDIR",
		    folders[0], strerror(-fd));
	return fd;
}

int temp_file_open_anywhere(struct temp_file *ret_file, struct message *reterr)
{
	int err = temp_file_open(ret_file, reterr);
	const int fd = err ? memfd_create("pysample", MFD_CLOEXEC) : -1;

	if (fd < 0)
		return err;
	*ret_file = (struct temp_file){fd, "memory"};
	return 0;
}

void temp_file_close(struct temp_file *file)
{
	if (file->fd >= 0)
		(void)close(file->fd);
	*file = TEMP_FILE_NONE;
}

static int write_all(int fd, const char *bytes, size_t length)
{
	while (length) {
		ssize_t nr = write(fd, bytes, length);

		if (nr < 0 && errno != EINTR)
			return -errno;
		if (nr > 0) {
			bytes += nr;
			length -= (size_t)nr;
		}
	}
	return 0;
}

int temp_file_fill(struct temp_file *file, int fd, const char *name, struct message *reterr)
{
	char buffer[1 << 16];
	ssize_t nr;
	int err = 0;

	while (!err && (nr = read(fd, buffer, sizeof(buffer))) != 0) {
		if (nr > 0) {
			err = write_all(file->fd, buffer, (size_t)nr);
			if (err)
				message_set(reterr, "cannot write a temporary file in %s: %s",
					    file->folder, strerror(-err));
		} else if (errno != EINTR) {
			err = -errno;
			message_set(reterr, "cannot read %s: %s", name, strerror(-err));
		}
	}
	return err;
}
