/* SPDX-License-Identifier: MIT */
#include "symbols/elf/kernel_names.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/procfile.h"

/*
 * Limit on a function's length: the last symbol of an area has no successor to end it. No
 * function is this long.
 */
#define MAX_FUNCTION_BYTES (1u << 20)

/* Offsets are into the text; 0, where an address stands, means none. */
struct kernel_symbol {
	uint64_t addr;
	uint32_t name_offset;	/* 0: not a function; it only ends the one before */
	uint32_t module_offset; /* 0: none */
};

struct kernel_names {
	char *text;
	struct kernel_symbol *symbols; /* sorted by address, one for each */
	uint32_t nr_symbols, max_symbols;
	bool has_hidden; /* some symbols had address 0 */
};

void kernel_names_destroy(struct kernel_names *names)
{
	if (!names)
		return;
	free(names->text);
	free(names->symbols);
	free(names);
}

/* Lines. */

static bool is_word(const char *text)
{
	const char *at = text;

	while (isascii(*at) && isgraph(*at))
		at++;
	return at != text && !*at;
}

/* 't' and 'w' are functions; 'w' are weak ones. */
static bool is_function(char type)
{
	return type && strchr("tTwW", type);
}

/* Split one line, in place. Returns false if it is malformed. */
static bool parse_line(const struct kernel_names *names, char *line, struct kernel_symbol *ret)
{
	char *at, *name, *module;

	if (!isxdigit((unsigned char)*line))
		return false;
	errno = 0;
	ret->addr = strtoull(line, &at, 16);
	if (errno || at[0] != ' ' || !isalpha((unsigned char)at[1]) || at[2] != ' ')
		return false;
	name = at + 3;
	module = strchr(name, '\t');
	if (module)
		*module++ = '\0';
	if (!is_word(name) || (module && !is_word(module)))
		return false;
	ret->name_offset = is_function(at[1]) ? (uint32_t)(name - names->text) : 0;
	ret->module_offset = module ? (uint32_t)(module - names->text) : 0;
	return true;
}

static int add_line(struct kernel_names *names, char *line)
{
	struct kernel_symbol symbol;
	struct kernel_symbol *symbols;

	if (!parse_line(names, line, &symbol))
		return 0;
	if (!symbol.addr) {
		names->has_hidden = true;
		return 0;
	}
	symbols = array_reserve(names->symbols, names->nr_symbols + 1, &names->max_symbols,
				sizeof(*symbols));
	if (!symbols)
		return -ENOMEM;
	names->symbols = symbols;
	symbols[names->nr_symbols++] = symbol;
	return 0;
}

static int add_lines(struct kernel_names *names, size_t nr_bytes)
{
	char *line = names->text;
	char *const end = names->text + nr_bytes;
	int err = 0;

	while (!err && line < end) {
		char *line_end = memchr(line, '\n', (size_t)(end - line));

		if (!line_end)
			line_end = end;
		*line_end = '\0';
		err = add_line(names, line);
		line = line_end + 1;
	}
	return err;
}

/* Order. */

/* By address; at one address functions first, in the order of the text. */
static int compare_symbols(const void *a, const void *b)
{
	const struct kernel_symbol *one = a, *other = b;

	if (one->addr != other->addr)
		return one->addr < other->addr ? -1 : 1;
	if (!one->name_offset != !other->name_offset)
		return one->name_offset ? -1 : 1;
	return (one->name_offset > other->name_offset) - (one->name_offset < other->name_offset);
}

static void sort_symbols(struct kernel_names *names)
{
	struct kernel_symbol *symbols = names->symbols;
	uint32_t nr = 0;

	if (!symbols)
		return;
	qsort(symbols, names->nr_symbols, sizeof(*symbols), compare_symbols);
	for (uint32_t i = 0; i < names->nr_symbols; i++)
		if (!nr || symbols[nr - 1].addr != symbols[i].addr)
			symbols[nr++] = symbols[i];
	names->nr_symbols = nr;
}

static bool has_function(const struct kernel_names *names)
{
	for (uint32_t i = 0; i < names->nr_symbols; i++)
		if (names->symbols[i].name_offset)
			return true;
	return false;
}

int kernel_names_parse(char *text, size_t nr_bytes, struct kernel_names **ret_names)
{
	struct kernel_names *names = calloc(1, sizeof(*names));
	int err;

	if (!names) {
		free(text);
		return -ENOMEM;
	}
	names->text = text;
	err = add_lines(names, nr_bytes);
	sort_symbols(names);
	if (!err && !has_function(names))
		err = names->has_hidden ? -EPERM : -EBADMSG;
	if (err) {
		kernel_names_destroy(names);
		return err;
	}
	*ret_names = names;
	return 0;
}

int kernel_names_read(struct kernel_names **ret_names)
{
	cleanup_close int fd = procfile_open(AT_FDCWD, "/proc/kallsyms");
	char *text;
	size_t nr_bytes;
	int err;

	if (fd < 0)
		return fd;
	err = procfile_read_whole(fd, KERNEL_NAMES_MAX_BYTES, &text, &nr_bytes);
	return err ? err : kernel_names_parse(text, nr_bytes, ret_names);
}

bool kernel_names_find(const struct kernel_names *names, uint64_t addr, const char **ret_name,
		       const char **ret_module)
{
	uint32_t first = 0, end = names->nr_symbols;
	const struct kernel_symbol *symbol;

	while (first < end) {
		const uint32_t middle = first + (end - first) / 2;

		if (names->symbols[middle].addr <= addr)
			first = middle + 1;
		else
			end = middle;
	}
	symbol = first ? &names->symbols[first - 1] : NULL;
	if (!symbol || !symbol->name_offset || addr - symbol->addr >= MAX_FUNCTION_BYTES)
		return false;
	*ret_name = names->text + symbol->name_offset;
	*ret_module = symbol->module_offset ? names->text + symbol->module_offset : "";
	return true;
}

bool kernel_names_addr(const struct kernel_names *names, const char *name, uint64_t *ret_addr)
{
	for (uint32_t i = 0; i < names->nr_symbols; i++) {
		const struct kernel_symbol *symbol = &names->symbols[i];

		if (!symbol->name_offset || symbol->module_offset ||
		    strcmp(names->text + symbol->name_offset, name) != 0)
			continue;
		*ret_addr = symbol->addr;
		return true;
	}
	return false;
}
