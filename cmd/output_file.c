/* SPDX-License-Identifier: MIT */
#include "cmd/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem/cleanup.h"

static int open_failed(const char *path, struct message *reterr)
{
	int err = errno;

	message_set(reterr, "cannot write %s: %s", path, strerror(err));
	return -err;
}

/* The permissions that a new file gets from the umask. */
static mode_t new_file_mode(void)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	return 0666 & ~mask;
}

static int open_temporary(const char *path, struct output_file *file, struct message *reterr)
{
	cleanup_free char *temporary = NULL;
	cleanup_close int fd = -1;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0) {
		temporary = NULL;
		errno = ENOMEM;
		return open_failed(path, reterr);
	}
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return open_failed(path, reterr);
	(void)fchmod(fd, new_file_mode());
	file->stream = fdopen(fd, "w");
	if (!file->stream) {
		(void)unlink(temporary);
		return open_failed(path, reterr);
	}
	(void)take_fd(fd);
	file->temporary = take_ptr(temporary);
	return 0;
}

int output_file_open(const char *path, struct output_file *ret_file, struct message *reterr)
{
	struct output_file file = {.path = path};
	struct stat status;
	int err;

	if (!path || strcmp(path, "-") == 0) {
		*ret_file = (struct output_file){.stream = stdout};
		return 0;
	}
	if (lstat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
		file.stream = fopen(path, "we");
		if (!file.stream)
			return open_failed(path, reterr);
	} else {
		err = open_temporary(path, &file, reterr);
		if (err)
			return err;
	}
	*ret_file = file;
	return 0;
}

int output_file_finish(struct output_file *file, int err, struct message *reterr)
{
	const char *name = file->path ? file->path : "the standard output";

	if (!err && fflush(file->stream) != 0)
		err = -errno;
	if (file->stream != stdout && fclose(file->stream) != 0 && !err)
		err = -errno;
	file->stream = NULL;
	if (!err && file->temporary && rename(file->temporary, file->path) != 0)
		err = -errno;
	if (err && file->temporary)
		(void)unlink(file->temporary);
	free(file->temporary);
	file->temporary = NULL;
	if (err)
		message_set(reterr, "cannot write %s: %s", name, strerror(-err));
	return err;
}

void output_file_discard(struct output_file *file)
{
	if (file->stream && file->stream != stdout)
		(void)fclose(file->stream);
	if (file->temporary)
		(void)unlink(file->temporary);
	free(file->temporary);
	*file = (struct output_file){0};
}
