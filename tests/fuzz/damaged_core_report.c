/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/damaged_core_report.h"

#include <getopt.h>
#include <stdio.h>

#include "cmd/command.h"

enum { MAX_OPTIONS = 4 };

int damaged_core_report(int fd, unsigned int kind)
{
	static const char *const options[NR_CORE_REPORTS][MAX_OPTIONS] = {
		{"--verbose"},	  {"--json"}, {"--locals"}, {"--json", "--max-value", "65536"},
		{"--native=all"},
	};
	char path[sizeof("/proc/self/fd/-2147483648")];
	char *argv[MAX_OPTIONS + 3] = {(char *)"core"};
	int argc = 1;

	for (size_t i = 0; i < MAX_OPTIONS && options[kind][i]; i++)
		argv[argc++] = (char *)options[kind][i]; /* getopt(3) only permutes argv */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	argv[argc++] = path;
	optind = 0; /* restart getopt(3) */
	return (int)core_command.run(argc, argv);
}

void damaged_core_report_quietly(void)
{
	FILE *nowhere = fopen("/dev/null", "w");

	/* glibc's stderr is a variable; sanitizers write to descriptor 2. */
	if (nowhere)
		stderr = nowhere;
}
