/* SPDX-License-Identifier: MIT */
#include "cmd/dump/watch.h"

#include <stdio.h>
#include <time.h>

#include "cmd/dump/tree.h"
#include "cmd/dump/waiting.h"
#include "cmd/output_file.h"
#include "cmd/print.h"
#include "cmd/signals.h"
#include "output/dump/dump_changes.h"
#include "output/dump/tree_dump.h"
#include "procmem/clock.h"

/* Append the time of day. */
static void append_clock(struct text *text)
{
	const time_t now = time(NULL);
	struct tm local;
	char clock[sizeof("00:00:00")] = "";

	if (localtime_r(&now, &local))
		(void)strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	text_printf(text, "--- %s ---\n", clock);
}

/*
 * Append what has changed, unless the dump is the first, and remember it. Returns 0 or -ENOMEM.
 */
static int append_changes(struct text *text, const struct tree_dump *tree,
			  const struct watch_options *how, bool is_first,
			  struct dump_changes *changes)
{
	struct thread_groups groups = {0};
	struct paragraphs tasks = {0};
	struct text changed = {0};
	int err = tree_dump_group(tree, how->subprocesses, &groups);

	if (!err)
		err = tree_dump_describe_tasks(tree, how->subprocesses, &tasks);
	if (!err)
		err = dump_changes_append(&changed, changes, &groups, &tasks, clock_now_ns());
	if (!err && !is_first) {
		dump_append_findings(text, tree->findings, tree->nr_findings);
		text_puts(text, text_string(&changed));
	}
	if (!err)
		err = changed.error;
	thread_groups_done(&groups);
	paragraphs_done(&tasks);
	text_done(&changed);
	return err;
}

/* Write a round of a watch for people. Returns 0, -ENOMEM, or the stream's errno. */
static int write_round(const struct tree_dump *tree, const struct watch_options *how, bool is_first,
		       struct dump_changes *changes, FILE *out)
{
	struct text text = {0};
	int err;

	append_clock(&text);
	err = append_changes(&text, tree, how, is_first, changes);
	if (!err)
		err = text_write(&text, out);
	text_done(&text);
	if (!err && is_first)
		err = tree_dump_write(tree, how->subprocesses, false, out);
	(void)fputc('\n', out);
	return err;
}

/*
 * Write a dump to stdout: all of it; or, with changes, a round of a watch. Returns 0; or a negative
 * errno with a message.
 */
static int write_dump(const struct tree_dump *tree, const struct watch_options *how, bool is_first,
		      struct dump_changes *changes, struct message *reterr)
{
	struct output_file output;
	int err = output_file_open(NULL, &output, reterr);

	if (!err)
		err = output_file_begin(&output, reterr);
	if (err)
		return err;
	err = changes && !how->json
		      ? write_round(tree, how, is_first, changes, output.stream)
		      : tree_dump_write(tree, how->subprocesses, how->json, output.stream);
	return output_file_finish(&output, err, reterr);
}

/*
 * Describe and write what was taken. Returns 0; or a negative errno, of the output or of memory,
 * with a message.
 */
static int show(struct tree *tree, const struct watch_options *how, bool is_first,
		struct dump_changes *changes, struct message *reterr)
{
	struct findings findings = {0};
	int err = waiting_describe(tree, how->subprocesses, &findings);

	if (err) {
		message_set(reterr, "out of memory: dump without --locals needs less");
	} else {
		const struct tree_dump whole =
			tree_as_dump(tree, findings.sentences, findings.nr_sentences);

		err = write_dump(&whole, how, is_first, changes, reterr);
	}
	findings_done(&findings);
	return err;
}

enum exit_status dump_once(pid_t pid, const struct process_dump_options *options,
			   const struct watch_options *how, struct message *reterr)
{
	struct tree tree = {0};
	enum exit_status status = tree_take(&tree, pid, how->subprocesses, options, reterr);

	if (status == EXIT_OK && show(&tree, how, true, NULL, reterr))
		status = EXIT_ERROR;
	tree_done(&tree);
	return status;
}

/* What is kept from round to round. */
struct rounds {
	struct dump_changes changes;
	bool has_shown; /* there was a round */
	int err;	/* of the last show() */
};

/* Dump once; nothing is written if another process has the id by then. */
static enum exit_status take_round(const struct process *watched,
				   const struct process_dump_options *options,
				   const struct watch_options *how, struct rounds *rounds,
				   struct message *reterr)
{
	struct tree tree = {0};
	enum exit_status status =
		tree_take(&tree, watched->pid, how->subprocesses, options, reterr);

	rounds->err = 0;
	if (status == EXIT_OK && !process_equals(&tree.taken[0]->target.process, watched)) {
		message_set(reterr, "process %d has ended", watched->pid);
		status = EXIT_NO_SAMPLE;
	}
	if (status == EXIT_OK)
		rounds->err = show(&tree, how, !rounds->has_shown, &rounds->changes, reterr);
	tree_done(&tree);
	return rounds->err ? EXIT_ERROR : status;
}

enum exit_status watch(pid_t pid, const struct process_dump_options *options,
		       const struct watch_options *how, struct message *reterr)
{
	const volatile sig_atomic_t *stop = signals_stop_flag();
	struct rounds rounds = {.has_shown = false};
	struct target watched;
	enum exit_status status = target_open_process(pid, &watched, reterr);

	if (status != EXIT_OK) {
		target_close(&watched);
		return status;
	}
	signals_catch_stops();
	signals_make_writes_fail();
	while (!*stop) {
		pid_t tid;

		*reterr = (struct message){0};
		status = take_round(&watched.process, options, how, &rounds, reterr);
		if (rounds.err || (!rounds.has_shown && status != EXIT_OK))
			break;
		rounds.has_shown = true;
		if (process_live_thread(&watched.process, &tid)) {
			print_note("process %d has ended", pid);
			status = EXIT_OK;
			break;
		}
		if (status != EXIT_OK)
			print_note("%s", reterr->text);
		status = EXIT_OK;
		signals_sleep(how->interval_ns);
	}
	dump_changes_done(&rounds.changes);
	target_close(&watched);
	return status;
}
