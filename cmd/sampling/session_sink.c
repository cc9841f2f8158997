/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/session_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "output/recording/recording_format.h"
#include "procmem/cleanup.h"

/* Opening. */

/* Whether what is written to the file can be read back. */
static bool is_readable(const struct output_file *file)
{
	cleanup_close int fd = -1;

	if (file->target)
		return true;
	fd = output_file_reopen(file);
	return fd >= 0;
}

static bool needs_recording(const struct session_sink *sink, const struct outputs *outputs)
{
	return sink->keeps_samples || outputs_need_samples(outputs);
}

enum exit_status session_sink_open(struct session_sink *sink, struct outputs *outputs,
				   struct message *reterr)
{
	sink->recording = outputs_recording(outputs);
	if (!needs_recording(sink, outputs))
		return EXIT_OK;
	if (!sink->recording)
		return temp_file_open_anywhere(&sink->temp_file, reterr) ? EXIT_ERROR : EXIT_OK;
	if (!outputs_next(outputs) || is_readable(&sink->recording->file))
		return EXIT_OK;
	message_set(reterr,
		    "the other files are made from the recording, and %s cannot be read "
		    "back: write the recording to a regular file",
		    sink->recording->path ? sink->recording->path : "standard output");
	return EXIT_USAGE;
}

/* Collecting samples. */

/* Set the message for an error of writing the recording. */
static void explain(const struct session_sink *sink, int err, struct message *reterr)
{
	if (err == -E2BIG)
		message_set(reterr,
			    "the recording has reached its limit of %u threads: record the "
			    "rest separately",
			    RECORDING_MAX_THREADS);
	else if (sink->recording)
		message_set(reterr, "cannot write %s: %s",
			    sink->recording->path ? sink->recording->path : "standard output",
			    strerror(-err));
	else
		message_set(reterr, "cannot write a temporary file in %s: %s; set TMPDIR",
			    sink->temp_file.folder, strerror(-err));
}

/* Keep the first error of the fragile sink. */
static void note_error(struct session_tee *tee, int err)
{
	if (!tee->error)
		tee->error = err;
}

/* Keep the first error of the recording. Returns err, or 0 if the sink outlives it. */
static int keep_error(struct session_sink *sink, int err)
{
	if (sink->observer.sink && err != -ENOMEM) {
		note_error(&sink->tee, err);
		return 0;
	}
	if (err && sink->recorder && !sink->error) {
		sink->error = err;
		if (!sink->reason.text[0])
			explain(sink, err, &sink->reason);
	}
	return sink->outlives_errors && err != -ENOMEM ? 0 : err;
}

static int session_sink_sample(struct sample_sink *base, const struct sample *sample)
{
	struct session_sink *sink = (struct session_sink *)base;
	int err = sink->error;

	if (!sink->next || (err && sink->outlives_errors)) {
		sink->nr_dropped++;
		return 0;
	}
	err = sink->next->ops->sample(sink->next, sample);
	if (err)
		sink->nr_dropped++;
	return keep_error(sink, err);
}

static void session_sink_renamed(struct sample_sink *base, const struct sample_thread *thread)
{
	struct sample_sink *next = ((struct session_sink *)base)->next;

	if (next && next->ops->renamed)
		next->ops->renamed(next, thread);
}

/*
 * Give the recording its name if it has samples. If that fails, as in a folder that was removed
 * or is full, it is tried again later.
 */
static void publish(struct session_sink *sink)
{
	sink->tried_bytes = recorder_bytes(sink->recorder);
	if (sink->recording && sink->tried_bytes > sink->header_bytes &&
	    recorder_sums(sink->recorder)->account.nr_samples)
		(void)output_file_publish(&sink->recording->file, NULL); /* reported at the end */
}

