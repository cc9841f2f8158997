/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/rotation.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "cmd/print.h"
#include "cmd/sampling/session_children.h"
#include "cmd/sampling/session_outputs.h"
#include "cmd/sampling/session_process.h"
#include "output/run/run_part.h"
#include "output/text/text.h"
#include "procmem/clock.h"

int rotation_name_outputs(struct session *session)
{
	const struct output_pattern_values values = {
		.start_unix_ns = clock_ns(CLOCK_REALTIME),
		.number = session->periods.number + 1,
		.pid = session->root.pid,
	};

	return outputs_expand(&session->options.outputs, &values);
}

/* Whether the period has something to write. */
static bool has_samples(const struct session *session)
{
	const struct profile_account *account = &session_sink_sums(&session->sink)->account;

	return session->sink.recording ? account->nr_samples : account->nr_shown;
}

/* Note whether the files of a period could be written; message, if not NULL, is not printed yet. */
static void note_result(struct periods *periods, bool has_failed, const struct message *message)
{
	if (has_failed && message && message->text[0] && !periods->is_failing)
		print_error("%s", message->text);
	if (has_failed && !periods->is_failing)
		print_error("not every file of a period could be written: sampling continues, and "
			    "the next period is tried");
	periods->has_failed = periods->has_failed || has_failed;
	periods->is_failing = has_failed;
}

/* Write the files of a period, which is described by part. Returns 0 or -ENOMEM. */
static int write_period(struct session *session, const struct run *part)
{
	struct periods *periods = &session->periods;
	struct outputs *outputs = &session->options.outputs;
	enum exit_status status;

	outputs->is_silent = periods->is_failing;
	status = session_write_period(session, part);
	periods->nr_other_samples += session_sink_sums(&session->sink)->nr_other_samples;
	periods->nr_unwritten += session->sink.nr_dropped;
	note_result(periods, status != EXIT_OK || session->sink.nr_dropped || !session->sink.next,
		    NULL);
	return kept_files_add(&periods->kept, outputs);
}

/* Open the files of the next period. Returns 0; -ENOMEM; or another errno, with a message. */
static int open_period(struct session *session, struct message *reterr)
{
	const struct sampling_options *options = &session->options;
	struct run run;
	int err = rotation_name_outputs(session);

	if (err)
		return err;
	if (outputs_open(&session->options.outputs, reterr) != EXIT_OK ||
	    session_sink_open(&session->sink, &session->options.outputs, reterr) != EXIT_OK)
		return -EIO;
	session_describe_period(session, &run);
	err = session_sink_begin(&session->sink, &options->outputs, &options->profile, &run,
				 reterr);
	if (!err && session->root.is_recorded)
		err = session_process_record(session, &session->root);
	return err ? err : session_children_record(session);
}

/*
 * Begin the next period. If its files cannot be opened, its samples are dropped. Returns 0 or
 * -ENOMEM.
 */
static int begin_period(struct session *session)
{
	struct message message = {0};
	int err;

	outputs_discard(&session->options.outputs);
	session_sink_restart(&session->sink);
	session->periods.number++;
	err = open_period(session, &message);
	if (err == -ENOMEM)
		return err;
	if (err) {
		outputs_discard(&session->options.outputs);
		session_sink_restart(&session->sink);
		note_result(&session->periods, true, &message);
		return 0;
	}
	session_count_recorded(session);
	return 0;
}

/* Print what was written, on request or with --verbose. */
static void print_rotation(struct session *session, const struct run *part, const char *reason,
			   uint64_t took_ns)
{
	const struct periods *periods = &session->periods;
	struct message line = {0};

	message_set(&line, "%speriod %" PRIu64 ": %" PRIu64 " sample%s in %.1f s, %s in %.1f ms",
		    reason, periods->number, part->info.account.nr_samples,
		    text_plural(part->info.account.nr_samples),
		    (double)(part->stats.end_ns - part->stats.start_ns) / NS_PER_S,
		    periods->is_failing ? "not wholly written" : "written", (double)took_ns / 1e6);
	progress_print_line(&session->progress, line.text);
}

static int rotate(struct session *session, uint64_t now_ns, bool is_requested)
{
	struct periods *periods = &session->periods;
	const uint64_t begin_ns = clock_now_ns();
	struct run whole, part;
	int err;

	session_describe(session, &whole);
	whole.stats.end_ns = now_ns;
	part = whole;
	run_subtract(&part, &periods->before);
	progress_clear(&session->progress);
	err = write_period(session, &part);
	periods->before = whole;
	if (part.info.account.nr_idle_threads > periods->max_idle_threads)
		periods->max_idle_threads = part.info.account.nr_idle_threads;
	if (!err)
		err = begin_period(session);
	if (!err && (is_requested || session->options.verbose))
		print_rotation(session, &part, is_requested ? "SIGUSR1: " : "",
			       clock_now_ns() - begin_ns);
	return err;
}

int rotation_tick(struct session *session, uint64_t now_ns, bool is_requested)
{
	const uint64_t loop_ns = session->options.loop_ns;
	struct periods *periods = &session->periods;
	const bool is_over = periods->due_ns && now_ns >= periods->due_ns;
	struct message line = {0};

	if (!periods->due_ns)
		periods->due_ns = now_ns + loop_ns;
	if (!is_over && !is_requested && session->sink.error != -E2BIG)
		return 0;
	if (is_over)
		periods->due_ns += ((now_ns - periods->due_ns) / loop_ns + 1) * loop_ns;
	else
		periods->due_ns = now_ns + loop_ns;
	if (has_samples(session) || session->sink.nr_dropped || !session->sink.next)
		return rotate(session, now_ns, is_requested);
	if (is_requested) {
		message_set(&line, "SIGUSR1: the period has no samples yet, and continues");
		progress_print_line(&session->progress, line.text);
	}
	return 0;
}

int rotation_restart(struct session *session, uint64_t now_ns)
{
	struct message message = {0};
	struct run whole;
	int err;

	session_describe(session, &whole);
	whole.stats.end_ns = now_ns;
	session->periods.before = whole;
	session->periods.number++;
	session_sink_restart(&session->sink);
	err = open_period(session, &message);
	if (!err) {
		session_count_recorded(session);
	} else if (err != -ENOMEM) {
		session->sink.error = err;
		session->sink.reason = message;
	}
	return err;
}

enum exit_status rotation_finish(struct session *session, enum exit_status status)
{
	struct periods *periods = &session->periods;

	if (!session->options.loop_ns || !session->begun)
		return status;
	periods->nr_unwritten += session->sink.nr_dropped;
	if (kept_files_add(&periods->kept, &session->options.outputs) != 0)
		print_error("out of memory: older files were not removed");
	if (!session->options.quiet)
		print_note("%" PRIu64 " period%s written; %" PRIu64 " older file%s removed",
			   periods->kept.nr_periods, text_plural(periods->kept.nr_periods),
			   periods->kept.nr_removed, text_plural(periods->kept.nr_removed));
	if (periods->nr_unwritten)
		print_error("%" PRIu64 " sample%s could not be written", periods->nr_unwritten,
			    text_plural(periods->nr_unwritten));
	return status == EXIT_OK && (periods->has_failed || periods->nr_unwritten) ? EXIT_ERROR
										   : status;
}
