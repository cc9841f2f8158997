/* SPDX-License-Identifier: MIT */
#include "procmem/tree/parent_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/procfile.h"
#include "procmem/sched/thread_stat.h"

/* The fields of a stat file behind the name: state is number 3. */
enum { FIELD_STATE = 3, FIELD_PARENT = 4, FIELD_START = 22 };

/* Parse field number index of a stat file. Returns false if there is none. */
static bool stat_field(const char *text, unsigned int index, uint64_t *ret_number)
{
	/* The name may hold anything, parentheses too, but nothing after it does. */
	const char *field = strrchr(text, ')');
	char *end;

	for (unsigned int i = FIELD_STATE; field && i <= index; i++)
		field = strchr(field + 1, ' ');
	if (!field)
		return false;
	errno = 0;
	*ret_number = strtoull(field, &end, 10);
	return end != field && !errno;
}

int parent_read(pid_t pid, struct parent_of *ret_parent)
{
	char name[32], text[THREAD_STAT_MAX_BYTES];
	uint64_t parent, start_ticks;

	(void)snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	cleanup_close int fd = procfile_open(AT_FDCWD, name);

	if (fd < 0 || procfile_read(fd, text, sizeof(text)) <= 0)
		return -ESRCH;
	if (!stat_field(text, FIELD_PARENT, &parent) || parent > INT32_MAX ||
	    !stat_field(text, FIELD_START, &start_ticks))
		return -EBADMSG;
	*ret_parent = (struct parent_of){pid, (pid_t)parent, start_ticks};
	return 0;
}

static int compare_age(const void *one, const void *two)
{
	const struct parent_of *a = one, *b = two;

	if (a->start_ticks != b->start_ticks)
		return a->start_ticks < b->start_ticks ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

int parent_list(struct parent_of **ret_parents, size_t *ret_nr_parents)
{
	cleanup_free struct parent_of *parents = NULL;
	uint32_t nr = 0, max = 0;
	const struct dirent *entry;
	cleanup_closedir DIR *folder = opendir("/proc");

	if (!folder)
		return -errno;
	while ((entry = readdir(folder))) {
		char *end;
		const unsigned long pid = strtoul(entry->d_name, &end, 10);
		struct parent_of *grown;

		if (end == entry->d_name || *end || pid == 0 || pid > INT32_MAX)
			continue;
		grown = array_reserve(parents, nr + 1, &max, sizeof(*parents));
		if (!grown)
			return -ENOMEM;
		parents = grown;
		if (parent_read((pid_t)pid, &parents[nr]) == 0)
			nr++;
	}
	if (nr)
		qsort(parents, nr, sizeof(*parents), compare_age);
	*ret_parents = take_ptr(parents);
	*ret_nr_parents = nr;
	return 0;
}