static int session_sink_tick(struct sample_sink *base, uint64_t now_ns)
{
	struct session_sink *sink = (struct session_sink *)base;
	const struct session_watcher *watcher = &sink->watcher;
	struct sample_sink *next = sink->next;
	int err = sink->error;

	/* An error of a sample ends the recording, whatever the sampler does about it. */
	if (!err && next && next->ops->tick)
		err = next->ops->tick(next, now_ns);
	if (keep_error(sink, err))
		return err;
	if (!err && sink->recorder && recorder_bytes(sink->recorder) != sink->tried_bytes)
		publish(sink); /* after a flush */
	return watcher->ticked ? watcher->ticked(watcher->context, now_ns) : 0;
}

static int tee_sample(struct sample_sink *base, const struct sample *sample)
{
	struct session_tee *tee = (struct session_tee *)base;

	if (!tee->error)
		note_error(tee, tee->fragile->ops->sample(tee->fragile, sample));
	return tee->observer->ops->sample(tee->observer, sample);
}

static void tee_renamed(struct sample_sink *base, const struct sample_thread *thread)
{
	struct session_tee *tee = (struct session_tee *)base;

	if (tee->fragile->ops->renamed)
		tee->fragile->ops->renamed(tee->fragile, thread);
	if (tee->observer->ops->renamed)
		tee->observer->ops->renamed(tee->observer, thread);
}

static int tee_tick(struct sample_sink *base, uint64_t now_ns)
{
	struct session_tee *tee = (struct session_tee *)base;

	if (!tee->error && tee->fragile->ops->tick)
		note_error(tee, tee->fragile->ops->tick(tee->fragile, now_ns));
	return 0;
}

/* Pass all samples on to the observer, too. */
static void begin_tee(struct session_sink *sink)
{
	static const struct sample_sink_ops ops = {
		.sample = tee_sample,
		.renamed = tee_renamed,
		.tick = tee_tick,
	};

	sink->tee = (struct session_tee){
		.sink.ops = &ops,
		.fragile = sink->next,
		.observer = sink->observer.sink,
	};
	sink->next = &sink->tee.sink;
}

static int begin_recording(struct session_sink *sink, const struct run *run, struct message *reterr)
{
	int fd = sink->temp_file.fd;
	int err;

	if (sink->recording) {
		err = output_file_begin_growing(&sink->recording->file, reterr);
		if (err)
			return err;
		fd = fileno(sink->recording->file.stream);
	}
	err = recorder_create(fd, run, &sink->recorder);
	if (err) {
		explain(sink, err, reterr);
		return err;
	}
	sink->header_bytes = recorder_bytes(sink->recorder);
	sink->next = recorder_sink(sink->recorder);
	return 0;
}

static int begin_profile(struct session_sink *sink, const struct profile_options *options,
			 struct message *reterr)
{
	struct profile_options own = *options;

	own.by_process = false; /* there is one */
	sink->profile = profile_create(&own);
	if (!sink->profile) {
		message_set(reterr, "out of memory");
		return -ENOMEM;
	}
	sink->next = profile_sink(sink->profile);
	return 0;
}

int session_sink_begin(struct session_sink *sink, const struct outputs *outputs,
		       const struct profile_options *options, const struct run *run,
		       struct message *reterr)
{
	static const struct sample_sink_ops ops = {
		.sample = session_sink_sample,
		.renamed = session_sink_renamed,
		.tick = session_sink_tick,
	};
	int err;

	sink->sink.ops = &ops;
	err = needs_recording(sink, outputs) ? begin_recording(sink, run, reterr)
					     : begin_profile(sink, options, reterr);
	if (!err && sink->observer.sink)
		begin_tee(sink);
	if (!err && sink->filter.nr) {
		thread_sink_init(&sink->threads, &sink->filter, sink->next);
		sink->next = &sink->threads.sink;
	}
	return err;
}

