/* SPDX-License-Identifier: MIT */
#include "procmem/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"

/* 256 bytes a line on average; a line has 73 bytes and a path. Beyond it: -E2BIG. */
#define MAPS_MAX_TEXT_BYTES ((size_t)MAPS_MAX_MAPPINGS * 256)

/* How often the text is read again because the target changed its mappings during the read. */
#define MAPS_MAX_TRIES 3

#define DELETED_MARK " (deleted)"

/* The unparsed rest of one line. end points to its newline, or to the end of the text. */
struct line {
	char *next;
	char *end;
};

/* Parse a number without sign or prefix; at least one digit. */
static bool parse_number(struct line *line, unsigned int base, uint64_t *ret_number)
{
	uint64_t number = 0;
	char *start = line->next;

	for (; line->next < line->end; line->next++) {
		char c = *line->next;
		unsigned int digit = c >= '0' && c <= '9'   ? (unsigned int)(c - '0')
				     : c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10
							    : base;

		if (digit >= base)
			break;
		if (__builtin_mul_overflow(number, base, &number) ||
		    __builtin_add_overflow(number, digit, &number))
			return false;
	}
	*ret_number = number;
	return line->next > start;
}

static bool skip_char(struct line *line, char c)
{
	if (line->next == line->end || *line->next != c)
		return false;
	line->next++;
	return true;
}

/* Parse one permission letter: set or clear. */
static bool parse_flag(struct line *line, char set, char clear, bool *ret_flag)
{
	*ret_flag = skip_char(line, set);
	return *ret_flag || skip_char(line, clear);
}

