/* SPDX-License-Identifier: MIT */
#include "output/dump/tree_dump.h"

#include <errno.h>
#include <string.h>

#include "output/profile/label.h"
#include "output/text/json.h"
#include "output/text/text.h"

/* Limit on the processes that one line of the text lists; JSON has all. */
enum { MAX_LISTED = 16 };

int tree_dump_group(const struct tree_dump *tree, bool with_names, struct thread_groups *groups)
{
	int err = 0;

	for (size_t i = 0; !err && i < tree->nr_processes; i++) {
		const struct tree_process *process = &tree->processes[i];

		if (process->dump)
			err = dump_add_to_groups(
				process->dump, process->info.target.pid,
				with_names ? process->info.target.command_line : NULL, groups);
	}
	return err;
}

int tree_dump_describe_tasks(const struct tree_dump *tree, bool with_names,
			     struct paragraphs *paragraphs)
{
	int err = 0;

	for (size_t i = 0; !err && i < tree->nr_processes; i++) {
		const struct tree_process *process = &tree->processes[i];

		if (process->dump)
			err = dump_describe_tasks(
				process->dump, process->info.target.pid,
				with_names ? process->info.target.command_line : NULL, paragraphs);
	}
	return err;
}

/* Whether two processes are listed under one name. */
static bool is_alike(const struct tree_process *a, const struct tree_process *b)
{
	const bool run_python = a->dump && b->dump;

	if (strcmp(a->info.target.command_line, b->info.target.command_line) != 0 ||
	    !a->dump != !b->dump || a->problem || b->problem)
		return false;
	return !run_python || strcmp(a->info.python.version, b->info.python.version) == 0;
}

/* Whether a process is the first of those that are listed under its name. */
static bool is_first(const struct tree_dump *tree, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (is_alike(&tree->processes[k], &tree->processes[i]))
			return false;
	return true;
}

/* Append a name and the ids of the processes that have it. */
static void append_namesakes(struct text *text, const struct tree_dump *tree, size_t first)
{
	const struct tree_process *process = &tree->processes[first];
	size_t nr = 0;

	label_append_string(text, process->info.target.command_line);
	for (size_t i = first; i < tree->nr_processes; i++)
		if (is_alike(process, &tree->processes[i]) && nr++ < MAX_LISTED)
			text_printf(text, "%s%d", nr > 1 ? ", " : " (",
				    tree->processes[i].info.target.pid);
	if (nr > MAX_LISTED)
		text_printf(text, " and %zu more", nr - MAX_LISTED);
	text_puts(text, ")");
}

/* Append the processes that have a dump, or those that run no Python, after a heading. */
static void append_processes(struct text *text, const struct tree_dump *tree, bool with_dump)
{
	size_t nr_listed = 0;

	for (size_t i = 0; i < tree->nr_processes; i++) {
		const struct tree_process *process = &tree->processes[i];

		if (!process->dump != !with_dump || process->problem || !is_first(tree, i))
			continue;
		text_puts(text, nr_listed++ ? ", " : " ");
		if (nr_listed > MAX_LISTED) {
			text_puts(text, "…");
			break;
		}
		append_namesakes(text, tree, i);
		if (with_dump &&
		    strcmp(process->info.python.version,
			   tree->processes[0].dump ? tree->processes[0].info.python.version : "") !=
			    0)
			text_printf(text, " CPython %s", process->info.python.version);
	}
	text_puts(text, "\n");
}

/* Returns the number of processes with a dump, or of those that run no Python. */
static size_t count(const struct tree_dump *tree, bool with_dump)
{
	size_t nr = 0;

	for (size_t i = 0; i < tree->nr_processes; i++)
		nr += !tree->processes[i].dump == !with_dump && !tree->processes[i].problem;
	return nr;
}

