/* SPDX-License-Identifier: MIT */
#include "cmd/target.h"

#include <errno.h>
#include <string.h>

#include "cmd/print.h"

/*
 * The error that the user has to know of: what a process looks like while it ends or
 * calls exec says nothing of it.
 */
static int underlying_error(struct target *target, int err)
{
	if (err == -EPERM || err == -EACCES || err == -ENOMEM)
		return err;
	return remote_memory_check(&target->live.memory) == -ESRCH ? -ESRCH : err;
}

/* Whether there is a program to be read still: then it is another one. */
static bool is_replaced(struct target *target)
{
	uint64_t word;

	return remote_memory_read_u64(&target->live.memory, target->runtime.addr, &word) != -ESRCH;
}

enum exit_status target_explain(struct target *target, int err, struct message *reterr)
{
	switch (underlying_error(target, err)) {
	case -EPERM:
	case -EACCES:
		process_explain_eperm(&target->process, reterr);
		return EXIT_PERMISSION;
	case -ESRCH:
		message_set(reterr,
			    is_replaced(target) ? "process %d has replaced its program: try again"
						: "process %d ended before the first sample",
			    target->process.pid);
		return EXIT_NO_SAMPLE;
	case -ENOENT:
	case -ENOTSUP:
	case -EAGAIN:
		if (!reterr->text[0])
			message_set(reterr,
				    "the interpreter of process %d is starting or ending: try "
				    "again",
				    target->process.pid);
		return EXIT_NOT_PYTHON;
	case -ENOMEM:
		message_set(reterr, "out of memory: a row per function needs less than --lines, "
				    "and a shorter run (-d) less than a long one");
		return EXIT_ERROR;
	default:
		if (!reterr->text[0])
			message_set(reterr, "process %d could not be read (%s): try again",
				    target->process.pid, strerror(-err));
		return EXIT_ERROR;
	}
}

enum exit_status target_open(pid_t pid, struct target *ret_target, struct message *reterr)
{
	struct target *target = ret_target;
	int err;

	memset(target, 0, sizeof(*target));
	target->process = PROCESS_CLOSED;
	err = process_open(pid, &target->process, reterr);
	if (err) {
		if (!reterr->text[0])
			message_set(reterr, "process %d could not be opened: %s", pid,
				    strerror(-err));
		return err == -EPERM ? EXIT_PERMISSION : EXIT_ERROR;
	}
	process_command_line(&target->process, target->command_line, sizeof(target->command_line));
	live_memory_init(&target->live, &target->process);
	if (process_is_kernel_thread(&target->process)) {
		message_set(reterr,
			    "process %d is a kernel thread, which runs no Python: pgrep -f NAME "
			    "finds a process",
			    pid);
		return EXIT_NOT_PYTHON;
	}
	err = maps_read(&target->process, &target->maps);
	if (!err)
		err = runtime_find(&target->process, &target->maps, &target->live.memory,
				   &target->runtime, reterr);
	if (err)
		return target_explain(target, err, reterr);
	version_format(target->runtime.build.version_hex, target->version);
	return EXIT_OK;
}

void target_print_doubts(const struct target *target)
{
	if (target->runtime.build.newer_than_tested)
		print_note("CPython %s is newer than this pysample was tested with, or a "
			   "pre-release: its structs were told by what they hold",
			   target->version);
}

void target_close(struct target *target)
{
	if (!target)
		return;
	maps_done(&target->maps);
	process_close(&target->process);
}
