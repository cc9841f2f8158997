/* SPDX-License-Identifier: MIT */
#include "output/page/page_source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/source/run_sources.h"
#include "output/source/source_file.h"
#include "output/text/utf8.h"
#include "procmem/array.h"

/* Lines to include, from first to last. */
struct range {
	uint32_t path;
	uint64_t path_ns; /* self time of the file */
	uint32_t first, last;
};

/* The ranges of all files; owned. */
struct ranges {
	struct range *ranges;
	uint32_t nr, max;
	uint64_t *path_ns; /* by number of the path */
};

void page_sources_done(struct page_sources *sources)
{
	for (uint32_t i = 0; i < sources->nr; i++)
		free(sources->rows[i].lines);
	free(sources->rows);
	*sources = (struct page_sources){0};
}

static int add_range(struct ranges *wanted, uint32_t path, int32_t first, int32_t last)
{
	struct range *ranges =
		array_reserve(wanted->ranges, wanted->nr + 1, &wanted->max, sizeof(*ranges));

	if (!ranges)
		return -ENOMEM;
	wanted->ranges = ranges;
	ranges[wanted->nr++] = (struct range){
		.path = path,
		.path_ns = wanted->path_ns[path],
		.first = first > 1 ? (uint32_t)first : 1,
		.last = (uint32_t)last,
	};
	return 0;
}

/* Include a function up to its last executed line. */
static int add_function_range(struct ranges *wanted, const struct page_function *function,
			      int32_t last)
{
	int32_t first = function->first_line;

	if (first <= 0 || first > last)
		first = last;
	if (last - first >= PAGE_SOURCE_MAX_LINES)
		last = first + PAGE_SOURCE_MAX_LINES - 1;
	return add_range(wanted, function->path, first, last);
}

/* Include the surroundings of a line outside of functions. */
static int add_lines_around(struct ranges *wanted, const struct page_function *function,
			    int32_t line)
{
	int32_t last = line > INT32_MAX - PAGE_SOURCE_AROUND ? line : line + PAGE_SOURCE_AROUND;

	return add_range(wanted, function->path, line - PAGE_SOURCE_AROUND, last);
}

static int sum_paths(struct ranges *wanted, const struct page_index *index)
{
	uint32_t nr_nodes;
	uint32_t nr_frames;
	const struct profile_node *nodes = profile_nodes(index->profile, &nr_nodes);
	const struct profile_frame *frames = profile_frames(index->profile, &nr_frames);

	wanted->path_ns = calloc((size_t)index->strings.nr + 1, sizeof(*wanted->path_ns));
	if (!wanted->path_ns)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_nodes; i++) {
		uint32_t function = frames[nodes[i].frame].function;

		if (function != PROFILE_NONE)
			wanted->path_ns[index->functions[function].path] += nodes[i].self_ns;
	}
	return 0;
}

/*
 * Go through the executed lines of all frames. Record those in functions in last_lines, and
 * include the others.
 */
static int scan_frames(struct ranges *wanted, const struct page_index *index, int32_t *last_lines)
{
	uint32_t nr;
	const struct profile_frame *frames = profile_frames(index->profile, &nr);
	int err = 0;

	for (uint32_t i = 0; !err && i < nr; i++) {
		uint32_t number = frames[i].function;
		const struct page_function *function;

		if (number == PROFILE_NONE || frames[i].line <= 0)
			continue;
		function = &index->functions[number];
		if (function->kind != FUNCTION_PYTHON)
			continue;
		if (strcmp(index->strings.strings[function->name], "<module>") == 0)
			err = add_lines_around(wanted, function, frames[i].line);
		else if (frames[i].line > last_lines[number])
			last_lines[number] = frames[i].line;
	}
	return err;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *one = a;
	const struct range *other = b;

	if (one->path_ns != other->path_ns)
		return one->path_ns > other->path_ns ? -1 : 1;
	if (one->path != other->path)
		return one->path < other->path ? -1 : 1;
	return one->first < other->first ? -1 : one->first > other->first;
}

static int ranges_collect(struct ranges *wanted, const struct page_index *index)
{
	int32_t *last_lines = calloc((size_t)index->nr_functions + 1, sizeof(*last_lines));
	int err = last_lines ? sum_paths(wanted, index) : -ENOMEM;

	if (!err)
		err = scan_frames(wanted, index, last_lines);
	for (uint32_t i = 0; !err && i < index->nr_functions; i++)
		if (last_lines[i] > 0)
			err = add_function_range(wanted, &index->functions[i], last_lines[i]);
	if (wanted->nr)
		qsort(wanted->ranges, wanted->nr, sizeof(*wanted->ranges), compare_ranges);
	free(last_lines);
	return err;
}

