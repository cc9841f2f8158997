/* SPDX-License-Identifier: MIT */
/* pysample doctor: what can be read of a process, and what to do if it cannot. */
#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/print.h"
#include "cmd/target.h"
#include "output/dump.h"
#include "output/label.h"
#include "output/text.h"
#include "procmem/cleanup.h"
#include "sampler/python/threads.h"
#include "sampler/sampler.h"

static const char help[] =
	"usage: pysample doctor PID\n"
	"\n"
	"Goes through what sampling a process needs, one line each, and says what to do\n"
	"about the first thing that is missing.\n"
	"\n"
	"  -h, --help       this text\n"
	"\n"
	"Exit status: 0 it can be sampled, 1 error, 2 usage, 3 not a Python process or an\n"
	"unknown version, 4 permission denied, 5 the process ended.\n";

/* One line of the report: a heading and what was found, made harmless for a terminal. */
static void report(const char *heading, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void report(const char *heading, const char *format, ...)
{
	struct text line = {0};
	struct message found;
	va_list args;

	va_start(args, format);
	(void)vsnprintf(found.text, sizeof(found.text), format, args);
	va_end(args);
	text_printf(&line, "%-12s ", heading);
	label_append_escaped(&line, found.text, strlen(found.text), LABEL_DISPLAY);
	text_puts(&line, "\n");
	(void)text_write(&line, stdout);
	text_done(&line);
}

static void report_process(const struct target *target)
{
	static const char *const kinds[] = {"mnt", "pid", "user", "net"};
	const struct passwd *user = getpwuid(target->process.uid);
	struct text others = {0};
	bool other, known = true;

	report("process", "%d of user %s (%u): %s", target->process.pid, user ? user->pw_name : "?",
	       target->process.uid, target->command_line);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (process_other_namespace(&target->process, kinds[i], &other) != 0)
			known = false;
		else if (other)
			text_printf(&others, "%s%s", others.length ? ", " : "", kinds[i]);
	if (others.length)
		report("namespaces",
		       "its own: %s (as in a container); everything is looked up "
		       "through /proc/%d",
		       text_string(&others), target->process.pid);
	else
		report("namespaces", "%s", known ? "ours" : "cannot be told");
	text_done(&others);
}

static void report_interpreter(const struct target *target)
{
	const struct runtime *runtime = &target->runtime;

	report("memory", "can be read");
	report("interpreter", "CPython %s, by %s in %s", target->version, runtime->found_by,
	       runtime->image_path);
	if (runtime->build_id[0])
		report("build ID", "%s", runtime->build_id);
}

/* Try what attach and dump do: list the threads and walk their stacks. */
static int try_threads(struct target *target)
{
	struct sampler *sampler = NULL;
	struct thread_list list = {0};
	struct dump *dump = dump_create();
	int err = dump ? sampler_create(&target->process, &target->live.memory,
					&target->runtime.build, target->runtime.addr, &sampler)
		       : -ENOMEM;

	if (!err)
		err = thread_list_read(&target->live.memory, &target->runtime.build,
				       target->runtime.addr, &list);
	if (!err)
		err = sampler_dump(sampler, dump_sink(dump));
	if (!err)
		report("threads", "%zu in %zu interpreter%s, all stacks could be walked",
		       list.nr_threads, list.nr_interpreters, list.nr_interpreters == 1 ? "" : "s");
	thread_list_done(&list);
	sampler_destroy(sampler);
	dump_destroy(dump);
	return err;
}

static enum exit_status examine(pid_t pid, struct target *target)
{
	struct message message = {0};
	enum exit_status status = target_open(pid, target, &message);
	int err;

	if (target->process.proc_fd >= 0)
		report_process(target);
	if (status == EXIT_OK) {
		report_interpreter(target);
		err = try_threads(target);
		if (err)
			status = target_explain(target, err, &message);
	} else if (status == EXIT_PERMISSION) {
		report("memory", "cannot be read");
	} else if (status == EXIT_NOT_PYTHON) {
		report("memory", "can be read");
		report("interpreter", "none that can be used");
	}
	if (status == EXIT_OK)
		report("verdict", "it can be sampled: pysample attach %d", pid);
	else
		report("verdict", "%s", message.text);
	return status;
}

enum exit_status command_doctor(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct target target = {.process = PROCESS_CLOSED};
	enum exit_status status;
	pid_t pid;
	int option;

	while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		if (option == 'h') {
			(void)fputs(help, stdout);
			return EXIT_OK;
		}
		print_error("'pysample doctor --help' says how it is used");
		return EXIT_USAGE;
	}
	if (!parse_only_pid(argc, argv, optind, &pid))
		return EXIT_USAGE;
	status = examine(pid, &target);
	target_close(&target);
	return status;
}
