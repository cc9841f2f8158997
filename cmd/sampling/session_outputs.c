/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/session_outputs.h"

#include <errno.h>
#include <unistd.h>

#include "cmd/print.h"
#include "cmd/rendering.h"
#include "cmd/sampling/session_notes.h"
#include "cmd/signals.h"
#include "output/recording/recording.h"
#include "output/run/run.h"
#include "output/run/stats.h"
#include "output/text/text.h"
#include "procmem/clock.h"

/* Write outputs that are made from the recording in fd. */
static enum exit_status write_replayed(const struct session *session, int fd,
				       struct outputs *outputs)
{
	struct recording *recording;
	struct message message = {0};
	struct rendering rendering = {
		.recordings = &recording,
		.nr_recordings = 1,
		.profile = session->options.profile,
		.layout = session->options.layout,
	};
	enum exit_status status;

	if (recording_open(fd, &recording, &message) != 0) {
		print_error("%s", message.text);
		return EXIT_ERROR;
	}
	status = rendering_write(&rendering, outputs);
	recording_close(recording);
	return status;
}

/* Write the outputs that are not written yet, from the profile or else the recording in fd. */
static enum exit_status write_outputs(const struct session *session, const struct run *run, int fd,
				      struct outputs *outputs)
{
	const struct sampling_options *options = &session->options;
	const struct artefact artefact = {
		.profile = session->sink.profile,
		.runs = run,
		.nr_runs = 1,
		.options = options->layout,
	};

	if (profile_account_is_empty(&session_sink_sums(&session->sink)->account) ||
	    !outputs_next(outputs))
		return EXIT_OK;
	if (session->sink.profile)
		return outputs_write(outputs, &artefact, &options->profile);
	if (fd >= 0)
		return write_replayed(session, fd, outputs);
	print_error("the other files were not written: the samples cannot be read back%s",
		    session->sink.recording ? "; make them from the recording with pysample report"
					    : "");
	return EXIT_ERROR;
}

static enum exit_status write_stats(const struct run *run, struct output_file *file)
{
	struct message message = {0};
	int err = output_file_begin(file, &message);

	if (!err)
		err = output_file_finish(
			file, stats_write_json(&run->stats, &run->info, file->stream), &message);
	if (err)
		print_error("%s", message.text);
	return err ? EXIT_ERROR : EXIT_OK;
}

/* End the recording, if there is one, and open it for the outputs that are made from it. */
static enum exit_status end_recording(struct session *session, const struct run *run)
{
	const struct outputs *outputs = &session->options.outputs;
	const struct session_sink *sink = &session->sink;
	const bool had_failed = sink->error != 0; /* reported when sampling ended, if it did */
	struct message message = sink->reason;
	const int err = session_sink_finish(&session->sink, run, outputs, &message);

	if (!err && !(had_failed && sink->outlives_errors))
		return EXIT_OK;
	if (!outputs->is_silent && (!had_failed || sink->outlives_errors))
		print_error("%s", message.text);
	return EXIT_ERROR;
}

/* Returns the status of two steps: the first failure. */
static enum exit_status first_failure(enum exit_status first, enum exit_status second)
{
	return first == EXIT_OK ? second : first;
}

enum exit_status session_write_period(struct session *session, const struct run *part)
{
	const enum exit_status ended = end_recording(session, part);

	return first_failure(ended, write_outputs(session, part, session->sink.replay_fd,
						  &session->options.outputs));
}

/* Write what is not written yet, except to stdout if that is deferred. */
static enum exit_status write_rest(struct session *session)
{
	struct outputs *outputs = &session->options.outputs;
	struct output_file *stats = &session->stats_output;
	enum exit_status status;
	struct run run;

	session_describe_period(session, &run);
	status = write_outputs(session, &run, session->sink.replay_fd, outputs);
	if (!output_file_is_open(stats) || (outputs->defers_stdout && stats->stream == stdout))
		return status;
	session_describe(session, &run);
	return first_failure(status, write_stats(&run, stats));
}

/* Print what was written, and how long sampling had to wait for it. */
static void print_written(struct session *session, unsigned int nr_files, enum exit_status status,
			  uint64_t took_ns)
{
	struct message line = {0};

	if (status == EXIT_ERROR)
		message_set(&line, "SIGUSR1: not every file could be written; sampling continues");
	else if (nr_files)
		message_set(&line, "SIGUSR1: wrote %u file%s in %.1f ms; sampling continues",
			    nr_files, text_plural(nr_files), (double)took_ns / 1e6);
	else
		message_set(&line, "SIGUSR1: there is no file to write yet; sampling continues");
	progress_print_line(&session->progress, line.text);
}

/* Write the files that were opened again. */
static enum exit_status write_again(const struct session *session, const struct run *run,
				    struct outputs *outputs, struct output_file *stats)
{
	const int fd = outputs_next(outputs) ? session_sink_reopen(&session->sink) : -1;
	enum exit_status status = write_outputs(session, run, fd, outputs);

	if (fd >= 0)
		(void)close(fd);
	return output_file_is_open(stats) ? first_failure(status, write_stats(run, stats)) : status;
}

/* Whether there is a recording that has samples and its name. */
static bool has_named_recording(const struct session *session)
{
	const struct output *recording = session->sink.recording;

	return recording && session_sink_sums(&session->sink)->account.nr_samples &&
	       (!recording->file.target || recording->file.is_published);
}

int session_write_now(struct session *session)
{
	const struct profile_account *account = &session_sink_sums(&session->sink)->account;
	const uint64_t begin_ns = clock_now_ns();
	struct output_file stats = {0};
	struct outputs outputs = {0};
	enum exit_status status;
	unsigned int nr_files;
	struct run run;
	int err;

	session_describe(session, &run);
	err = session_sink_flush(&session->sink, &run, begin_ns);
	if (!err)
		err = outputs_open_again(&session->options.outputs, &outputs);
	if (!err && output_file_open_again(&session->stats_output, &stats) == -ENOMEM)
		err = -ENOMEM;
	if (!err) {
		nr_files = (profile_account_is_empty(account) ? 0 : outputs.nr) +
			   output_file_is_open(&stats) + has_named_recording(session);
		progress_clear(&session->progress);
		status = write_again(session, &run, &outputs, &stats);
		outputs_replace_written(&session->options.outputs, &outputs);
		print_written(session, nr_files, status, clock_now_ns() - begin_ns);
	}
	outputs_discard(&outputs);
	return err;
}

enum exit_status session_finish(struct session *session, enum exit_status status,
				bool defers_stdout)
{
	struct run run;

	/* Without samples there are still counters, if only to say that there were none. */
	if (!session->begun && status != EXIT_NO_SAMPLE)
		return status;
	session_describe_period(session, &run);
	signals_restart_calls();
	/*
	 * The sampler's CPU clocks may use all descriptors that we may have; the outputs need
	 * some.
	 */
	session_destroy_samplers(session);
	status = first_failure(status, end_recording(session, &run));
	session->options.outputs.defers_stdout = defers_stdout;
	status = first_failure(status, write_rest(session));
	if (status == EXIT_OK)
		session_notes_written(session);
	return status;
}

enum exit_status session_finish_stdout(struct session *session, enum exit_status status)
{
	if (!session->options.outputs.defers_stdout)
		return status;
	session->options.outputs.defers_stdout = false;
	return first_failure(status, write_rest(session));
}
