/* SPDX-License-Identifier: MIT */
/* pysample attach: samples a running process. */
#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/page_opener.h"
#include "cmd/print.h"
#include "cmd/process_choice.h"
#include "cmd/sampling/rotation.h"
#include "cmd/sampling/session_outputs.h"
#include "cmd/signals.h"

/* Parse the arguments into the session and *ret_pid. Returns EXIT_USAGE after printing an error. */
static enum exit_status parse(int argc, char **argv, struct session *session, pid_t *ret_pid,
			      bool *ret_done)
{
	int first;
	enum exit_status status;

	session->options = sampling_options_default();
	status = options_parse(&attach_command, argc, argv, &session->options, &first, ret_done);
	if (status != EXIT_OK || *ret_done)
		return status;
	session->options.outputs.page_path = "pysample-%p.html";
	if (!sampling_options_choose(&session->options))
		return EXIT_USAGE;
	return process_choose(argc, argv, first, session->options.process_name, ret_pid);
}

static enum exit_status sample_and_write(struct session *session, pid_t pid)
{
	struct message message = {0};
	enum exit_status status = session_open_outputs(session, pid, &message);

	if (status == EXIT_OK)
		status = session_open_target(session, pid, &message);
	if (status == EXIT_OK)
		status = session_sample(session, &message);
	if (message.text[0])
		print_error("%s", message.text);
	return rotation_finish(session, session_finish(session, status, false));
}

static enum exit_status run(int argc, char **argv)
{
	struct session session = SESSION_NONE;
	struct page_opener opener = PAGE_OPENER_NONE;
	enum exit_status status = EXIT_ERROR;
	bool done = false;
	pid_t pid;

	if (session_keep_arguments(&session, argc, argv))
		status = parse(argc, argv, &session, &pid, &done);
	if (status == EXIT_OK && !done) {
		page_opener_start(&opener, &session.options.outputs);
		signals_catch_stops();
		signals_catch_write_requests();
		signals_catch_pauses();
		signals_make_writes_fail();
		status = sample_and_write(&session, pid);
		page_opener_show(&opener, &session.options.outputs, session.options.quiet);
	}
	page_opener_stop(&opener);
	session_close(&session);
	return status;
}

const struct command attach_command = {
	.name = "attach",
	.summary = "sample a running process until it ends, -d is over or Ctrl-C",
	.usage = "[OPTION]… [PID]",
	.about =
		"Samples every thread of every interpreter of a running CPython process until it\n"
		"ends, the duration is over, or Ctrl-C; then writes the profile. SIGUSR1 writes it\n"
		"at once, with the samples so far, and sampling continues; with --loop it begins\n"
		"new files. SIGUSR2 pauses sampling, and another one resumes it. The process is\n"
		"never stopped, and nothing is written to it except one word of 3.15 (--read-only).\n"
		"If it executes another program with CPython (exec), sampling continues into the\n"
		"same profile.\n",
	.groups = sampling_options_groups,
	.nr_groups = SAMPLING_OPTIONS_NR_GROUPS,
	.lists_formats = true,
	.operands = OPERAND_PID,
	.epilogue =
		"Exit status: 0 profile written, 1 error, 2 usage, 3 not a Python process or an\n"
		"unknown version, 4 permission denied, 5 no sample could be taken, or none\n"
		"matches the --mode. If all threads waited, the profile is empty, and a note says\n"
		"so.\n"
		"\n"
		"Examples:\n"
		"  pysample attach -d 10 1234                     a table of the hottest functions\n"
		"  pysample attach -d 10 -o out.pysample 1234     a recording, for pysample report\n"
		"  pysample attach -n -d 10 -o out.html 1234      a page, with C frames\n"
		"  pysample attach -d 10 1234 | flamegraph.pl > out.svg\n"
		"  pysample attach -r 1k -d 5 -t -o out.collapsed 1234\n",
	.run = run,
};
