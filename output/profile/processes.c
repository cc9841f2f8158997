/* SPDX-License-Identifier: MIT */
#include "output/profile/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

int process_rows_add(struct process_rows *processes, const struct process_info *info)
{
	struct profile_process row = {
		.pid = info->pid,
		.parent_pid = info->parent_pid,
		.start_ns = info->start_ns,
	};
	struct profile_process *rows =
		array_reserve(processes->rows, processes->nr + 1, &processes->max, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	processes->rows = rows;
	row.name = strdup(info->name ? info->name : "");
	row.command_line = strdup(info->command_line ? info->command_line : "");
	if (!row.name || !row.command_line) {
		free(row.name);
		free(row.command_line);
		return -ENOMEM;
	}
	rows[processes->nr++] = row;
	return 0;
}

const char *process_name(const struct profile_process *process, size_t *ret_length)
{
	const char *name = process->name;
	size_t length = strlen(name);
	const char *slash;

	if (!length) {
		name = process->command_line;
		length = strcspn(name, " ");
		slash = memrchr(name, '/', length);
		if (slash) {
			length -= (size_t)(slash + 1 - name);
			name = slash + 1;
		}
	}
	*ret_length = length;
	return name;
}

void process_rows_cut(struct process_rows *processes, uint32_t nr)
{
	for (uint32_t i = nr; i < processes->nr; i++) {
		free(processes->rows[i].name);
		free(processes->rows[i].command_line);
	}
	if (nr < processes->nr)
		processes->nr = nr;
}

void process_rows_done(struct process_rows *processes)
{
	process_rows_cut(processes, 0);
	free(processes->rows);
	*processes = (struct process_rows){0};
}