static bool parse_device(struct line *line, struct mapping *mapping)
{
	uint64_t major;
	uint64_t minor;

	if (!parse_number(line, 16, &major) || !skip_char(line, ':') ||
	    !parse_number(line, 16, &minor) || major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	mapping->dev_major = (uint32_t)major;
	mapping->dev_minor = (uint32_t)minor;
	return true;
}

/*
 * Terminate the path in place, remove the mark and unescape it. The kernel escapes newlines and
 * nothing else here (seq_path(…, "\n") in show_map_vma() of fs/proc/task_mmu.c), not even
 * backslashes: any other \NNN is part of the name.
 */
static bool parse_path(struct line *line, struct mapping *mapping)
{
	size_t mark_length = strlen(DELETED_MARK);
	char *path = line->next + strspn(line->next, " ");
	char *to = path;

	if (path > line->end || memchr(path, '\0', (size_t)(line->end - path)))
		return false;
	char *end = line->end;

	if (mapping->inode != 0 && (size_t)(end - path) > mark_length &&
	    memcmp(end - mark_length, DELETED_MARK, mark_length) == 0) {
		mapping->deleted = true;
		end -= mark_length;
	}
	for (char *from = path; from < end; to++) {
		if (end - from >= 4 && memcmp(from, "\\012", 4) == 0) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
	mapping->path = path;
	return true;
}

/* Parse one line. A NUL overwrites the character at its end. */
static bool parse_line(struct line *line, struct mapping *ret_mapping)
{
	struct mapping mapping = {.path = ""};

	*line->end = '\0';
	if (!parse_number(line, 16, &mapping.start) || !skip_char(line, '-') ||
	    !parse_number(line, 16, &mapping.end) || !skip_char(line, ' ') ||
	    !parse_flag(line, 'r', '-', &mapping.readable) ||
	    !parse_flag(line, 'w', '-', &mapping.writable) ||
	    !parse_flag(line, 'x', '-', &mapping.executable) ||
	    (!skip_char(line, 's') && !skip_char(line, 'p')) || !skip_char(line, ' ') ||
	    !parse_number(line, 16, &mapping.file_offset) || !skip_char(line, ' ') ||
	    !parse_device(line, &mapping) || !skip_char(line, ' ') ||
	    !parse_number(line, 10, &mapping.inode))
		return false;
	if (line->next < line->end && *line->next != ' ')
		return false;
	if (mapping.start >= mapping.end || !parse_path(line, &mapping))
		return false;
	*ret_mapping = mapping;
	return true;
}

static size_t count_lines(const char *text, size_t size)
{
	const char *end = text + size;
	size_t nr_lines = 0;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		text = newline ? newline + 1 : end;
		nr_lines++;
	}
	return nr_lines;
}

/* Parse text, which has room for size + 1 bytes. The maps take ownership of it. */
static int parse_owned(char *text, size_t size, struct maps *ret_maps)
{
	struct maps maps = {.text = text};
	size_t nr_lines = count_lines(text, size);
	char *end = text + size;
	remote_addr last_end = 0;
	int err = 0;

	if (nr_lines > MAPS_MAX_MAPPINGS)
		err = -E2BIG;
	else {
		maps.mappings = calloc(nr_lines ? nr_lines : 1, sizeof(*maps.mappings));
		err = maps.mappings ? 0 : -ENOMEM;
	}
	for (char *next = text; !err && next < end;) {
		char *newline = memchr(next, '\n', (size_t)(end - next));
		struct line line = {.next = next, .end = newline ? newline : end};
		struct mapping *mapping = &maps.mappings[maps.nr_mappings++];

		next = line.end + 1;
		if (!parse_line(&line, mapping) || mapping->start < last_end)
			err = -EBADMSG;
		else
			last_end = mapping->end;
	}
	if (err)
		maps_done(&maps);
	else
		*ret_maps = maps;
	return err;
}

int maps_parse(const char *text, size_t size, struct maps *ret_maps)
{
	size_t room;

	if (__builtin_add_overflow(size, 1, &room))
		return -E2BIG;
	char *copy = malloc(room);

	if (!copy)
		return -ENOMEM;
	if (size > 0)
		memcpy(copy, text, size);
	return parse_owned(copy, size, ret_maps);
}

/*
 * Read the current text. It is empty for a main thread that has ended, so a live thread's is read
 * then. It is also empty for a process without memory.
 */
static int read_text(const struct process *process, char **ret_text, size_t *ret_size)
{
	cleanup_free char *text = NULL;
	char name[PROCESS_THREAD_PATH_MAX_BYTES];
	size_t size;
	pid_t tid;
	int err;

	err = process_read_whole_file(process, "maps", MAPS_MAX_TEXT_BYTES, &text, &size);
	if (!err && size == 0) {
		err = process_live_thread(process, &tid);
		if (!err && tid != process->pid) {
			process_thread_path(name, tid, "maps");
			free(take_ptr(text));
			err = process_read_whole_file(process, name, MAPS_MAX_TEXT_BYTES, &text,
						      &size);
		}
	}
	if (err)
		return err;
	*ret_text = take_ptr(text);
	*ret_size = size;
	return 0;
}

int maps_read(const struct process *process, struct maps *ret_maps)
{
	int err = -EBADMSG;

	/*
	 * The kernel returns a page of text at a time and continues after the last mapping's end.
	 * A mapping that has grown since then appears twice.
	 */
	for (int i = 0; i < MAPS_MAX_TRIES && err == -EBADMSG; i++) {
		char *text;
		size_t size;

		err = read_text(process, &text, &size);
		if (!err)
			err = parse_owned(text, size, ret_maps);
	}
	return err;
}

void maps_done(struct maps *maps)
{
	if (!maps)
		return;
	free(maps->mappings);
	free(maps->text);
	*maps = (struct maps){.text = NULL};
}

static bool same_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

bool maps_same(const struct maps *a, const struct maps *b)
{
	if (a->nr_mappings != b->nr_mappings)
		return false;
	for (size_t i = 0; i < a->nr_mappings; i++) {
		const struct mapping *x = &a->mappings[i];
		const struct mapping *y = &b->mappings[i];

		if (x->start != y->start || x->end != y->end || !same_file(x, y) ||
		    x->file_offset != y->file_offset || x->readable != y->readable ||
		    x->writable != y->writable || x->executable != y->executable)
			return false;
	}
	return true;
}

size_t maps_module_end(const struct maps *maps, size_t first)
{
	const struct mapping *module = &maps->mappings[first];
	size_t end = first + 1;

	if (module->inode == 0)
		return end;
	for (size_t i = end; i < maps->nr_mappings; i++) {
		const struct mapping *mapping = &maps->mappings[i];

		if (same_file(mapping, module))
			end = i + 1;
		else if (mapping->inode != 0)
			break;
	}
	return end;
}

size_t maps_search(const struct maps *maps, remote_addr addr)
{
	size_t first = 0;
	size_t end = maps->nr_mappings;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (maps->mappings[middle].end > addr)
			end = middle;
		else
			first = middle + 1;
	}
	return first;
}

const struct mapping *maps_find(const struct maps *maps, remote_addr addr)
{
	size_t index = maps_search(maps, addr);

	return index < maps->nr_mappings && maps->mappings[index].start <= addr
		       ? &maps->mappings[index]
		       : NULL;
}
