/* SPDX-License-Identifier: MIT */
/* pysample run: starts a command and samples it. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/page_opener.h"
#include "cmd/print.h"
#include "cmd/sampling/child.h"
#include "cmd/sampling/rotation.h"
#include "cmd/sampling/session_outputs.h"
#include "cmd/signals.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"

/* Wait for an interpreter as long as the program runs; it may be a shell at first. */
#define WAIT_FOREVER_NS (366ull * 24 * 3600 * NS_PER_S)

/* The parts of a run. */
struct run_command {
	struct session session;
	struct child child;
	struct page_opener opener;
	char *default_path; /* owned; of the output that was not named; NULL if none is needed */
};

/* Returns the default name of an output, such as "pysample-python3-42.pysample". */
static char *default_path(const char *program, pid_t pid, const char *suffix)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
	enum { MAX_NAME_BYTES = 64 };
	const char *slash = strrchr(program, '/');
	const char *name = slash ? slash + 1 : program;
	cleanup_free char *plain_name = strndup(name, MAX_NAME_BYTES);
	char *path;

	for (char *c = plain_name; c && *c; c++)
		if (!strchr(plain, *c))
			*c = '_';
	if (!plain_name || asprintf(&path, "pysample-%s-%d%s", plain_name, pid, suffix) < 0)
		return NULL;
	return path;
}

/*
 * Choose the outputs, which are one recording if none was named and no page is to be opened.
 * Returns false after printing an error.
 */
static bool name_outputs(struct run_command *run, const char *program)
{
	struct sampling_options *options = &run->session.options;
	struct outputs *outputs = &options->outputs;
	const char *suffix = outputs->opens	? ".html"
			     : options->loop_ns ? "-%t.pysample"
						: ".pysample";

	if (!outputs->opens && (outputs->nr || outputs->next))
		return sampling_options_choose(options);
	run->default_path = default_path(program, run->child.pid, suffix);
	if (!run->default_path) {
		print_error("out of memory");
		return false;
	}
	outputs->page_path = run->default_path;
	return (outputs->opens || outputs_add_path(outputs, run->default_path)) &&
	       sampling_options_choose(options);
}

/* Fork, so that the outputs can be named after the child, and refuse what can be refused. */
static enum exit_status prepare(struct run_command *run, char **argv, struct message *reterr)
{
	const struct output *recording;
	int err;

	page_opener_start(&run->opener, &run->session.options.outputs);
	err = child_fork(argv, &run->child);
	if (err) {
		message_set(reterr, "cannot start a process: %s", strerror(-err));
		return EXIT_RUN_FAILED;
	}
	signals_catch_stops();
	signals_make_writes_fail();
	signals_forward_to(run->child.pid);
	if (!name_outputs(run, argv[0]) ||
	    session_open_outputs(&run->session, run->child.pid, reterr) != EXIT_OK)
		return EXIT_RUN_FAILED;
	recording = outputs_recording(&run->session.options.outputs);
	if (recording && recording->file.stream == stdout) {
		message_set(reterr, "a recording cannot go to standard output, which the "
				    "command also uses: name a file for it with -o out.pysample");
		return EXIT_RUN_FAILED;
	}
	return EXIT_OK;
}

/* Set the message for a command that could not be executed, and return its status. */
static enum exit_status explain_begin(const char *name, int err, struct message *reterr)
{
	if (err != -ENOENT)
		message_set(reterr, "cannot execute '%s': %s", name, strerror(-err));
	else if (strchr(name, '/'))
		message_set(
			reterr,
			"cannot execute '%s': it does not exist, or the interpreter in its first "
			"line does not",
			name);
	else
		message_set(reterr, "program '%s' was not found in PATH", name);
	return err == -ENOENT ? EXIT_NO_COMMAND : EXIT_CANNOT_RUN;
}

static enum exit_status begin(struct run_command *run, const char *name, struct message *reterr)
{
	int err;

	if (*signals_stop_flag()) {
		message_set(reterr, "stopped before '%s' was started", name);
		return EXIT_RUN_FAILED;
	}
	err = child_begin(&run->child);
	return err ? explain_begin(name, err, reterr) : EXIT_OK;
}

/* Sample the child as long as there is something to sample. */
static enum exit_status sample(struct run_command *run, const char *name, struct message *reterr)
{
	struct session *session = &run->session;
	enum exit_status status;

	session->is_child = true;
	status = session_open_target(session, run->child.pid, reterr);
	if (status == EXIT_OK)
		return session_sample(session, reterr);
	if (status == EXIT_NO_SAMPLE && !*signals_stop_flag() && child_has_ended(&run->child))
		message_set(reterr,
			    "no profile: '%s' ended, and no CPython was found in its "
			    "process; -s samples what it starts",
			    name);
	return status;
}

