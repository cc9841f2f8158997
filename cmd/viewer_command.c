/* SPDX-License-Identifier: MIT */
#include "cmd/viewer_command.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"

/* Programs that open files of a format. Formats that a browser opens need no command. */
static const struct {
	const char *format;
	const char *command;
} viewers[] = {
	{"pprof", "go tool pprof -http=: "},
	{"callgrind", "kcachegrind "},
};

/* Append a file name as one shell word that cannot be mistaken for an option. */
static void append_word(const char *name, struct text *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+,:@%=-";

	if (name[0] == '-')
		text_puts(text, "./");
	if (name[strspn(name, plain)] == '\0') {
		text_puts(text, name);
		return;
	}
	text_puts(text, "'");
	for (; *name; name++)
		if (*name == '\'')
			text_puts(text, "'\\''");
		else
			text_append(text, name, 1);
	text_puts(text, "'");
}

/* Returns "a/app.html" for "a/app.pysample". */
static char *page_of(const char *path, const char *suffix)
{
	struct text page = {0};
	size_t length = strlen(path);
	size_t suffix_length = strlen(suffix);

	if (length > suffix_length && strcmp(path + length - suffix_length, suffix) == 0)
		length -= suffix_length;
	text_append(&page, path, length);
	text_puts(&page, ".html");
	return page.bytes;
}

static void append_report(const struct format *format, const char *path, struct text *text)
{
	cleanup_free char *page = page_of(path, format->suffixes[0]);

	text_puts(text, "pysample report ");
	append_word(path, text);
	if (!page || !format_of_path(page))
		return;
	text_puts(text, " -o ");
	append_word(page, text);
}

void viewer_command_append(const struct format *format, const char *path, struct text *text)
{
	if (!format->write) {
		append_report(format, path, text);
		return;
	}
	for (size_t i = 0; i < sizeof(viewers) / sizeof(*viewers); i++)
		if (strcmp(format->name, viewers[i].format) == 0) {
			text_puts(text, viewers[i].command);
			append_word(path, text);
		}
}
