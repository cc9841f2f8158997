/* SPDX-License-Identifier: MIT */
#include "cmd/session_outputs.h"

#include "cmd/print.h"
#include "cmd/rendering.h"
#include "cmd/session_notes.h"
#include "cmd/stop.h"
#include "output/recording.h"
#include "output/run.h"
#include "output/stats.h"
#include "procmem/cleanup.h"

/* Write the outputs that are made of the recording in fd. */
static enum exit_status write_replayed(struct session *session, int fd)
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
	status = rendering_write(&rendering, &session->options.outputs);
	recording_close(recording);
	return status;
}

/* End the recording and write what is made of it. */
static enum exit_status write_recorded(struct session *session, const struct run *run)
{
	const bool is_known = session->sink.error != 0; /* it has been told why sampling ended */
	const bool is_shown = session_sink_sums(&session->sink)->account.nr_shown > 0;
	struct message message = {0};
	enum exit_status status = EXIT_OK;
	cleanup_close int fd = -1;

	if (session_sink_finish(&session->sink, run, &session->options.outputs, &fd, &message)) {
		status = EXIT_ERROR;
		if (!is_known)
			print_error("%s", message.text);
	}
	if (fd >= 0 && is_shown && write_replayed(session, fd) != EXIT_OK)
		status = EXIT_ERROR;
	if (fd < 0 && is_shown && outputs_next(&session->options.outputs)) {
		print_error("the other files were not written: the recording cannot be read back; "
			    "make them of it with pysample report");
		status = EXIT_ERROR;
	}
	return status;
}

static enum exit_status write_profile(struct session *session, const struct run *run)
{
	const struct sampling_options *options = &session->options;
	const struct artefact artefact = {
		.profile = session->sink.profile,
		.runs = run,
		.nr_runs = 1,
		.options = options->layout,
	};

	if (!artefact.profile || !session_sink_sums(&session->sink)->account.nr_shown)
		return EXIT_OK;
	return outputs_write(&session->options.outputs, &artefact, &options->profile);
}

static enum exit_status write_stats(struct session *session, const struct run *run)
{
	struct output_file *file = &session->stats_output;
	struct message message = {0};
	int err;

	if (!session->options.stats_path)
		return EXIT_OK;
	err = output_file_begin(file, &message);
	if (!err)
		err = output_file_finish(
			file, stats_write_json(&run->stats, &run->info, file->stream), &message);
	if (err)
		print_error("%s", message.text);
	return err ? EXIT_ERROR : EXIT_OK;
}

enum exit_status session_finish(struct session *session, enum exit_status status)
{
	enum exit_status written, stats_written;
	struct run run;

	/* Without samples there are counters still, if only to say that there were none. */
	if (!session->begun && status != EXIT_NO_SAMPLE)
		return status;
	session_describe(session, &run);
	stop_let_finish();
	/* Its CPU clocks may have taken all descriptors that we may have: the outputs need some. */
	sampler_destroy(session->sampler);
	session->sampler = NULL;
	if (session->sink.recorder)
		written = write_recorded(session, &run);
	else
		written = write_profile(session, &run);
	stats_written = write_stats(session, &run);
	if (status == EXIT_OK)
		status = written == EXIT_OK ? stats_written : written;
	if (status == EXIT_OK)
		session_notes_written(session);
	return status;
}