/*
 * Write the profile and wait for the command, which may still run; outputs to its stdout are
 * written after it has ended. Returns the command's status; if that is 0 and we failed,
 * EXIT_RUN_FAILED; or 128 + the number of a signal that ended the wait.
 */
static int finish(struct run_command *run, enum exit_status status)
{
	struct session *session = &run->session;
	int number, child_status;

	status = rotation_finish(session, session_finish(session, status, true));
	page_opener_show(&run->opener, &session->options.outputs, session->options.quiet);
	if (session->begun && !session->options.quiet && !child_has_ended(&run->child))
		print_note("waiting for process %d, which is still running", run->child.pid);
	number = child_wait(&run->child, *signals_stop_flag());
	status = session_finish_stdout(session, status);
	if (number)
		return 128 + number;
	child_status = child_exit_status(run->child.wait_status);
	if (child_status == 0 && (status == EXIT_ERROR || status == EXIT_USAGE))
		return EXIT_RUN_FAILED;
	return child_status;
}

static int run_child(struct run_command *run, char **argv)
{
	struct message message = {0};
	enum exit_status status = prepare(run, argv, &message);

	if (status == EXIT_OK)
		status = begin(run, argv[0], &message);
	if (status != EXIT_OK) {
		if (message.text[0])
			print_error("%s", message.text);
		return (int)status;
	}
	status = sample(run, argv[0], &message);
	if (message.text[0])
		print_error("%s", message.text);
	return finish(run, status);
}

/*
 * Parse the arguments; *ret_first is the index of the command. Returns false after printing an
 * error.
 */
static bool parse(int argc, char **argv, struct session *session, int *ret_first, bool *ret_done)
{
	struct sampling_options *options = &session->options;

	*options = sampling_options_default();
	if (options_parse(&run_command, argc, argv, options, ret_first, ret_done) != EXIT_OK)
		return false;
	if (*ret_done)
		return true;
	if (*ret_first >= argc) {
		print_error("no command given: pysample run [OPTION]… -- COMMAND [ARGUMENT]…");
		return false;
	}
	/* Nothing was reordered, because options must precede the command. */
	if (!session_keep_arguments(session, options->full_command ? argc : *ret_first, argv) ||
	    (!options->full_command && !session_keep_command(session, argv + *ret_first)))
		return false;
	if (options->wait.wait_ns == TARGET_STARTING_NS && !options->wait.for_any) {
		options->wait.wait_ns = WAIT_FOREVER_NS;
		options->wait.for_any = true;
	}
	return true;
}

static enum exit_status run_program(int argc, char **argv)
{
	struct run_command run = {
		.session = SESSION_NONE,
		.child = CHILD_NONE,
		.opener = PAGE_OPENER_NONE,
	};
	bool done = false;
	int first, status;

	if (!parse(argc, argv, &run.session, &first, &done))
		status = EXIT_RUN_FAILED;
	else
		status = done ? EXIT_OK : run_child(&run, argv + first);
	child_discard(&run.child);
	page_opener_stop(&run.opener);
	session_close(&run.session);
	free(run.default_path);
	return (enum exit_status)status;
}

const struct command run_command = {
	.name = "run",
	.summary = "start a command and sample it until it ends",
	.usage = "[OPTION]… [--] COMMAND [ARGUMENT]…",
	.about =
		"Starts COMMAND and samples every thread of every interpreter of its process, from\n"
		"the moment there is one until it ends, the duration is over, or a signal arrives;\n"
		"then writes the profile. The command has the terminal, and signals sent to\n"
		"pysample are forwarded to it, including SIGUSR1. A shell that will execute Python\n"
		"is waited for; processes that COMMAND starts are sampled with -s only.\n",
	.groups = sampling_options_groups + 1,
	.nr_groups = SAMPLING_OPTIONS_NR_GROUPS - 1,
	.lists_formats = true,
	.options_first = true,
	.operands = OPERAND_COMMAND,
	.epilogue =
		"Exit status: that of COMMAND; 128 + the number of a signal that killed it, or of\n"
		"the second one sent to pysample; 125 pysample failed before COMMAND was\n"
		"started, or COMMAND exited with 0 but not everything requested could be sampled\n"
		"and written; 126 COMMAND cannot be executed, 127 it was not found.\n"
		"\n"
		"Examples:\n"
		"  pysample run python3 app.py                    a recording in this folder\n"
		"  pysample run --open -- python3 app.py -v       a page, in the browser\n"
		"  pysample run -o - -f summary -- pytest -x      a table, when it has ended\n",
	.run = run_program,
};
