/* SPDX-License-Identifier: MIT */
/* What the commands share: how they are called and what they exit with. */
#pragma once

/* Exit statuses, as in the man page. */
enum exit_status {
	EXIT_OK = 0,
	EXIT_ERROR = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_PYTHON = 3,
	EXIT_PERMISSION = 4,
	EXIT_NO_SAMPLE = 5,
	EXIT_GREW = 10, /* report: more than --fail-above allows */
	/* Of run only, as of env(1). */
	EXIT_RUN_FAILED = 125,
	EXIT_CANNOT_RUN = 126,
	EXIT_NO_COMMAND = 127,
};

/*
 * The commands; argv[0] is the command's name. Each parses its options, runs, prints
 * what went wrong, has stdout flushed, and returns the status to exit with.
 */
enum exit_status command_attach(int argc, char **argv);
enum exit_status command_core(int argc, char **argv);
enum exit_status command_doctor(int argc, char **argv);
enum exit_status command_dump(int argc, char **argv);
enum exit_status command_jit(int argc, char **argv);
enum exit_status command_report(int argc, char **argv);
enum exit_status command_run(int argc, char **argv); /* or that of the command it ran */
