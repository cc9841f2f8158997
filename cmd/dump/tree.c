/* SPDX-License-Identifier: MIT */
#include "cmd/dump/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "procmem/descriptor_limit.h"
#include "procmem/tree/process_list.h"

/* How often a process is dumped again that called exec meanwhile. */
enum { EXEC_MAX_TRIES = 3 };

/* Make room for nr processes. Returns 0 or -ENOMEM. */
static int reserve(struct tree *tree, size_t nr)
{
	tree->taken = calloc(nr, sizeof(struct process_dump *));
	tree->processes = calloc(nr, sizeof(*tree->processes));
	tree->problems = calloc(nr, sizeof(*tree->problems));
	return tree->taken && tree->processes && tree->problems ? 0 : -ENOMEM;
}

/* Returns why a process has no dump, allocated; NULL if out of memory. */
static char *explain(const struct process_dump *taken, const struct message *message)
{
	pid_t tid;
	const bool has_ended = taken->target.process.proc_fd < 0 ||
			       process_live_thread(&taken->target.process, &tid) != 0;

	return strdup(has_ended ? "has ended" : message->text);
}

/*
 * Append a process, with its dump or with the reason why there is none; taken then belongs to the
 * tree. Returns 0 or -ENOMEM.
 */
static int append(struct tree *tree, struct process_dump *taken,
		  const struct listed_process *process, enum exit_status status,
		  const struct message *message)
{
	const size_t i = tree->nr_processes;
	const bool has_python = status != EXIT_NOT_PYTHON || taken->target.search_err != -ENOENT;

	if (status != EXIT_OK && has_python) {
		tree->problems[i] = explain(taken, message);
		if (!tree->problems[i])
			return -ENOMEM;
	}
	tree->processes[i] = (struct tree_process){
		.dump = status == EXIT_OK ? taken->dump : NULL,
		.info = process_dump_info(taken),
		.parent_pid = process->parent_pid,
		.problem = tree->problems[i],
	};
	tree->processes[i].info.target.pid = process->pid;
	/* The name of one that had ended before it was opened is not known. */
	if (!taken->target.command_line[0])
		tree->processes[i].info.target.command_line = "?";
	tree->taken[tree->nr_processes++] = taken;
	return 0;
}

/* Dump a process, again if it calls exec meanwhile. taken is not initialised yet. */
static enum exit_status take(struct process_dump *taken, pid_t pid,
			     const struct process_dump_options *options, struct message *reterr)
{
	enum exit_status status = EXIT_NO_SAMPLE;

	for (int i = 0; i < EXEC_MAX_TRIES && status == EXIT_NO_SAMPLE; i++) {
		struct message why = {0};
		enum exit_status next;

		if (i)
			process_dump_done(taken);
		next = process_dump_take(taken, pid, options, &why);
		/* If it is gone, it has ended, as the last try said already. */
		if (i && taken->target.process.proc_fd < 0)
			break;
		status = next;
		*reterr = why;
	}
	return status;
}

/*
 * Dump a process and append it, unless it is a descendant that has ended. *ret_status is the
 * status of its dump. Returns 0 or -ENOMEM.
 */
static int add(struct tree *tree, const struct listed_process *process, bool is_root,
	       const struct process_dump_options *options, enum exit_status *ret_status,
	       struct message *reterr)
{
	struct process_dump *taken = malloc(sizeof(*taken));
	int err = 0;

	if (!taken)
		return -ENOMEM;
	*ret_status = take(taken, process->pid, options, reterr);
	if (is_root || (taken->target.process.proc_fd >= 0 && *ret_status != EXIT_NO_SAMPLE)) {
		err = append(tree, taken, process, *ret_status, reterr);
		if (!err)
			return 0;
	}
	process_dump_done(taken);
	free(taken);
	return err;
}

/*
 * List the descendants of a process; process_list_done() frees them. Returns 0, -ENOMEM, or the
 * errno of opening /proc.
 */
static int list_descendants(pid_t pid, struct process_list *ret_descendants)
{
	struct process_list list = {0};
	int err = process_list_read(&list);

	if (!err)
		err = process_list_descendants(&list, pid, &ret_descendants->processes,
					       &ret_descendants->nr_processes);
	process_list_done(&list);
	return err;
}

/*
 * Dump a process and its descendants. *ret_status is EXIT_OK if any could be dumped, else the
 * status of the first. Returns 0 or -ENOMEM.
 */
static int add_all(struct tree *tree, const struct listed_process *root,
		   const struct process_list *descendants,
		   const struct process_dump_options *options, enum exit_status *ret_status,
		   struct message *reterr)
{
	struct process_dump_options descendant_options = *options;
	int err = add(tree, root, true, options, ret_status, reterr);

	/* Whether a descendant is still starting is not worth half a second each. */
	if (descendants->nr_processes)
		descendant_options.wait = (struct target_wait){.wait_ns = 0};
	for (size_t i = 0; !err && i < descendants->nr_processes; i++) {
		struct message why = {0};
		enum exit_status status;

		err = add(tree, &descendants->processes[i], false, &descendant_options, &status,
			  &why);
		if (!err && status == EXIT_OK)
			*ret_status = EXIT_OK;
	}
	return err;
}

enum exit_status tree_take(struct tree *tree, pid_t pid, bool with_descendants,
			   const struct process_dump_options *options, struct message *reterr)
{
	const struct listed_process root = {.pid = pid};
	struct process_list descendants = {0};
	enum exit_status status = EXIT_ERROR;
	int err = with_descendants ? list_descendants(pid, &descendants) : 0;

	if (!err)
		err = reserve(tree, descendants.nr_processes + 1);
	if (err) {
		message_set(reterr, "the processes could not be listed: %s", strerror(-err));
	} else {
		if (descendants.nr_processes)
			descriptor_limit_raise();
		err = add_all(tree, &root, &descendants, options, &status, reterr);
		if (err)
			message_set(reterr, with_descendants
						    ? "out of memory: dump the processes one by "
						      "one, without -s"
						    : "out of memory");
	}
	process_list_done(&descendants);
	return err ? EXIT_ERROR : status;
}

void tree_done(struct tree *tree)
{
	for (size_t i = 0; i < tree->nr_processes; i++) {
		process_dump_done(tree->taken[i]);
		free(tree->taken[i]);
		free(tree->problems[i]);
	}
	free(tree->taken);
	free(tree->processes);
	free(tree->problems);
	*tree = (struct tree){.taken = NULL};
}

struct tree_dump tree_as_dump(const struct tree *tree, char *const *findings, size_t nr_findings)
{
	return (struct tree_dump){
		.processes = tree->processes,
		.nr_processes = tree->nr_processes,
		.findings = (const char *const *)findings,
		.nr_findings = nr_findings,
	};
}
