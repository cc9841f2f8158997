/* SPDX-License-Identifier: MIT */
#include "output/source/source_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

void source_lines_done(struct source_lines *lines)
{
	if (!lines)
		return;
	for (uint32_t i = 0; i < lines->nr_files; i++)
		source_file_done(&lines->files[i].file);
	free(lines->files);
	*lines = (struct source_lines){
		.sysroot = lines->sysroot, .until_ns = lines->until_ns, .newer = lines->newer};
}

/* Returns the memory of a file: its text and the offsets of its lines. */
static size_t bytes_of(const struct source_file *file)
{
	return file->starts[file->nr_lines] + file->nr_lines * sizeof(*file->starts);
}

/* Read a new file. Returns 0 or -ENOMEM. */
static int add_file(struct source_lines *lines, const char *path)
{
	struct source_lines_file *files =
		array_reserve(lines->files, lines->nr_files + 1, &lines->max_files, sizeof(*files));
	struct source_lines_file added = {.path = path, .err = -ENOENT};

	if (!files)
		return -ENOMEM;
	lines->files = files;
	if (lines->nr_bytes < SOURCE_LINES_MAX_BYTES)
		added.err = lines->sysroot ? source_file_read_below(lines->sysroot, path,
								    lines->until_ns, &added.file)
					   : source_file_read(path, lines->until_ns, &added.file);
	if (added.err == -ENOMEM)
		return -ENOMEM;
	if (!added.err)
		lines->nr_bytes += bytes_of(&added.file);
	files[lines->nr_files++] = added;
	return 0;
}

/* Find the file at path, or read it. Returns 0; -ENOENT if there are too many files; -ENOMEM. */
static int get_file(struct source_lines *lines, const char *path,
		    const struct source_lines_file **ret_file)
{
	int err = 0;
	uint32_t i = 0;

	while (i < lines->nr_files && strcmp(lines->files[i].path, path) != 0)
		i++;
	if (i == SOURCE_LINES_MAX_FILES)
		return -ENOENT;
	if (i == lines->nr_files)
		err = add_file(lines, path);
	if (!err)
		*ret_file = &lines->files[i];
	return err;
}

int source_lines_get(struct source_lines *lines, const char *path, int32_t line,
		     const char **ret_line)
{
	const struct source_lines_file *file;
	int err;

	if (line < 1) /* native code, whose path is a program's */
		return -ENOENT;
	err = get_file(lines, path, &file);
	if (!err)
		err = file->err;
	if (err)
		return err;
	if ((uint32_t)line > file->file.nr_lines)
		return -ENOENT;
	*ret_line = source_file_line(&file->file, (uint32_t)line);
	return 0;
}

struct stripped_line stripped_line_of(const char *line)
{
	static const char indentation[] = " \t\f"; /* as Python */
	struct stripped_line stripped = {
		.line = line,
		.start = strspn(line, indentation),
		.end = strlen(line),
	};

	while (stripped.end > stripped.start && strchr(indentation, line[stripped.end - 1]))
		stripped.end--;
	return stripped;
}
