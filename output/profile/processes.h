/* SPDX-License-Identifier: MIT */
/* The processes of a profile or a recording, in the order in which they were added. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What is known of a process when it is first seen. Strings are borrowed. */
struct process_info {
	pid_t pid;	  /* in the PID namespace it was sampled from; 0: unknown */
	pid_t parent_pid; /* 0: unknown, or not sampled */
	/* Executable and script or module ("gunicorn app:wsgi"); NULL: unknown. Not escaped. */
	const char *name;
	/* All its arguments, separated by spaces, only if they may be shown; else NULL. */
	const char *command_line;
	uint64_t start_ns; /* when it was first seen, in the clock of the samples; 0: unknown */
};

/* A process that was sampled. Strings are owned by its table. */
struct profile_process {
	pid_t pid;	    /* 0: unknown */
	pid_t parent_pid;   /* 0: unknown, or not sampled */
	char *name;	    /* as in struct process_info; "": unknown */
	char *command_line; /* the same */
	uint64_t start_ns,
		end_ns; /* in the clock of the samples; 0: unknown, or it had not ended */
};

/* A growing table of processes. Empty when all zero. */
struct process_rows {
	struct profile_process *rows; /* owned, with their strings */
	uint32_t nr, max;
};

/* Append a process, whose strings are copied. Returns 0 or -ENOMEM. */
int process_rows_add(struct process_rows *processes, const struct process_info *info);

/*
 * Returns the name to show, borrowed: if it is unknown, the first argument without its folder; ""
 * if there is none.
 */
const char *process_name(const struct profile_process *process, size_t *ret_length);

/* Drop all rows but the first nr. */
void process_rows_cut(struct process_rows *processes, uint32_t nr);

/* Free the rows and empty the table. */
void process_rows_done(struct process_rows *processes);
