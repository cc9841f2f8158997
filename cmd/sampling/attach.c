/* SPDX-License-Identifier: MIT */
/* pysample attach: samples a running process. */
#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/print.h"
#include "cmd/sampling/session_outputs.h"
#include "cmd/stop.h"

static const struct sampling_command command = {
	.usage =
		"usage: pysample attach [OPTION]… PID\n"
		"\n"
		"Samples every thread of every interpreter of a running CPython process until it\n"
		"ends, the duration is over, or Ctrl-C; then writes the profile. SIGUSR1 writes "
		"it\n"
		"meanwhile: every file as it would be now, and the sampling goes on. The process "
		"is\n"
		"never stopped, and nothing is written to it but one word of 3.15 (--read-only).\n"
		"If it replaces its program by one with CPython (exec), sampling goes on into the\n"
		"same profile.\n"
		"\n",
	.examples =
		"\n"
		"Exit status: 0 profile written, 1 error, 2 usage, 3 not a Python process or an\n"
		"unknown version, 4 permission denied, 5 no sample could be taken, or none is of\n"
		"the --mode.\n"
		"\n"
		"Examples:\n"
		"  pysample attach -d 10 1234                     a table of the hottest "
		"functions\n"
		"  pysample attach -d 10 -o out.pysample 1234     a recording, for pysample "
		"report\n"
		"  pysample attach -n -d 10 -o out.html 1234      a page, with C frames\n"
		"  pysample attach -d 10 1234 | flamegraph.pl > out.svg\n"
		"  pysample attach -r 1k -d 5 -t -o out.collapsed 1234\n",
};

/* Parse into the session and *ret_pid; EXIT_USAGE after an error was printed. */
static enum exit_status parse(int argc, char **argv, struct session *session, pid_t *ret_pid,
			      bool *ret_done)
{
	int first;
	enum exit_status status =
		sampling_options_parse(argc, argv, &command, &session->options, &first, ret_done);

	if (status != EXIT_OK || *ret_done)
		return status;
	if (!parse_only_pid(argc, argv, first, ret_pid) ||
	    !sampling_options_choose(&session->options))
		return EXIT_USAGE;
	return EXIT_OK;
}

static enum exit_status sample_and_write(struct session *session, pid_t pid)
{
	struct message message = {0};
	enum exit_status status = session_open_outputs(session, &message);

	if (status == EXIT_OK)
		status = session_open_target(session, pid, &message);
	if (status == EXIT_OK)
		status = session_sample(session, &message);
	if (message.text[0])
		print_error("%s", message.text);
	return session_finish(session, status, false);
}

enum exit_status command_attach(int argc, char **argv)
{
	struct session session = SESSION_NONE;
	enum exit_status status = EXIT_ERROR;
	bool done = false;
	pid_t pid;

	if (session_keep_arguments(&session, argc, argv))
		status = parse(argc, argv, &session, &pid, &done);
	if (status == EXIT_OK && !done) {
		stop_catch_signals();
		stop_catch_write_requests();
		stop_survive_writes();
		status = sample_and_write(&session, pid);
	}
	session_close(&session);
	return status;
}
