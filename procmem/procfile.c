/* SPDX-License-Identifier: MIT */
#include "procmem/procfile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/cleanup.h"

/* The amount that seq_file returns per read; status and most other files fit. */
#define FIRST_READ_BYTES 4096

/* Map the errno of a system call to this project's errors. */
static int file_error(int error)
{
	return error == EACCES ? -EPERM : -error;
}

int procfile_open(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? file_error(errno) : fd;
}

/* Read until size bytes are read, the file ends, or an error occurs. */
static ssize_t read_full(int fd, char *buffer, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = read(fd, buffer + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return file_error(errno);
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

ssize_t procfile_read(int fd, char *buffer, size_t max_bytes)
{
	assert(max_bytes > 0);
	ssize_t size = read_full(fd, buffer, max_bytes - 1);

	if (size >= 0)
		buffer[size] = '\0';
	return size;
}

int procfile_read_whole(int fd, size_t max_bytes, char **ret_text, size_t *ret_size)
{
	cleanup_free char *text = NULL;
	size_t max_text = FIRST_READ_BYTES;
	size_t size = 0;

	for (;;) {
		char *grown = realloc(text, max_text);

		if (!grown)
			return -ENOMEM;
		text = grown;
		ssize_t n = read_full(fd, text + size, max_text - size);

		if (n < 0)
			return (int)n;
		size += (size_t)n;
		if (size > max_bytes)
			return -E2BIG;
		if (size < max_text)
			break;
		if (__builtin_mul_overflow(max_text, 4, &max_text))
			return -E2BIG;
	}
	text[size] = '\0';
	*ret_text = take_ptr(text);
	*ret_size = size;
	return 0;
}

/* Returns the text after "key:" at the start of a line, or NULL if there is none. */
static const char *text_field(const char *text, const char *key)
{
	size_t key_length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, key_length) == 0 && line[key_length] == ':')
			return line + key_length + 1;
	}
	return NULL;
}

bool procfile_number(const char *text, const char *key, unsigned int index, int base,
		     uint64_t *ret_number)
{
	const char *p = text_field(text, key);

	for (unsigned int i = 0; p; i++) {
		char *end;

		p += strspn(p, " \t");
		errno = 0;
		uint64_t number = strtoull(p, &end, base);

		if (end == p || *p == '\n' || *p == '-' || errno)
			return false;
		if (i == index) {
			*ret_number = number;
			return true;
		}
		p = end;
	}
	return false;
}

pid_t procfile_innermost_id(const char *text, pid_t id)
{
	uint64_t innermost = (uint64_t)id;

	for (unsigned int i = 0; procfile_number(text, "NSpid", i, 10, &innermost); i++)
		;
	return (pid_t)innermost;
}
