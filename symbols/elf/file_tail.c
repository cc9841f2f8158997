/* SPDX-License-Identifier: MIT */
#include "symbols/elf/file_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Attempts to copy while the process goes on writing. */
enum { MAX_COPIES = 3 };

void file_tail_done(struct file_tail *tail)
{
	free(tail->bytes);
	*tail = (struct file_tail){.offset = 0};
}

/* Finding the FILE. */

/*
 * Whether descriptor fd of the process is open for that file. AT_STATX_DONT_SYNC: do not query a
 * file server.
 */
static bool is_open_for(const struct process *process, pid_t tid, int32_t fd, const struct stat *st)
{
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	char link[32];
	struct statx found;

	(void)snprintf(link, sizeof(link), "fd/%d", fd);
	process_thread_path(name, tid, link);
	return fd >= 0 && !statx(process->proc_fd, name, AT_STATX_DONT_SYNC, STATX_INO, &found) &&
	       found.stx_ino == st->st_ino &&
	       makedev(found.stx_dev_major, found.stx_dev_minor) == st->st_dev;
}

void file_tail_find(struct file_tail *tail, const struct process *process,
		    struct remote_memory *memory, const remote_addr *lists, uint32_t nr_lists,
		    int fd)
{
	struct stdio_file file;
	struct stat st;
	pid_t tid;

	tail->writer = (struct stdio_file){.addr = 0};
	if (fstat(fd, &st) || process_live_thread(process, &tid))
		return;
	for (uint32_t i = 0; i < nr_lists; i++) {
		int err = stdio_file_first(memory, lists[i], &file);

		while (!err && !is_open_for(process, tid, file.fd, &st))
			err = stdio_file_next(memory, &file, &file);
		if (!err) {
			tail->writer = file;
			return;
		}
	}
}

/* Reading its bytes. */

/* The length of a file; 0 if unknown. */
static uint64_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint64_t)st.st_size;
}

/* Whether the file and the unwritten bytes are unchanged. */
static bool is_same(const struct file_tail *tail, struct remote_memory *memory, int fd)
{
	struct stdio_file writer = tail->writer;

	if (size_of(fd) != tail->offset)
		return false;
	if (!writer.addr)
		return true;
	return !stdio_file_reread(memory, &writer) && writer.fd == tail->writer.fd &&
	       writer.unwritten_addr == tail->writer.unwritten_addr &&
	       writer.unwritten_bytes == tail->nr_bytes;
}

/*
 * Copy the bytes once. Returns 0; -EAGAIN if the process went on writing meanwhile; or another
 * error if the FILE is gone.
 */
static int copy_once(struct file_tail *tail, struct remote_memory *memory, int fd)
{
	const int32_t writer_fd = tail->writer.fd;
	int err;

	tail->offset = size_of(fd);
	err = stdio_file_reread(memory, &tail->writer);
	if (!err && tail->writer.fd != writer_fd)
		err = -EBADMSG;
	if (!err)
		err = stdio_file_read_unwritten(memory, &tail->writer, tail->bytes);
	if (!err && size_of(fd) != tail->offset)
		err = -EAGAIN;
	if (!err)
		tail->nr_bytes = tail->writer.unwritten_bytes;
	return err;
}

int file_tail_read(struct file_tail *tail, struct remote_memory *memory, int fd, bool *ret_is_new)
{
	int err = -EAGAIN;

	*ret_is_new = !is_same(tail, memory, fd);
	if (!*ret_is_new)
		return 0;
	tail->nr_bytes = 0;
	if (!tail->writer.addr) {
		tail->offset = size_of(fd);
		return 0;
	}
	if (!tail->bytes)
		tail->bytes = malloc(STDIO_FILE_MAX_UNWRITTEN_BYTES);
	if (!tail->bytes)
		return -ENOMEM;
	for (int i = 0; err == -EAGAIN && i < MAX_COPIES; i++)
		err = copy_once(tail, memory, fd);
	if (err && err != -EAGAIN)
		tail->writer.addr = 0;
	return 0;
}
