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

void process_rows_done(struct process_rows *processes)
{
	for (uint32_t i = 0; i < processes->nr; i++) {
		free(processes->rows[i].name);
		free(processes->rows[i].command_line);
	}
	free(processes->rows);
	*processes = (struct process_rows){0};
}