int session_sink_add_process(struct session_sink *sink, const struct process_info *info,
			     uint32_t *ret_process)
{
	int err;

	*ret_process = PROFILE_NONE;
	if (!sink->next)
		return 0;
	err = sink->recorder
		      ? keep_error(sink, recorder_add_process(sink->recorder, info, ret_process))
		      : profile_add_process(sink->profile, info, ret_process);
	if (!err && sink->observer.process_added)
		err = sink->observer.process_added(sink->observer.context, *ret_process, info);
	return err;
}

int session_sink_end_process(struct session_sink *sink, uint32_t process, uint64_t end_ns)
{
	if (!sink->next)
		return 0;
	if (sink->recorder)
		return keep_error(sink, recorder_end_process(sink->recorder, process, end_ns));
	profile_end_process(sink->profile, process, end_ns);
	return 0;
}

void session_sink_set_stats(struct session_sink *sink, const struct sampler_stats *stats)
{
	if (sink->recorder)
		recorder_set_stats(sink->recorder, stats);
}

const struct profile_sums *session_sink_sums(const struct session_sink *sink)
{
	static const struct profile_sums nothing;

	if (sink->recorder)
		return recorder_sums(sink->recorder);
	return sink->profile ? profile_sums(sink->profile, PROFILE_SHOWN) : &nothing;
}

uint64_t session_sink_bytes(const struct session_sink *sink)
{
	return sink->recorder ? recorder_bytes(sink->recorder) : 0;
}

int session_sink_flush(struct session_sink *sink, const struct run *run, uint64_t now_ns)
{
	int err;

	if (!sink->recorder)
		return 0;
	err = recorder_flush(sink->recorder, run, now_ns);
	if (!err)
		publish(sink);
	return keep_error(sink, err);
}

int session_sink_error(const struct session_sink *sink)
{
	return sink->error ? sink->error : sink->tee.error;
}

int session_sink_copy(struct session_sink *sink, const struct run *run, uint64_t now_ns, int to_fd)
{
	cleanup_close int fd = session_sink_reopen(sink);
	int err = session_sink_error(sink);

	if (!err && fd < 0)
		err = fd;
	return err ? err : recorder_copy(sink->recorder, run, now_ns, fd, to_fd);
}

int session_sink_reopen(const struct session_sink *sink)
{
	int fd;

	if (!sink->recorder)
		return -ENOENT;
	if (sink->recording)
		return output_file_reopen(&sink->recording->file);
	fd = fcntl(sink->temp_file.fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* Ending. */

int session_sink_finish(struct session_sink *sink, const struct run *run,
			const struct outputs *outputs, struct message *reterr)
{
	int err = sink->error == -E2BIG ? 0 : sink->error; /* a full recording can be finished */

	if (!sink->recorder || !recorder_sums(sink->recorder)->account.nr_samples)
		return 0;
	if (!err) {
		err = recorder_finish(sink->recorder, run);
		(void)keep_error(sink, err);
	}
	if (err)
		publish(sink); /* what was flushed before */
	if (outputs_next(outputs))
		sink->replay_fd = session_sink_reopen(sink);
	if (sink->recording)
		err = output_file_finish(&sink->recording->file, err, reterr);
	if (err && sink->reason.text[0])
		*reterr = sink->reason;
	return err;
}

void session_sink_restart(struct session_sink *sink)
{
	const struct session_sink before = *sink;

	session_sink_close(sink);
	sink->sink = before.sink;
	sink->watcher = before.watcher;
	sink->observer = before.observer;
	sink->keeps_samples = before.keeps_samples;
	sink->filter = before.filter;
	sink->outlives_errors = before.outlives_errors;
}

void session_sink_close(struct session_sink *sink)
{
	recorder_destroy(sink->recorder);
	profile_destroy(sink->profile);
	thread_sink_done(&sink->threads);
	temp_file_close(&sink->temp_file);
	if (sink->replay_fd >= 0)
		(void)close(sink->replay_fd);
	*sink = SESSION_SINK_NONE;
}
