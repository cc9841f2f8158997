/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/sampling/session_sink.h"
#include "output/recording/recording.h"
#include "output/recording/recording_format.h"
#include "procmem/clock.h"

/* Fill a recording with its maximum number of threads, and check the error for one more. */
static void fill(struct session_sink *sink)
{
	struct sample_sink *base = &sink->sink;
	struct sample_thread thread = {0};
	const struct sample sample = {.time_ns = NS_PER_S, .thread = &thread};

	for (; thread.id < RECORDING_MAX_THREADS; thread.id++) {
		thread.slot = thread.id % RECORDING_MAX_SLOTS;
		cr_assert(eq(int, base->ops->sample(base, &sample), 0));
	}
	thread.slot = 0;
	cr_assert(eq(int, base->ops->tick(base, 2 * (uint64_t)NS_PER_S), 0));
	cr_assert(eq(int, base->ops->sample(base, &sample), -E2BIG));
	cr_expect(eq(int, base->ops->tick(base, 3 * (uint64_t)NS_PER_S), -E2BIG),
		  "the recording is full");
	cr_expect(eq(int, sink->error, -E2BIG));
	cr_expect(eq(str, sink->reason.text,
		     (char *)"the recording has reached its limit of 4194304 threads: record the "
			     "rest separately"));
}

static void check_whole(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct recording *recording;
	uint64_t torn_bytes;

	cr_assert(fd >= 0);
	cr_assert(eq(int, recording_open(fd, &recording, NULL), 0));
	cr_expect(not(recording_is_torn(recording, &torn_bytes)));
	cr_expect(
		eq(u64, recording_run(recording)->info.account.nr_samples, RECORDING_MAX_THREADS));
	recording_close(recording);
	(void)close(fd);
}

/* The error is reported, the run ends, and the recording is complete under its name. */
Test(session_sink, reports_a_full_recording)
{
	const struct run run = {.info = {.target.pid = 1, .mode = PROFILE_WALL}};
	const struct profile_options options = {0};
	struct session_sink sink = SESSION_SINK_NONE;
	struct outputs outputs = {0};
	struct message message = {0};
	char folder[] = "/tmp/pysample-test-XXXXXX", path[64];

	cr_assert(mkdtemp(folder) != NULL);
	(void)snprintf(path, sizeof(path), "%s/full.pysample", folder);
	cr_assert(outputs_add_path(&outputs, path) && outputs_choose(&outputs));
	cr_assert(eq(int, outputs_open(&outputs, &message), EXIT_OK), "%s", message.text);
	cr_assert(eq(int, session_sink_open(&sink, &outputs, &message), EXIT_OK));
	cr_assert(eq(int, session_sink_begin(&sink, &outputs, &options, &run, &message), 0));
	fill(&sink);
	cr_expect(eq(int, session_sink_finish(&sink, &run, &outputs, &message), 0), "%s",
		  message.text);
	cr_expect(eq(int, sink.replay_fd, -1));
	session_sink_close(&sink);
	outputs_discard(&outputs);
	check_whole(path);
	cr_expect(eq(int, unlink(path), 0));
	cr_expect(eq(int, rmdir(folder), 0));
}

struct counter {
	struct sample_sink sink;
	uint64_t nr_samples;
};

static int count_sample(struct sample_sink *sink, const struct sample *sample)
{
	(void)sample;
	((struct counter *)sink)->nr_samples++;
	return 0;
}

static void begin_observed(struct session_sink *sink, struct outputs *outputs)
{
	const struct run run = {.info = {.target.pid = 1}};
	const struct profile_options options = {0};
	struct message message = {0};

	cr_assert(eq(int, session_sink_open(sink, outputs, &message), EXIT_OK));
	cr_assert(eq(int, session_sink_begin(sink, outputs, &options, &run, &message), 0));
}

/* An observer sees all samples, whatever happens to the recording, which can begin again. */
Test(session_sink, observer_does_not_need_the_recording)
{
	static const struct sample_sink_ops ops = {.sample = count_sample};
	const struct sample_thread thread = {0};
	const struct sample sample = {.time_ns = NS_PER_S, .thread = &thread};
	const struct run run = {.info = {.target.pid = 1}};
	struct counter counter = {.sink.ops = &ops};
	struct session_sink sink = SESSION_SINK_NONE;
	struct sample_sink *base = &sink.sink;
	struct outputs outputs = {0};
	const int unwritable = open("/dev/null", O_RDONLY | O_CLOEXEC);

	sink.observer.sink = &counter.sink;
	sink.keeps_samples = true;
	begin_observed(&sink, &outputs);
	cr_assert(eq(int, base->ops->sample(base, &sample), 0));
	cr_assert(eq(int, session_sink_copy(&sink, &run, NS_PER_S, unwritable), -EBADF));
	cr_expect(eq(int, session_sink_error(&sink), 0), "a copy is not the recording");
	cr_assert(dup2(unwritable, sink.temp_file.fd) >= 0);
	cr_assert(eq(int, base->ops->sample(base, &sample), 0));
	cr_expect(eq(int, session_sink_flush(&sink, &run, NS_PER_S), 0));
	cr_expect(eq(int, session_sink_error(&sink), -EBADF));
	cr_expect(eq(int, session_sink_copy(&sink, &run, NS_PER_S, unwritable), -EBADF));
	cr_assert(eq(int, base->ops->sample(base, &sample), 0));
	cr_assert(eq(int, base->ops->tick(base, 2 * (uint64_t)NS_PER_S), 0));
	session_sink_restart(&sink);
	begin_observed(&sink, &outputs);
	cr_assert(eq(int, base->ops->sample(base, &sample), 0));
	cr_expect(eq(int, session_sink_error(&sink), 0));
	cr_expect(eq(u64, counter.nr_samples, 4));
	session_sink_close(&sink);
	(void)close(unwritable);
}
