/* SPDX-License-Identifier: MIT */
#include "cmd/ls/python_processes.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/target.h"
#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/process.h"
#include "procmem/tree/process_name.h"

/* A maps file with 65,530 lines, the default limit, has up to 10 MB. */
enum { MAX_MAPS_BYTES = 32 << 20 };

bool python_name_matches(const char *name, const char *pattern)
{
	return strpbrk(pattern, "*?[") ? fnmatch(pattern, name, 0) == 0
				       : strstr(name, pattern) != NULL;
}

/* Whether a part of the process that only its user may see shows Python. */
enum appearance { APPEARS_OTHER, APPEARS_PYTHON, APPEARS_HIDDEN };

/*
 * Judge a process by the paths of its executable and its mapped files, which is quick, and quickest
 * if the first suffices.
 */
static enum appearance appearance_of(const struct process *process)
{
	cleanup_free char *maps = NULL;
	char executable[PATH_MAX];
	size_t length;
	int err;

	process_executable(process, executable);
	if (strstr(executable, "python"))
		return APPEARS_PYTHON;
	err = process_read_whole_file(process, "maps", MAX_MAPS_BYTES, &maps, &length);
	if (err == -EPERM || err == -EACCES)
		return process_is_called_python(process) ? APPEARS_PYTHON : APPEARS_HIDDEN;
	return !err && memmem(maps, length, "python", strlen("python")) ? APPEARS_PYTHON
									: APPEARS_OTHER;
}

bool python_appears(const struct process *process)
{
	return appearance_of(process) == APPEARS_PYTHON;
}

/* Search the process for an interpreter. Returns false if it is not to be listed. */
static bool find_interpreter(const struct process *process, enum appearance appearance,
			     struct python_process *row)
{
	const struct target_wait at_once = {.wait_ns = 0};
	struct message ignored = {0};
	struct target target;
	const enum exit_status status = target_open(row->pid, &at_once, &target, &ignored);

	if (status == EXIT_OK) {
		row->access = PYTHON_READABLE;
		memcpy(row->version, target.version, sizeof(row->version));
		row->free_threaded = target.runtime.build.free_threaded;
	} else {
		row->access = status == EXIT_PERMISSION ? PYTHON_FORBIDDEN : PYTHON_UNKNOWN;
	}
	target_close(&target);
	switch (row->access) {
	case PYTHON_READABLE:
		return true;
	case PYTHON_FORBIDDEN:
		return appearance == APPEARS_PYTHON;
	case PYTHON_UNKNOWN:
		return status == EXIT_NOT_PYTHON && process_is_called_python(process);
	}
	return false;
}

/* Name a process that matches the pattern. Returns 0, -ENOENT if it does not, or -ENOMEM. */
static int set_name(const struct python_search *search, const struct process *process,
		    struct python_process *row)
{
	char command_line[COMMAND_LINE_MAX_BYTES];
	char name[PROCESS_NAME_MAX_BYTES];

	process_name_read(process, name);
	process_command_line(process, command_line, sizeof(command_line));
	if (search->pattern && !python_name_matches(name, search->pattern) &&
	    !python_name_matches(command_line, search->pattern))
		return -ENOENT;
	row->name = strdup(search->full_command ? command_line : name);
	return row->name ? 0 : -ENOMEM;
}

/* Look at one process. Returns 0, -ENOENT if it is not to be listed, or -ENOMEM. */
static int look(const struct python_search *search, const struct listed_process *listed,
		uint32_t *nr_hidden, struct python_process *ret_row)
{
	struct python_process row = {
		.pid = listed->pid, .nr_threads = listed->nr_threads, .cpu_percent = -1};
	struct process process;
	enum appearance appearance;
	int err = process_open(listed->pid, &process, NULL);

	if (err)
		return -ENOENT;
	row.uid = process.uid;
	err = set_name(search, &process, &row);
	appearance = err ? APPEARS_OTHER : appearance_of(&process);
	*nr_hidden += appearance == APPEARS_HIDDEN;
	if (!err && (appearance == APPEARS_HIDDEN ||
		     (appearance == APPEARS_OTHER && !search->looks_everywhere)))
		err = -ENOENT;
	row.cpu_at_ns = clock_now_ns();
	if (!err && process_cpu_time(row.pid, &row.cpu_ns))
		err = -ENOENT;
	if (!err && !find_interpreter(&process, appearance, &row))
		err = -ENOENT;
	if (!err) {
		container_read(&process, row.container);
		if (process_other_namespace(&process, "pid", &row.other_pid_namespace))
			row.other_pid_namespace = false;
		*ret_row = row;
	} else {
		free(row.name);
	}
	process_close(&process);
	return err;
}

/*
 * Wait until each row's interval has passed, and see what CPU time was used in it. Processes that
 * have ended are removed.
 */
static void measure_cpu(struct python_processes *processes)
{
	const uint64_t begin_ns = clock_now_ns();
	uint64_t end_ns = 0;
	uint32_t nr_alive = 0;

	for (uint32_t i = 0; i < processes->nr; i++)
		end_ns = processes->rows[i].cpu_at_ns + PYTHON_CPU_INTERVAL_NS;
	if (end_ns > begin_ns) {
		const struct timespec pause = timespec_of(end_ns - begin_ns);

		(void)nanosleep(&pause, NULL);
	}
	for (uint32_t i = 0; i < processes->nr; i++) {
		struct python_process row = processes->rows[i];
		const uint64_t wall_ns = clock_now_ns() - row.cpu_at_ns;
		uint64_t cpu_ns;

		if (process_cpu_time(row.pid, &cpu_ns) || cpu_ns < row.cpu_ns) {
			free(row.name);
			continue;
		}
		row.cpu_percent = 100.0 * (double)(cpu_ns - row.cpu_ns) / (double)wall_ns;
		processes->rows[nr_alive++] = row;
	}
	processes->nr = nr_alive;
}

/* Look at every process. Returns 0 or -ENOMEM. */
static int look_at_all(const struct python_search *search, struct python_processes *processes)
{
	for (size_t i = 0; i < processes->list.nr_processes; i++) {
		const struct listed_process *listed = &processes->list.processes[i];
		struct python_process *rows = array_reserve(processes->rows, processes->nr + 1,
							    &processes->max, sizeof(*rows));
		int err;

		if (!rows)
			return -ENOMEM;
		processes->rows = rows;
		if (listed->pid == getpid())
			continue;
		err = look(search, listed, &processes->nr_hidden, &rows[processes->nr]);
		if (err == -ENOMEM)
			return err;
		processes->nr += !err;
	}
	return 0;
}

int python_processes_find(const struct python_search *search,
			  struct python_processes *ret_processes)
{
	struct python_processes processes = {0};
	int err = process_list_read(&processes.list);

	if (!err)
		err = look_at_all(search, &processes);
	if (!err && search->measures_cpu && processes.nr)
		measure_cpu(&processes);
	if (err)
		python_processes_done(&processes);
	else
		*ret_processes = processes;
	return err;
}

void python_processes_done(struct python_processes *processes)
{
	for (uint32_t i = 0; i < processes->nr; i++)
		free(processes->rows[i].name);
	free(processes->rows);
	process_list_done(&processes->list);
	*processes = (struct python_processes){0};
}
