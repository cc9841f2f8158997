/* SPDX-License-Identifier: MIT */
#include "procmem/tree/container.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* cgroup v1 has some 14 lines; their paths have a few hundred bytes. More is not read. */
enum { MAX_CGROUPS_BYTES = 16384 };

enum { ID_DIGITS = 64, SHORT_ID_DIGITS = 12 };

/* Keep up to length bytes that may be part of a name. */
static void keep(char ret_id[CONTAINER_ID_MAX_BYTES], const char *name, size_t length)
{
	size_t i = 0;

	for (; i < length && i < CONTAINER_ID_MAX_BYTES - 1; i++)
		ret_id[i] = isgraph((unsigned char)name[i]) ? name[i] : '?';
	ret_id[i] = '\0';
}

/* Find 64 hexadecimal digits at the end of a component, before ".scope" if that is there. */
static bool find_digits(const char *component, size_t length, char ret_id[CONTAINER_ID_MAX_BYTES])
{
	const char *digits;

	if (length > 6 && memcmp(component + length - 6, ".scope", 6) == 0)
		length -= 6;
	if (length < ID_DIGITS)
		return false;
	digits = component + length - ID_DIGITS;
	for (size_t i = 0; i < ID_DIGITS; i++)
		if (!strchr("0123456789abcdef", digits[i]) || !digits[i])
			return false;
	if (length > ID_DIGITS && digits[-1] != '-' && digits[-1] != ':')
		return false;
	keep(ret_id, digits, SHORT_ID_DIGITS);
	return true;
}

/* Find a name after one of these beginnings of a component. */
static bool find_name(const char *component, size_t length, char ret_id[CONTAINER_ID_MAX_BYTES])
{
	static const struct {
		const char *begin, *end;
	} forms[] = {{"lxc.payload.", ""}, {"machine-", ".scope"}};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		const size_t begin = strlen(forms[i].begin), end = strlen(forms[i].end);

		if (length <= begin + end || memcmp(component, forms[i].begin, begin) != 0 ||
		    memcmp(component + length - end, forms[i].end, end) != 0)
			continue;
		keep(ret_id, component + begin, length - begin - end);
		return true;
	}
	return false;
}

/* Search a path, "/a/b", of length bytes, which end with a newline or NUL. */
static void search_path(const char *path, size_t length, char ret_id[CONTAINER_ID_MAX_BYTES])
{
	const char *const end = path + length;
	bool is_lxc = false; /* the previous component is "lxc", or "lxc.payload" */

	while (path < end) {
		const size_t part = strcspn(path, "/\n");

		if (is_lxc && part)
			keep(ret_id, path, part);
		else if (!find_digits(path, part, ret_id))
			(void)find_name(path, part, ret_id);
		is_lxc = (part == 3 && memcmp(path, "lxc", 3) == 0) ||
			 (part == 11 && memcmp(path, "lxc.payload", 11) == 0);
		path += part + 1;
	}
}

void container_parse(const char *cgroups, char ret_id[CONTAINER_ID_MAX_BYTES])
{
	ret_id[0] = '\0';
	for (const char *line = cgroups; *line && !ret_id[0];) {
		const size_t length = strcspn(line, "\n");
		const char *path = memchr(line, '/', length);

		if (path)
			search_path(path, length - (size_t)(path - line), ret_id);
		line += length + (line[length] == '\n');
	}
}

void container_read(const struct process *process, char ret_id[CONTAINER_ID_MAX_BYTES])
{
	char cgroups[MAX_CGROUPS_BYTES];

	if (process_read_file(process, "cgroup", cgroups, sizeof(cgroups)) < 0)
		cgroups[0] = '\0';
	container_parse(cgroups, ret_id);
}
