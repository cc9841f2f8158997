/* SPDX-License-Identifier: MIT */
#include "symbols/jit/perf_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem/cleanup.h"

/* Bytes read at a time; room for a whole line. */
enum { BUFFER_BYTES = 2 * PERF_MAP_MAX_LINE_BYTES };

struct perf_map {
	int fd;
	uint32_t file_index;
	uint64_t from_ns;
	uint64_t offset;  /* of the next line */
	bool in_too_long; /* inside a line that is too long */
	uint64_t nr_bad_lines;
	char buffer[BUFFER_BYTES];
};

int perf_map_open(int fd, uint32_t file_index, uint64_t from_ns, struct perf_map **ret_map)
{
	cleanup_close int guard = fd;
	struct perf_map *perf_map = calloc(1, sizeof(*perf_map));

	if (!perf_map)
		return -ENOMEM;
	perf_map->fd = take_fd(guard);
	perf_map->file_index = file_index;
	perf_map->from_ns = from_ns;
	*ret_map = perf_map;
	return 0;
}

void perf_map_close(struct perf_map *perf_map)
{
	if (!perf_map)
		return;
	(void)close(perf_map->fd);
	free(perf_map);
}

uint64_t perf_map_nr_bad_lines(const struct perf_map *perf_map)
{
	return perf_map->nr_bad_lines;
}

static int hexadecimal_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Parse a number, with or without "0x", up to the blank that ends it. Returns what follows the
 * blank, or NULL.
 */
static const char *parse_number(const char *at, const char *end, uint64_t *ret_number)
{
	uint64_t number = 0;
	const char *first;

	if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	for (first = at; at < end && hexadecimal_digit(*at) >= 0; at++) {
		if (number >> 60)
			return NULL;
		number = number << 4 | (uint64_t)hexadecimal_digit(*at);
	}
	if (at == first || at == end || *at != ' ')
		return NULL;
	*ret_number = number;
	return at + 1;
}

/* Add one line, without its newline, to the map. Returns 0 or -ENOMEM. */
static int add_line(struct perf_map *perf_map, struct jit_map *map, const char *line,
		    const char *end)
{
	struct jit_code code = {
		.from_ns = perf_map->from_ns,
		.to_ns = JIT_MAP_OPEN_NS,
		.source = JIT_SOURCE_PERF_MAP,
		.file_index = perf_map->file_index,
	};
	const bool is_too_long = end - line > PERF_MAP_MAX_LINE_BYTES;
	const char *at = is_too_long ? NULL : parse_number(line, end, &code.start_addr);
	int err = -EBADMSG;

	if (at)
		at = parse_number(at, end, &code.nr_bytes);
	if (at) {
		code.name = at;
		err = jit_map_add(map, &code, (size_t)(end - at), NULL);
	}
	perf_map->nr_bad_lines += err && err != -ENOMEM;
	return err == -ENOMEM ? err : 0;
}

/* Skip a line that is too long, up to its end if that was found. Returns the bytes consumed. */
static size_t skip_too_long(struct perf_map *perf_map, const char *end_of_line, size_t nr)
{
	perf_map->in_too_long = !end_of_line;
	return end_of_line ? (size_t)(end_of_line + 1 - perf_map->buffer) : nr;
}

/* Take the complete lines in the nr bytes of the buffer. Returns the bytes consumed. */
static size_t add_lines(struct perf_map *perf_map, struct jit_map *map, size_t nr, bool at_end,
			int *ret_err)
{
	const char *const end = perf_map->buffer + nr;
	const char *line = perf_map->buffer;

	*ret_err = 0;
	if (perf_map->in_too_long)
		return skip_too_long(perf_map, memchr(line, '\n', nr), nr);
	while (!*ret_err && line < end) {
		const char *line_end = memchr(line, '\n', (size_t)(end - line));

		if (!line_end && !at_end)
			break;
		if (!line_end)
			line_end = end;
		*ret_err = add_line(perf_map, map, line, line_end);
		line = line_end < end ? line_end + 1 : end;
	}
	if (line == perf_map->buffer && nr > PERF_MAP_MAX_LINE_BYTES) {
		perf_map->in_too_long = true;
		perf_map->nr_bad_lines++;
		return nr;
	}
	return (size_t)(line - perf_map->buffer);
}

int perf_map_read(struct perf_map *perf_map, struct jit_map *map, bool is_final)
{
	struct stat st;
	int err = 0;

	if (fstat(perf_map->fd, &st))
		return -errno;
	if ((uint64_t)st.st_size < perf_map->offset) {
		perf_map->offset = 0;
		perf_map->in_too_long = false;
	}
	while (!err) {
		const ssize_t nr = pread(perf_map->fd, perf_map->buffer, BUFFER_BYTES,
					 (off_t)perf_map->offset);
		size_t consumed;

		if (nr < 0)
			return -errno;
		consumed =
			add_lines(perf_map, map, (size_t)nr, is_final && nr < BUFFER_BYTES, &err);
		if (!consumed)
			break;
		perf_map->offset += consumed;
		if (perf_map->offset > PERF_MAP_MAX_BYTES)
			return -E2BIG;
	}
	return err;
}
