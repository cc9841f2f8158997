/* SPDX-License-Identifier: MIT */
#include "cmd/target.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/option_values.h"
#include "cmd/print.h"
#include "procmem/clock.h"
#include "procmem/permission.h"
#include "procmem/tree/process_name.h"
#include "sampler/cpython/threads/threads.h"
#include "sampler/sample.h"

/* Room for "process " and an id. */
enum { PROGRAM_NAME_MAX_BYTES = 24 };

/*
 * Returns the error to report. Reading a process that ends or calls exec can fail with any error,
 * which becomes -ESRCH.
 */
static int underlying_error(struct target *target, int err)
{
	if (err == -EPERM || err == -EACCES || err == -ENOMEM)
		return err;
	return remote_memory_check(&target->live.memory) == -ESRCH ? -ESRCH : err;
}

/* Whether there is still a program to read, which is then another one. */
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
		permission_explain(&target->process, reterr);
		return EXIT_PERMISSION;
	case -ESRCH:
		message_set(reterr,
			    is_replaced(target) ? "process %d has called exec: try again"
						: "process %d ended before the first sample",
			    target->process.pid);
		return EXIT_NO_SAMPLE;
	case -ENOENT:
	case -ENOTSUP:
	case -EAGAIN:
		if (!reterr->text[0])
			message_set(reterr,
				    "the interpreter of process %d is starting or ending: wait "
				    "for it (--wait 10), or try again",
				    target->process.pid);
		return EXIT_NOT_PYTHON;
	case -ENOMEM:
		message_set(reterr, "out of memory: --functions needs less memory than --lines, "
				    "and a shorter run (-d) less than a longer one");
		return EXIT_ERROR;
	case -E2BIG:
		message_set(reterr,
			    "process %d has more than %u threads, or its thread list is circular",
			    target->process.pid, MAX_THREADS);
		return EXIT_ERROR;
	default:
		if (!reterr->text[0])
			message_set(reterr, "process %d could not be read (%s): try again",
				    target->process.pid, strerror(-err));
		return EXIT_ERROR;
	}
}

bool target_parse_wait(const char *text, struct target_wait *ret_wait)
{
	if (!parse_wait(text, &ret_wait->wait_ns)) {
		print_error("invalid time to wait '%s': use 10, 2.5, 500ms, 5m, or 0 for none",
			    text);
		return false;
	}
	ret_wait->for_any = ret_wait->wait_ns > 0;
	return true;
}

/* Search the process as it is now. Returns errors of runtime_find(). */
static int search(struct target *target, const volatile sig_atomic_t *stop,
		  struct runtime *ret_runtime, struct message *reterr)
{
	char name[PROGRAM_NAME_MAX_BYTES];
	char exe_path[PATH_MAX];
	const struct program program = {
		.name = name,
		.is_alive = true,
		.exe_path = exe_path,
		.maps = &target->maps,
		.memory = &target->live.memory,
		.images = &target->images.source,
	};

	(void)snprintf(name, sizeof(name), "process %d", target->process.pid);
	process_executable(&target->process, exe_path);
	return runtime_find(&program, stop, ret_runtime, reterr);
}

/*
 * Look once. Returns errors of runtime_find(); where no search is needed, the error of the last
 * one.
 */
static int look(struct target *target, struct search_schedule *schedule,
		const volatile sig_atomic_t *stop, struct message *reterr)
{
	struct maps maps = {0};
	struct runtime runtime;
	bool unchanged;
	int err = maps_read(&target->process, &maps);

	if (err)
		return err;
	unchanged = maps_same(&maps, &target->maps);
	maps_done(&target->maps);
	target->maps = maps;
	if (!search_schedule_is_due(schedule, unchanged, clock_now_ns()))
		return schedule->err;
	*reterr = (struct message){0};
	err = search(target, stop, &runtime, reterr);
	search_schedule_record(schedule, err, clock_now_ns());
	if (!err)
		target->runtime = runtime;
	return err;
}

/* Read what is shown of the command line. */
static void read_command_line(const struct target *target, char ret_line[COMMAND_LINE_MAX_BYTES])
{
	if (target->shows_arguments)
		process_command_line(&target->process, ret_line, COMMAND_LINE_MAX_BYTES);
	else
		process_name_read(&target->process, ret_line);
}

void target_show_arguments(struct target *target)
{
	target->shows_arguments = true;
	read_command_line(target, target->command_line);
}

/* Record the command line and the version of the program that was found. */
static void describe(struct target *target)
{
	read_command_line(target, target->command_line);
	version_format(target->runtime.build.version_hex, target->version);
}

