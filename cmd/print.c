/* SPDX-License-Identifier: MIT */
#include "cmd/print.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "output/profile/label.h"
#include "output/text/text.h"

enum { MAX_LINE_BYTES = 2048 };

/* Print a line. Messages hold names from the target, which must not control a terminal. */
static void print_line(const char *format, va_list args)
{
	char line[MAX_LINE_BYTES];
	struct text text = {0};

	/* clang-tidy 14 considers the args of the second caller uninitialized. */
	(void)vsnprintf(line, sizeof(line), format, args); /* NOLINT(clang-analyzer-valist.*) */
	text_puts(&text, "pysample: ");
	label_append_escaped(&text, line, strlen(line), LABEL_DISPLAY);
	text_puts(&text, "\n");
	(void)text_write(&text, stderr);
	text_done(&text);
}

void print_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(format, args);
	va_end(args);
}

void print_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(format, args);
	va_end(args);
}

unsigned int print_columns(int fd)
{
	struct winsize size;

	return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

enum exit_status print_finish(enum exit_status status)
{
	const bool is_lost = ferror(stdout); /* the reason is no longer known */

	if (fflush(stdout) != 0)
		print_error("cannot write to standard output: %s", strerror(errno));
	else if (is_lost)
		print_error("cannot write all of the output to standard output");
	else
		return status;
	return EXIT_ERROR;
}
