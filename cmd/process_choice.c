/* SPDX-License-Identifier: MIT */
#include "cmd/process_choice.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/ls/process_table.h"
#include "cmd/ls/python_processes.h"
#include "cmd/option_values.h"
#include "cmd/options.h"
#include "cmd/print.h"
#include "output/text/text.h"

/* Of so many matches the first are listed in the message. */
enum { MAX_LISTED = 8 };

enum { MAX_ANSWER_BYTES = 64 };

/* Find the processes. Returns false after printing an error. */
static bool find(const struct python_search *search, struct python_processes *ret_processes)
{
	const int err = python_processes_find(search, ret_processes);

	if (err)
		print_error("cannot list the processes: %s", strerror(-err));
	return !err;
}

/* By a pattern. */

/* Returns the process that all others descend from, or NULL. */
static const struct python_process *find_root(const struct python_processes *processes)
{
	for (uint32_t i = 0; i < processes->nr; i++) {
		const pid_t pid = processes->rows[i].pid;
		uint32_t nr = 0;

		for (uint32_t k = 0; k < processes->nr; k++)
			nr += process_list_descends(&processes->list, processes->rows[k].pid, pid);
		if (nr + 1 == processes->nr)
			return &processes->rows[i];
	}
	return NULL;
}

static void print_matches(const struct python_processes *processes, const char *pattern)
{
	struct text text = {0};

	for (uint32_t i = 0; i < processes->nr && i < MAX_LISTED; i++)
		text_printf(&text, "%s%d (%s)", i ? ", " : "", processes->rows[i].pid,
			    processes->rows[i].name);
	if (processes->nr > MAX_LISTED)
		text_printf(&text, " and %u more", processes->nr - MAX_LISTED);
	print_error("%u Python processes match '%s': give the id of one, or a longer pattern: %s",
		    processes->nr, pattern, text_string(&text));
	text_done(&text);
}

static enum exit_status choose_by_name(const char *pattern, pid_t *ret_pid)
{
	const struct python_search search = {.looks_everywhere = true, .pattern = pattern};
	struct python_processes processes;
	const struct python_process *root;

	if (!find(&search, &processes))
		return EXIT_ERROR;
	root = find_root(&processes);
	if (root) {
		*ret_pid = root->pid;
		if (processes.nr > 1)
			print_note("%u processes match '%s': %d (%s) is the one that the others "
				   "descend from",
				   processes.nr, pattern, root->pid, root->name);
	} else if (processes.nr) {
		print_matches(&processes, pattern);
	} else if (processes.nr_hidden) {
		print_error("no Python process was found that matches '%s', but %u that may not be "
			    "looked at: run as root (sudo pysample …)",
			    pattern, processes.nr_hidden);
	} else {
		print_error("no Python process matches '%s': pysample ls lists them", pattern);
	}
	python_processes_done(&processes);
	return root ? EXIT_OK : EXIT_ERROR;
}

/* By a question. */

/* Returns the process with that id, or NULL. */
static const struct python_process *find_row(const struct python_processes *processes, pid_t pid)
{
	for (uint32_t i = 0; i < processes->nr; i++)
		if (processes->rows[i].pid == pid)
			return &processes->rows[i];
	return NULL;
}

/*
 * Take a number for that of a row, or for a process id. In a container it may be both, for two
 * processes; then it is neither, and false is returned after an error was printed.
 */
static bool choose_number(const struct python_processes *processes, pid_t number, pid_t *ret_pid)
{
	const struct python_process *row =
		(uint32_t)number <= processes->nr ? &processes->rows[number - 1] : NULL;

	if (row && row->pid != number && find_row(processes, number)) {
		print_error("%d is the number of process %d and the id of another one: give the "
			    "other number of the one you mean",
			    number, row->pid);
		return false;
	}
	*ret_pid = row ? row->pid : number;
	return true;
}

/*
 * Read an answer: the number of a row or a process id. Returns false for anything else; then
 * *ret_is_over tells whether the user wants none.
 */
static bool read_answer(const struct python_processes *processes, pid_t *ret_pid, bool *ret_is_over)
{
	char answer[MAX_ANSWER_BYTES];
	pid_t number;
	char *word;

	*ret_is_over = true;
	if (!fgets(answer, sizeof(answer), stdin)) {
		(void)fputs("\n", stderr);
		return false;
	}
	word = answer + strspn(answer, " \t");
	word[strcspn(word, " \t\r\n")] = '\0';
	if (!*word && processes->nr == 1) {
		*ret_pid = processes->rows[0].pid;
		return true;
	}
	if (!*word || strcmp(word, "q") == 0)
		return false;
	*ret_is_over = false;
	return parse_pid(word, &number) && choose_number(processes, number, ret_pid);
}

static enum exit_status ask(const struct python_processes *processes, pid_t *ret_pid)
{
	struct text table = {0};
	bool is_over = false;
	bool is_chosen = false;

	process_table_format(processes, print_columns(STDERR_FILENO), true, &table);
	(void)text_write(&table, stderr);
	text_done(&table);
	while (!is_chosen && !is_over) {
		(void)fprintf(stderr, "Number or process id (%s): ",
			      processes->nr == 1 ? "Enter: 1, q: none" : "Enter: none");
		is_chosen = read_answer(processes, ret_pid, &is_over);
	}
	if (!is_chosen)
		print_error("no process was chosen");
	return is_chosen ? EXIT_OK : EXIT_USAGE;
}

static enum exit_status choose_on_terminal(const char *command, pid_t *ret_pid)
{
	const struct python_search search = {.measures_cpu = true};
	struct python_processes processes;
	enum exit_status status = EXIT_ERROR;

	if (!find(&search, &processes))
		return EXIT_ERROR;
	if (processes.nr)
		status = ask(&processes, ret_pid);
	else
		print_error("no Python process was found: pysample %s PID, or pysample ls --all",
			    command);
	python_processes_done(&processes);
	return status;
}

enum exit_status process_choose(int argc, char **argv, int first, const char *pattern,
				pid_t *ret_pid)
{
	if (pattern && first < argc) {
		print_error("give either a process id or --name, not both");
		return EXIT_USAGE;
	}
	if (pattern && !*pattern) {
		print_error("--name requires a part of a name or of a command line, or a pattern");
		return EXIT_USAGE;
	}
	if (pattern)
		return choose_by_name(pattern, ret_pid);
	if (first >= argc && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
		return choose_on_terminal(argv[0], ret_pid);
	return parse_only_pid(argc, argv, first, ret_pid) ? EXIT_OK : EXIT_USAGE;
}
