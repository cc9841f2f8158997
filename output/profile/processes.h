/* SPDX-License-Identifier: MIT */
/* The processes of a profile or a recording, in the order in which they were added. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/tables/pair_map.h"

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

/*
 * Whether two rows are of one process, which several recordings may have seen: pid, name and
 * command line are equal.
 */
bool process_is_same(const struct profile_process *a, const struct profile_process *b);

/* Finds rows by what the process is. Empty when all zero. */
struct process_index {
	struct pair_map of_process; /* halves of a hash → the first row that has it */
	struct pair_map of_name;    /* the same of process_name() */
};

/* Enter a row. Returns 0 or -ENOMEM. */
int process_index_add(struct process_index *index, const struct process_rows *processes,
		      uint32_t row);

/*
 * Returns the row of the same process, or the first one of an equal process_name();
 * PAIR_MAP_NONE if there is none. Of rows that differ but share a hash, only the first is found.
 */
uint32_t process_index_find(const struct process_index *index, const struct process_rows *processes,
			    const struct profile_process *process);
uint32_t process_index_find_name(const struct process_index *index,
				 const struct process_rows *processes,
				 const struct profile_process *process);

/* Free the maps and empty the index. */
void process_index_done(struct process_index *index);
