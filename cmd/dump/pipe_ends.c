/* SPDX-License-Identifier: MIT */
#include "cmd/dump/pipe_ends.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"

enum { MAX_DESCRIPTORS = 4096, LINK_MAX_BYTES = 64 };

uint64_t link_inode(const char *link, const char *kind)
{
	const size_t length = strlen(kind);

	return strncmp(link, kind, length) == 0 ? strtoull(link + length, NULL, 10) : 0;
}

/* Returns the end that a descriptor is; with inode 0 if it is none, or was closed. */
static struct pipe_end read_end(int folder_fd, const char *name)
{
	struct pipe_end end = {0};
	char link[LINK_MAX_BYTES];
	struct stat status;
	const ssize_t length = readlinkat(folder_fd, name, link, sizeof(link) - 1);

	if (length < 0)
		return end;
	link[length] = '\0';
	end.inode = link_inode(link, "pipe:[");
	if (!end.inode)
		return end;
	if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW))
		end.inode = 0;
	else
		end = (struct pipe_end){
			.inode = end.inode,
			.reads = status.st_mode & S_IRUSR,
			.writes = status.st_mode & S_IWUSR,
		};
	return end;
}

/* Add the ends that a process has. Returns 0 or -ENOMEM. */
static int add_process(struct pipe_ends *ends, const struct tree *tree, size_t process)
{
	const int fd = openat(tree->taken[process]->target.process.proc_fd, "fd",
			      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_closedir DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!folder && fd >= 0)
		(void)close(fd);
	for (int i = 0; folder && i < MAX_DESCRIPTORS && (entry = readdir(folder)); i++) {
		struct pipe_end end = read_end(dirfd(folder), entry->d_name);
		struct pipe_end *rows;

		if (!end.inode)
			continue;
		rows = array_reserve(ends->ends, ends->nr_ends + 1, &ends->max_ends, sizeof(*rows));
		if (!rows)
			return -ENOMEM;
		end.process = process;
		ends->ends = rows;
		rows[ends->nr_ends++] = end;
	}
	return 0;
}

static int compare_ends(const void *a, const void *b)
{
	const struct pipe_end *one = a, *two = b;

	if (one->inode != two->inode)
		return one->inode < two->inode ? -1 : 1;
	return (one->process > two->process) - (one->process < two->process);
}

int pipe_ends_read(struct pipe_ends *ends, const struct tree *tree)
{
	int err = 0;

	for (size_t i = 0; !err && i < tree->nr_processes; i++)
		err = add_process(ends, tree, i);
	if (ends->nr_ends)
		qsort(ends->ends, ends->nr_ends, sizeof(*ends->ends), compare_ends);
	return err;
}

void pipe_ends_done(struct pipe_ends *ends)
{
	free(ends->ends);
	*ends = (struct pipe_ends){.ends = NULL};
}

const struct pipe_end *pipe_ends_find(const struct pipe_ends *ends, uint64_t inode, size_t *ret_nr)
{
	size_t low = 0, high = ends->nr_ends, end;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (ends->ends[middle].inode < inode)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < ends->nr_ends && ends->ends[end].inode == inode;)
		end++;
	*ret_nr = end - low;
	return end > low ? &ends->ends[low] : NULL;
}
