/* SPDX-License-Identifier: MIT */
/* Which process a command works on: the one given by its id, by a pattern, or on the terminal. */
#pragma once

#include <sys/types.h>

#include "cmd/command.h"

/*
 * Choose the process. With a pattern (not NULL) it is the only one that matches
 * (cmd/ls/python_processes.h), or, if several do, the one that all others descend from: that of a
 * server and its workers. Otherwise it is the only argument left, argv[first], an id. Without any,
 * if stdin and stderr are a terminal, the Python processes are listed there and the user is asked.
 *
 * Returns EXIT_OK, or another status after printing an error. It reads stdin, so it comes before
 * signals are caught.
 */
enum exit_status process_choose(int argc, char **argv, int first, const char *pattern,
				pid_t *ret_pid);