/*
 * Whether the next looks may find something else than the last one. What looks like a CPython
 * that must be refused may have its libpython or its data mapped a moment later. After
 * TARGET_STARTING_NS it is refused, however long a wait was requested.
 */
static bool is_worth_waiting(struct target *target, const struct target_wait *wait, int err,
			     uint64_t waited_ns)
{
	bool may_change = wait->for_any || process_age_ns(&target->process) < TARGET_STARTING_NS;
	pid_t tid;

	switch (err) {
	case -EAGAIN:
		return true;
	case -ENOENT:
		return may_change;
	case -ENOTSUP:
	case -EBADMSG:
	case -EFAULT:
		return may_change && waited_ns < TARGET_STARTING_NS;
	case -ESRCH: /* an exec is under way, unless the process is ending */
		return process_live_thread(&target->process, &tid) == 0;
	default:
		return false;
	}
}

void target_search_begin(const struct target_wait *wait, struct target_search *ret_search)
{
	*ret_search = (struct target_search){.wait = *wait, .next_ns = clock_now_ns()};
	search_schedule_init(&ret_search->schedule, ret_search->next_ns, wait->wait_ns);
}

int target_search_look(struct target *target, struct target_search *search, struct message *reterr)
{
	struct search_schedule *schedule = &search->schedule;
	const struct target_wait *wait = &search->wait;
	const uint64_t begin_ns = clock_now_ns();
	uint64_t end_ns;
	int err;

	if (process_memory_is_gone(&target->process) &&
	    process_reopen_memory(&target->process) != 0)
		return -ESRCH;
	err = look(target, schedule, wait->stop, reterr);
	if (!err)
		describe(target);
	if (!err || begin_ns >= schedule->end_ns ||
	    !is_worth_waiting(target, wait, err, begin_ns - schedule->start_ns))
		return err;
	if (wait->stop && *wait->stop)
		return -EINTR;
	end_ns = clock_now_ns();
	search->next_ns = end_ns + search_schedule_pause_ns(schedule, end_ns, end_ns - begin_ns);
	return -EINPROGRESS;
}

/* Look until there is an interpreter or the wait is over. Errors of target_search_look(). */
static int find_interpreter(struct target *target, const struct target_wait *wait,
			    struct message *reterr)
{
	struct target_search looks;
	int err;

	target_search_begin(wait, &looks);
	for (;;) {
		err = target_search_look(target, &looks, reterr);
		if (err != -EINPROGRESS)
			return err;
		clock_sleep_until(looks.next_ns);
	}
}

/* Set the message after a requested wait, where the search itself suggests no remedy. */
static void explain_wait(const struct target *target, const struct target_wait *wait, int err,
			 struct message *reterr)
{
	double wait_s = (double)wait->wait_ns / NS_PER_S;

	if (err == -ENOENT && wait->for_any)
		message_set(
			reterr,
			"no CPython interpreter was found in process %d within %g s: give the id "
			"of the Python process itself (pysample ls lists them), or wait "
			"longer (--wait %g)",
			target->process.pid, wait_s, 2 * wait_s);
	else if (err == -EAGAIN && (wait->for_any || !reterr->text[0]))
		message_set(reterr,
			    "CPython in process %d has no interpreter after %g s: it may be "
			    "ending; otherwise wait longer (--wait %g)",
			    target->process.pid, wait_s, wait_s < 5 ? 10 : 2 * wait_s);
}

static enum exit_status open_process(pid_t pid, struct target *target, struct message *reterr)
{
	int err = process_open(pid, &target->process, reterr);

	if (!err)
		return EXIT_OK;
	if (!reterr->text[0])
		message_set(reterr, "process %d could not be opened: %s", pid, strerror(-err));
	return err == -EPERM || err == -EACCES ? EXIT_PERMISSION : EXIT_ERROR;
}

enum exit_status target_open_process(pid_t pid, struct target *ret_target, struct message *reterr)
{
	struct target *target = ret_target;
	enum exit_status status;

	memset(target, 0, sizeof(*target));
	target->process = PROCESS_CLOSED;
	status = open_process(pid, target, reterr);
	if (status != EXIT_OK)
		return status;
	read_command_line(target, target->command_line);
	live_memory_init(&target->live, &target->process);
	live_images_init(&target->images, &target->process);
	if (process_is_kernel_thread(&target->process)) {
		message_set(reterr,
			    "process %d is a kernel thread, which runs no Python: pysample ls "
			    "lists the processes that do",
			    pid);
		target->search_err = -ENOENT;
		return EXIT_NOT_PYTHON;
	}
	return EXIT_OK;
}

enum exit_status target_open(pid_t pid, const struct target_wait *wait, struct target *ret_target,
			     struct message *reterr)
{
	struct target *target = ret_target;
	enum exit_status status = target_open_process(pid, target, reterr);
	int err;

