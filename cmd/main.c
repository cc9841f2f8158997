/* SPDX-License-Identifier: MIT */
/* The main program: finds the command in the table and runs it. */
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/print.h"
#include "sampler/cpython/layout/offsets.h"

static void print_help(void)
{
	(void)printf("usage: pysample COMMAND [OPTION]… PID|FILE\n"
		     "       pysample run [OPTION]… [--] PROGRAM [ARGUMENT]…\n"
		     "\n"
		     "A sampling profiler for CPython: reads the memory of a running process and\n"
		     "never stops or instruments it.\n"
		     "\n"
		     "Commands:\n");
	for (size_t i = 0; commands[i]; i++)
		(void)printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	(void)printf(
		"\n"
		"  pysample COMMAND --help    the options of a command, with examples\n"
		"  pysample --version\n"
		"\n"
		"Try: pysample run python3 app.py, or pysample ls and pysample attach -d 5 PID\n");
}

/*
 * Open /dev/null on stdin, stdout and stderr where they are closed. Otherwise a file opened later
 * would get that number, and our messages with it. It is opened for the opposite direction, so
 * that using it fails as it did on the closed descriptor, and close-on-exec. Returns false if it
 * cannot be opened.
 */
static bool open_missing_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) != fd)
			return false;
	return true;
}

/*
 * Make glibc return large blocks to the kernel when they are freed. By default it raises its
 * threshold to the size of the largest block ever freed, up to 32 MiB, and keeps freed blocks
 * below that size; a line table whose size was torn may claim 16 MiB.
 */
static void return_large_blocks(void)
{
#ifdef M_MMAP_THRESHOLD
	enum { LARGE_BYTES = 256 << 10 };

	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
#endif
}

/*
 * Make a help text fit into stdout's buffer: a failed write is then noticed at the end, by
 * print_finish(), which can report the reason.
 */
static void enlarge_stdout(void)
{
	static char buffer[1 << 16];

	(void)setvbuf(stdout, buffer, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof(buffer));
}

int main(int argc, char **argv)
{
	return_large_blocks();
	enlarge_stdout();
	if (!open_missing_descriptors())
		return EXIT_ERROR;
	if (argc < 2) {
		print_error("no command given; 'pysample --help' lists them");
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		print_help();
		return (int)print_finish(EXIT_OK);
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		(void)printf("pysample %s (CPython %s)\n", PYSAMPLE_VERSION, SUPPORTED_VERSIONS);
		return (int)print_finish(EXIT_OK);
	}
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(argv[1], commands[i]->name) == 0)
			return (int)commands[i]->run(argc - 1, argv + 1);
	print_error("unknown command '%s'; 'pysample --help' lists them", argv[1]);
	return EXIT_USAGE;
}