/* Append what the tree consists of. */
static void append_head(struct text *text, const struct tree_dump *tree)
{
	const struct tree_process *root = &tree->processes[0];
	const size_t nr_python = count(tree, true);
	const size_t nr_others = count(tree, false);

	text_printf(text, "Process %d: ", root->info.target.pid);
	label_append_string(text, root->info.target.command_line);
	text_puts(text, "\n");
	if (root->dump)
		text_printf(text, "CPython %s\n", root->info.python.version);
	if (nr_python > 1 || !root->dump) {
		text_printf(text, "%zu Python process%s:", nr_python, nr_python == 1 ? "" : "es");
		append_processes(text, tree, true);
	}
	if (nr_others) {
		text_printf(text, "%zu process%s without Python:", nr_others,
			    nr_others == 1 ? "" : "es");
		append_processes(text, tree, false);
	}
	for (size_t i = 0; i < tree->nr_processes; i++) {
		if (!tree->processes[i].problem)
			continue;
		text_printf(text, "Not shown: %d ", tree->processes[i].info.target.pid);
		label_append_string(text, tree->processes[i].info.target.command_line);
		text_puts(text, ": ");
		label_append_string(text, tree->processes[i].problem);
		text_puts(text, "\n");
	}
	for (size_t i = 0; i < tree->nr_processes; i++)
		if (tree->processes[i].dump)
			dump_append_finalizing(text, tree->processes[i].dump,
					       tree->processes[i].info.target.pid,
					       tree->processes[i].info.target.command_line);
}

int tree_dump_write_text(const struct tree_dump *tree, FILE *out)
{
	struct thread_groups groups = {0};
	struct paragraphs tasks = {0};
	struct text text = {0};
	int err = tree_dump_group(tree, true, &groups);

	append_head(&text, tree);
	dump_append_findings(&text, tree->findings, tree->nr_findings);
	thread_groups_append(&text, &groups);
	thread_groups_done(&groups);
	if (!err)
		err = tree_dump_describe_tasks(tree, true, &tasks);
	paragraphs_append(&text, &tasks);
	paragraphs_done(&tasks);
	for (size_t i = 0; i < tree->nr_processes; i++)
		if (tree->processes[i].dump)
			dump_append_native(&text, tree->processes[i].dump,
					   tree->processes[i].info.target.pid,
					   tree->processes[i].info.target.command_line);
	if (!err)
		err = text_write(&text, out);
	text_done(&text);
	return err;
}

static void write_processes(struct json *json, const struct tree_dump *tree)
{
	json_key(json, "processes");
	json_array_begin(json);
	for (size_t i = 0; i < tree->nr_processes; i++) {
		const struct tree_process *process = &tree->processes[i];

		if (!process->dump)
			continue;
		json_object_begin(json);
		json_member_known(json, "parent_pid", (uint64_t)process->parent_pid);
		dump_write_members(json, process->dump, &process->info);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_others(struct json *json, const struct tree_dump *tree)
{
	json_key(json, "others");
	json_array_begin(json);
	for (size_t i = 0; i < tree->nr_processes; i++) {
		const struct tree_process *process = &tree->processes[i];

		if (process->dump)
			continue;
		json_object_begin(json);
		json_key(json, "pid");
		json_i64(json, process->info.target.pid);
		json_member_string(json, "command", process->info.target.command_line);
		json_member_known(json, "parent_pid", (uint64_t)process->parent_pid);
		json_member_string(json, "problem", process->problem);
		json_object_end(json);
	}
	json_array_end(json);
}

int tree_dump_write_json(const struct tree_dump *tree, FILE *out)
{
	struct thread_groups groups = {0};
	struct json json;
	int err = tree_dump_group(tree, true, &groups);

	if (err) {
		thread_groups_done(&groups);
		return err;
	}
	json_init(&json, out, 2);
	json_object_begin(&json);
	json_member_u64(&json, "version", DUMP_JSON_VERSION);
	write_processes(&json, tree);
	write_others(&json, tree);
	dump_write_findings(&json, tree->findings, tree->nr_findings);
	json_key(&json, "groups");
	thread_groups_write(&json, &groups);
	json_object_end(&json);
	thread_groups_done(&groups);
	return json_finish(&json);
}

int tree_dump_write(const struct tree_dump *tree, bool is_tree, bool as_json, FILE *out)
{
	const struct tree_process *root = &tree->processes[0];

	if (is_tree)
		return as_json ? tree_dump_write_json(tree, out) : tree_dump_write_text(tree, out);
	dump_set_findings(root->dump, tree->findings, tree->nr_findings);
	return as_json ? dump_write_json(root->dump, &root->info, out)
		       : dump_write_text(root->dump, &root->info, out);
}