	if (status != EXIT_OK)
		return status;
	err = find_interpreter(target, wait, reterr);
	target->search_err = err;
	if (err == -EINTR) {
		message_set(reterr, "stopped before the first sample");
		return EXIT_NO_SAMPLE;
	}
	if (err) {
		explain_wait(target, wait, err, reterr);
		return target_explain(target, err, reterr);
	}
	return EXIT_OK;
}

/*
 * The first mapping of the module that an address is in, or in the .bss behind it; NULL: none.
 * Later ones change when the loader protects what it has relocated.
 */
static const struct mapping *module_of(const struct maps *maps, remote_addr addr)
{
	for (size_t i = 0, end; i < maps->nr_mappings && maps->mappings[i].start <= addr; i = end) {
		const struct mapping *last;

		end = maps_module_end(maps, i);
		last = &maps->mappings[end - 1];
		if (end < maps->nr_mappings && !last[1].inode && last[1].start == last->end)
			last++;
		if (maps->mappings[i].inode && addr < last->end)
			return &maps->mappings[i];
	}
	return NULL;
}

bool target_take_over(struct target *target, const struct target *parent)
{
	const remote_addr addr = parent->runtime.addr;
	const struct mapping *theirs, *ours;
	struct maps maps = {0};

	if (!addr || maps_read(&target->process, &maps))
		return false;
	maps_done(&target->maps);
	target->maps = maps;
	theirs = module_of(&parent->maps, addr);
	ours = module_of(&target->maps, addr);
	if (!theirs || !ours || ours->start != theirs->start || ours->inode != theirs->inode ||
	    ours->dev_major != theirs->dev_major || ours->dev_minor != theirs->dev_minor ||
	    ours->file_offset != theirs->file_offset)
		return false;
	target->runtime = parent->runtime;
	describe(target);
	return true;
}

void target_follow_begin(struct target *target, const struct target_wait *wait,
			 struct target_search *ret_search)
{
	target_search_begin(wait, ret_search);
	if (!process_memory_is_gone(&target->process))
		ret_search->before_addr = target->runtime.addr;
	/* If the process has ended, the first look says so. */
	(void)process_reopen_memory(&target->process);
	live_memory_init(&target->live, &target->process);
}

enum target_next target_follow_look(struct target *target, struct target_search *search,
				    struct message *reterr)
{
	char command_line[COMMAND_LINE_MAX_BYTES];
	const int err = target_search_look(target, search, reterr);

	switch (err) {
	case 0:
		return target->runtime.addr == search->before_addr ? TARGET_SAME : TARGET_FOLLOWED;
	case -EINPROGRESS:
		return TARGET_UNKNOWN;
	case -ESRCH:
		*reterr = (struct message){0};
		return TARGET_ENDED;
	case -EINTR:
		*reterr = (struct message){0};
		return TARGET_INTERRUPTED;
	case -ENOENT:
		read_command_line(target, command_line);
		message_set(reterr, "no CPython in %s", command_line);
		return TARGET_NO_PYTHON;
	case -EAGAIN:
		return TARGET_NO_INTERPRETER;
	default:
		(void)target_explain(target, err, reterr);
		return TARGET_REFUSED;
	}
}

const char *target_memory_note(const struct target *target)
{
	if (!target->live.through_file)
		return "";
	return " through /proc/PID/mem only: process_vm_readv is forbidden or missing here; "
	       "slower, and the parts of a copy are read further apart in time";
}

void target_print_found(const struct target *target)
{
	const struct runtime *runtime = &target->runtime;

	print_note("_PyRuntime at 0x%llx by %s in %s", (unsigned long long)runtime->addr,
		   runtime->found_by, runtime->image_path);
	if (target->live.through_file)
		print_note("the memory is read%s", target_memory_note(target));
}

void target_print_untested(const struct py_build *build, const char *version)
{
	if (build->newer_than_tested)
		print_note("CPython %s is newer than this pysample was tested with, or a "
			   "pre-release: its struct layouts were inferred from their contents%s",
			   version,
			   build->traits.generator_states.awaited_words
				   ? ""
				   : ", and its asyncio tasks are not read");
}

void target_close(struct target *target)
{
	if (!target)
		return;
	maps_done(&target->maps);
	process_close(&target->process);
}

int target_create_sampler(struct target *target, struct sampler **ret_sampler)
{
	int err = sampler_create(&target->process, &target->live.memory, &target->runtime.build,
				 target->runtime.addr, ret_sampler);

	if (!err)
		sampler_set_live(*ret_sampler, &target->maps, &target->images.source);
	return err;
}
