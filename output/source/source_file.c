/* SPDX-License-Identifier: MIT */
#include "output/source/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/text/utf8.h"
#include "procmem/capabilities.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "sampler/sample.h"

void source_file_done(struct source_file *file)
{
	free(file->bytes);
	free(file->starts);
	*file = (struct source_file){0};
}

const char *source_file_line(const struct source_file *file, uint32_t line)
{
	return file->bytes + file->starts[line - 1];
}

/* Whether a path can be a source file's. "<string>", "app.py" and "/etc/shadow" cannot. */
static bool may_be_source(const char *path)
{
	static const char *const suffixes[] = {".py", ".pyw", ".pyx"};
	size_t length = strlen(path);

	if (path[0] != '/' || length >= PATH_MAX)
		return false;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		size_t suffix = strlen(suffixes[i]);

		if (length > suffix && strcmp(path + length - suffix, suffixes[i]) == 0)
			return true;
	}
	return false;
}

/* Whether this process may read files that others may not. */
static bool is_privileged(void)
{
	const uint64_t wanted = CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_DAC_READ_SEARCH);

	return geteuid() == 0 || (capabilities_effective() & wanted) != 0;
}

/* Whether a descriptor's file has all these mode bits. */
static bool has_mode(int fd, mode_t bits)
{
	struct stat status;

	return fstat(fd, &status) == 0 && (status.st_mode & bits) == bits;
}

/* Open a file in a folder, never a link. Returns -1 on failure. */
static int open_file(int folder, const char *name)
{
	return openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Open a path without links if everybody may read it. Each component is checked as it is opened. */
static int open_as_anybody(char *path)
{
	/* By the kernel's name: an emulator of another machine has another folder at "/". */
	cleanup_close int folder = open("/proc/self/root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int file = -1;
	char *slash;
	char *part = path + 1;

	for (; (slash = strchr(part, '/')); part = slash + 1) {
		int next;

		*slash = '\0';
		if (!has_mode(folder, S_IXOTH))
			return -1;
		next = openat(folder, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -1;
		(void)close(folder);
		folder = next;
	}
	if (!has_mode(folder, S_IXOTH))
		return -1;
	file = open_file(folder, part);
	return file >= 0 && has_mode(file, S_IROTH) ? take_fd(file) : -1;
}

/* Open a file that may be shown. Returns -1 if it may not, or on failure. */
static int open_source(const char *path)
{
	cleanup_free char *real = may_be_source(path) ? realpath(path, NULL) : NULL;

	if (!real || !may_be_source(real))
		return -1;
	return is_privileged() ? open_as_anybody(real) : open_file(AT_FDCWD, real);
}

/* The same for a file below a sysroot. */
static int open_source_below(const struct sysroot *sysroot, const char *path)
{
	cleanup_close int fd = may_be_source(path) ? sysroot_open_file(sysroot, path) : -1;

	if (fd < 0 || (is_privileged() && !has_mode(fd, S_IROTH)))
		return -1;
	return take_fd(fd);
}

/* Read max bytes, or fewer at the end of the file. */
static int read_bytes(int fd, char *bytes, size_t max, size_t *ret_length)
{
	size_t length = 0;
	ssize_t got = 1;

	while (got > 0 && length < max) {
		got = read(fd, bytes + length, max - length);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got < 0)
			return -ENOENT;
		else
			length += (size_t)got;
	}
	*ret_length = length;
	return 0;
}

static bool is_text(const char *bytes, size_t length)
{
	size_t step;

	for (size_t i = 0; i < length; i += step) {
		uint32_t code_point;

		step = utf8_decode(bytes + i, length - i, &code_point);
		if (!step || !code_point)
			return false;
	}
	return true;
}

/* Returns the size of a line end, "\n", "\r\n" or "\r" as in Python; 0 if there is none. */
static size_t line_end(const char *bytes)
{
	if (bytes[0] == '\r')
		return bytes[1] == '\n' ? 2 : 1;
	return bytes[0] == '\n';
}

/*
 * Count the lines of a terminated text. With starts, also store where each begins and terminate
 * them.
 */
static uint32_t split_lines(char *bytes, size_t length, size_t *starts)
{
	uint32_t nr = 0;
	size_t end;

	for (size_t i = 0; i < length; nr++) {
		if (starts)
			starts[nr] = i;
		while (i < length && !line_end(bytes + i))
			i++;
		end = i;
		i += i < length ? line_end(bytes + i) : 1;
		if (starts)
			bytes[end] = '\0';
	}
	return nr;
}

/* Remove a BOM. */
static size_t skip_bom(char *bytes, size_t length)
{
	static const char bom[] = "\xef\xbb\xbf";

	if (length < 3 || memcmp(bytes, bom, 3) != 0)
		return length;
	memmove(bytes, bytes + 3, length - 3);
	bytes[length - 3] = '\0';
	return length - 3;
}

static int file_fill(struct source_file *file, int fd, size_t max)
{
	size_t length;
	int err;

	file->bytes = malloc(max + 2);
	if (!file->bytes)
		return -ENOMEM;
	err = read_bytes(fd, file->bytes, max, &length);
	if (err)
		return err;
	file->bytes[length] = '\0';
	file->bytes[length + 1] = '\0';
	if (!is_text(file->bytes, length))
		return -ENOENT;
	length = skip_bom(file->bytes, length);
	file->nr_lines = split_lines(file->bytes, length, NULL);
	file->starts = calloc((size_t)file->nr_lines + 1, sizeof(*file->starts));
	if (!file->starts)
		return -ENOMEM;
	(void)split_lines(file->bytes, length, file->starts);
	return 0;
}

/* Whether fd is a regular file within the size limit. */
static bool is_readable(int fd, struct stat *ret_status)
{
	return fd >= 0 && fstat(fd, ret_status) == 0 && S_ISREG(ret_status->st_mode) &&
	       ret_status->st_size <= SOURCE_FILE_MAX_BYTES;
}

static int read_open(int fd, const struct stat *status, struct source_file *ret_file)
{
	struct source_file file = {0};
	int err = file_fill(&file, fd, (size_t)status->st_size);

	if (err)
		source_file_done(&file);
	else
		*ret_file = file;
	return err;
}

int source_file_read(const char *path, uint64_t until_ns, struct source_file *ret_file)
{
	cleanup_close int fd = open_source(path);
	struct stat status;

	if (!is_readable(fd, &status))
		return -ENOENT;
	/* Copying or unpacking may preserve mtime, but never ctime. */
	if (until_ns &&
	    (timespec_ns(status.st_mtim) > until_ns || timespec_ns(status.st_ctim) > until_ns))
		return -EAGAIN;
	return read_open(fd, &status, ret_file);
}

int source_file_read_below(const struct sysroot *sysroot, const char *path, uint64_t until_ns,
			   struct source_file *ret_file)
{
	cleanup_close int fd = open_source_below(sysroot, path);
	struct stat status;

	if (!is_readable(fd, &status))
		return -ENOENT;
	if (until_ns && timespec_ns(status.st_mtim) > until_ns)
		return -EAGAIN;
	return read_open(fd, &status, ret_file);
}
