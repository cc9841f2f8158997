/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/kept_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem/array.h"

/* Add a file to the list, which owns its name then. */
static int append(struct kept_files *kept, struct written_file *file)
{
	struct kept_file *files =
		array_reserve(kept->files, kept->nr + 1, &kept->max, sizeof(*files));

	if (!files) {
		free(file->name);
		return -ENOMEM;
	}
	kept->files = files;
	files[kept->nr++] = (struct kept_file){.file = *file, .period = kept->nr_periods};
	return 0;
}

/* Remove a file if it is still the one that was written. Returns whether it is removed. */
static bool remove_written(const struct written_file *file)
{
	struct stat status;

	return lstat(file->name, &status) == 0 && status.st_dev == file->device &&
	       status.st_ino == file->inode && unlink(file->name) == 0;
}

/* Remove the files of all but the newest periods. */
static void remove_oldest(struct kept_files *kept)
{
	uint32_t nr = 0;

	for (; nr < kept->nr && kept->files[nr].period + kept->max_periods <= kept->nr_periods;
	     nr++) {
		kept->nr_removed += remove_written(&kept->files[nr].file);
		free(kept->files[nr].file.name);
	}
	if (!nr)
		return;
	kept->nr -= nr;
	memmove(kept->files, kept->files + nr, kept->nr * sizeof(*kept->files));
}

int kept_files_add(struct kept_files *kept, struct outputs *outputs)
{
	bool is_new = false;
	int err = 0;

	for (unsigned i = 0; i < outputs->nr; i++) {
		struct written_file file;

		if (!outputs->list[i].file.written.name)
			continue;
		kept->nr_periods += !is_new;
		is_new = true;
		if (!kept->max_periods || err)
			continue;
		file = output_file_take_written(&outputs->list[i].file);
		err = append(kept, &file);
	}
	if (kept->max_periods)
		remove_oldest(kept);
	return err;
}

void kept_files_done(struct kept_files *kept)
{
	for (uint32_t i = 0; i < kept->nr; i++)
		free(kept->files[i].file.name);
	free(kept->files);
	*kept = (struct kept_files){0};
}
