/* SPDX-License-Identifier: MIT */
/* The dumps of a process and, on request, of its descendants. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cmd/dump/process_dump.h"
#include "output/dump/tree_dump.h"

/* Empty when all zero. Arrays have nr_processes elements, in one order, the root first. */
struct tree {
	struct process_dump **taken;	/* owned; without a dump as far as it came */
	struct tree_process *processes; /* owned; they borrow from the other arrays */
	char **problems;		/* owned; NULL: none */
	size_t nr_processes;
};

/*
 * Dump process pid, and its descendants if with_descendants. A descendant that has ended is left
 * out; a process that cannot be dumped, or pid if that has ended, has the reason. Returns EXIT_OK;
 * or another exit status, with a message, if no process could be dumped, or EXIT_ERROR if out of
 * memory. tree_done() must follow in any case.
 */
enum exit_status tree_take(struct tree *tree, pid_t pid, bool with_descendants,
			   const struct process_dump_options *options, struct message *reterr);
void tree_done(struct tree *tree);

/* The tree with conclusions, for tree_dump_write(); everything is borrowed. */
struct tree_dump tree_as_dump(const struct tree *tree, char *const *findings, size_t nr_findings);