/* Returns how many bytes of a line are shown, ending in a whole character. */
static size_t shown_length(const char *line)
{
	size_t length = strlen(line);
	uint32_t code_point;

	if (length <= PAGE_SOURCE_MAX_LINE_BYTES)
		return length;
	for (length = PAGE_SOURCE_MAX_LINE_BYTES; length; length--)
		if (utf8_decode(line + length, strlen(line + length), &code_point))
			break;
	return length;
}

/* Returns how many bytes another range of a file may take. */
static size_t room_left(const struct page_sources *sources, size_t bytes_before_file)
{
	size_t of_file = bytes_before_file + PAGE_SOURCE_MAX_FILE_BYTES;
	size_t end = of_file < PAGE_SOURCE_MAX_BYTES ? of_file : PAGE_SOURCE_MAX_BYTES;

	return sources->bytes < end ? end - sources->bytes : 0;
}

/* Add a range of a file, as far as it fits. */
static int add_source(struct page_sources *sources, const struct source_file *file,
		      const struct range *range, size_t room)
{
	struct text lines = {0};
	uint32_t line = range->first;
	struct page_source *rows =
		array_reserve(sources->rows, sources->nr + 1, &sources->max, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	sources->rows = rows;
	for (; line <= range->last && lines.length < room && !lines.error; line++) {
		const char *bytes = source_file_line(file, line);

		text_append(&lines, bytes, shown_length(bytes));
		text_append(&lines, "", 1);
	}
	if (lines.error) {
		text_done(&lines);
		return -ENOMEM;
	}
	sources->bytes += lines.length;
	rows[sources->nr++] = (struct page_source){
		.path = range->path,
		.first_line = range->first,
		.nr_lines = line - range->first,
		.lines = lines.bytes,
	};
	return 0;
}

/* Join the leading ranges that overlap or touch; *ret_nr is their number. */
static struct range join_ranges(const struct range *ranges, uint32_t nr, uint32_t *ret_nr)
{
	struct range joined = ranges[0];
	uint32_t i = 1;

	for (; i < nr && ranges[i].first <= joined.last + 1; i++)
		if (ranges[i].last > joined.last)
			joined.last = ranges[i].last;
	*ret_nr = i;
	return joined;
}

/* Add the ranges of one file, in line order. */
static int add_file(struct page_sources *sources, const struct source_file *file,
		    const struct range *ranges, uint32_t nr)
{
	size_t bytes_before = sources->bytes;
	uint32_t nr_joined;
	int err = 0;

	for (uint32_t i = 0; !err && i < nr; i += nr_joined) {
		struct range range = join_ranges(&ranges[i], nr - i, &nr_joined);
		size_t room = room_left(sources, bytes_before);

		if (range.last > file->nr_lines)
			range.last = file->nr_lines;
		if (range.first > range.last || !room)
			break;
		err = add_source(sources, file, &range, room);
	}
	return err;
}

static int read_files(struct page_sources *sources, const struct page_index *index,
		      const struct ranges *wanted, uint64_t until_ns)
{
	uint32_t nr;
	int err = 0;

	for (uint32_t i = 0; !err && i < wanted->nr; i += nr) {
		const struct range *ranges = &wanted->ranges[i];
		struct source_file file = {0};

		for (nr = 1; i + nr < wanted->nr && ranges[nr].path == ranges[0].path;)
			nr++;
		if (!room_left(sources, sources->bytes))
			break;
		err = source_file_read(index->strings.strings[ranges[0].path], until_ns, &file);
		if (!err)
			err = add_file(sources, &file, ranges, nr);
		source_file_done(&file);
		if (err == -ENOENT || err == -EAGAIN)
			err = 0;
	}
	return err;
}

int page_sources_read(struct page_sources *sources, const struct page_index *index,
		      const struct artefact *artefact)
{
	struct ranges wanted = {0};
	uint64_t until_ns;
	int err;

	if (artefact->options.no_source ||
	    !run_sources_are_here(artefact->runs, artefact->nr_runs, &until_ns))
		return 0;
	err = ranges_collect(&wanted, index);
	if (!err)
		err = read_files(sources, index, &wanted, until_ns);
	if (err)
		page_sources_done(sources);
	free(wanted.ranges);
	free(wanted.path_ns);
	return err;
}
