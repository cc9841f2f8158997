/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "output/recording/recording.h"
#include "procmem/array.h"
#include "procmem/clock.h"
#include "tests/support/processes.h"
#include "tests/support/random_samples.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

enum { MAX_FUNCTIONS = 4096, MAX_NODES = 1 << 18, MAX_READ_THREADS = 65536 };
enum { MAX_READ_PROCESSES = 65536 };

/* Compares what is read with what was written. */
struct reading {
	const struct random_samples *samples; /* NULL: only check indices */
	struct function functions[MAX_FUNCTIONS];
	uint32_t nr_functions;
	struct {
		uint32_t parent, function;
		int32_t line;
	} nodes[MAX_NODES];
	uint32_t nr_nodes, nr_threads, nr_processes, nr_samples, nr_resets;
	char names[MAX_READ_THREADS][THREAD_NAME_MAX_BYTES];
	pid_t pids[MAX_READ_PROCESSES];
	uint64_t epoch_us;
	uint32_t flags; /* of the last sample */
	int fail_with;	/* returned by sample() */
};

static int read_process(void *context, const struct process_info *process)
{
	struct reading *reading = context;

	if (reading->samples) {
		cr_assert(process->pid >= RANDOM_FIRST_PID);
		cr_assert(reading->nr_processes < MAX_READ_PROCESSES);
		reading->pids[reading->nr_processes] = process->pid;
		cr_assert(eq(str, (char *)process->command_line, (char *)"python"));
	}
	reading->nr_processes++;
	return 0;
}

static int read_process_end(void *context, uint32_t process, uint64_t end_ns)
{
	const struct reading *reading = context;

	(void)end_ns;
	cr_assert(lt(u32, process, reading->nr_processes));
	return 0;
}

static int read_thread(void *context, uint32_t process, const struct profile_thread *thread)
{
	struct reading *reading = context;

	cr_assert(process == thread->process);
	cr_assert(process == PROFILE_NONE || process < reading->nr_processes);
	cr_assert(reading->nr_threads < MAX_READ_THREADS);
	if (reading->samples)
		cr_assert(eq(u32, (uint32_t)(reading->pids[process] - RANDOM_FIRST_PID),
			     reading->samples->thread_processes[reading->nr_threads]));
	memcpy(reading->names[reading->nr_threads++], thread->name, THREAD_NAME_MAX_BYTES);
	return 0;
}

static int read_function(void *context, const struct function *function)
{
	struct reading *reading = context;
	struct function *kept = &reading->functions[reading->nr_functions];

	cr_assert(reading->nr_functions < MAX_FUNCTIONS);
	cr_assert(eq(u32, function->id, reading->nr_functions++));
	*kept = *function;
	kept->qualname = strdup(function->qualname);
	kept->path = strdup(function->path);
	return 0;
}

static int read_node(void *context, uint32_t parent, uint32_t function, int32_t line)
{
	struct reading *reading = context;

	cr_assert(parent == PROFILE_NONE || parent < reading->nr_nodes);
	cr_assert(function < reading->nr_functions);
	if (reading->nr_nodes < MAX_NODES) {
		reading->nodes[reading->nr_nodes].parent = parent;
		reading->nodes[reading->nr_nodes].function = function;
		reading->nodes[reading->nr_nodes].line = line;
	}
	reading->nr_nodes++;
	return 0;
}

static int read_renamed(void *context, uint32_t thread, const char *name)
{
	struct reading *reading = context;

	cr_assert(thread < reading->nr_threads);
	memset(reading->names[thread], 0, THREAD_NAME_MAX_BYTES);
	strcpy(reading->names[thread], name);
	return 0;
}

static void expect_stack(const struct reading *reading, uint32_t node,
			 const struct expected_sample *expected)
{
	uint32_t i = expected->nr_frames;

	for (; node != PROFILE_NONE; node = reading->nodes[node].parent) {
		const struct function *is = &reading->functions[reading->nodes[node].function];
		const struct frame *frame;

		cr_assert(i > 0);
		frame = &expected->frames[--i];
		cr_assert(eq(i32, reading->nodes[node].line, frame->line));
		cr_assert(eq(i32, is->first_line, frame->function->first_line));
		cr_assert(eq(str, (char *)is->qualname, (char *)frame->function->qualname));
		cr_assert(eq(str, (char *)is->path, (char *)frame->function->path));
		cr_assert(is->kind == frame->function->kind);
	}
	cr_assert(eq(u32, i, 0));
}

static int read_sample(void *context, const struct recorded_sample *sample)
{
	struct reading *reading = context;
	const struct expected_sample *expected;

	cr_assert(sample->thread < reading->nr_threads);
	cr_assert(sample->node == PROFILE_NONE || sample->node < reading->nr_nodes);
	reading->flags = sample->flags;
	if (!reading->samples) {
		reading->nr_samples++;
		return reading->fail_with;
	}
	cr_assert(reading->nr_samples < reading->samples->nr_expected);
	expected = &reading->samples->expected[reading->nr_samples++];
	cr_assert(eq(u64, sample->time_ns, (reading->epoch_us + expected->time_us) * 1000));
	cr_assert(eq(u64, sample->wall_ns, expected->wall_us * 1000));
	cr_assert(eq(u64, sample->cpu_ns, expected->cpu_us * 1000));
	cr_assert(eq(u32, sample->thread, expected->thread));
	cr_assert(eq(u32, sample->flags, expected->flags));
	expect_stack(reading, sample->node, expected);
	return reading->fail_with;
}

static void forget_functions(struct reading *reading)
{
	for (uint32_t i = 0; i < reading->nr_functions; i++) {
		free((char *)reading->functions[i].qualname);
		free((char *)reading->functions[i].path);
	}
	reading->nr_functions = 0;
}

static int read_reset(void *context)
{
	struct reading *reading = context;

	forget_functions(reading);
	reading->nr_nodes = 0;
	reading->nr_resets++;
	return 0;
}

static const struct recording_ops reading_ops = {
	.process = read_process,
	.process_ended = read_process_end,
	.thread = read_thread,
	.function = read_function,
	.node = read_node,
	.renamed = read_renamed,
	.sample = read_sample,
	.reset = read_reset,
};

static struct reading *new_reading(const struct random_samples *samples)
{
	struct reading *reading = calloc(1, sizeof(*reading));

	cr_assert(reading != NULL);
	reading->samples = samples;
	if (samples) {
		const struct run run = random_samples_run(samples);

		reading->epoch_us = (run.info.start_unix_ns - run.stats.start_ns) / 1000;
	}
	return reading;
}

static void free_reading(struct reading *reading)
{
	forget_functions(reading);
	free(reading);
}

static int new_file(void)
{
	int fd = memfd_create("recording", 0);

	cr_assert(fd >= 0);
	return fd;
}

/* Record samples; the recording may be left unfinished. */
static int record(struct random_samples *samples, const struct random_options *options, bool finish)
{
	struct recorder *recorder;
	struct run run;
	int fd = new_file();

	random_samples_init(samples, options);
	run = random_samples_run(samples);
	cr_assert(eq(int, recorder_create(fd, &run, &recorder), 0));
	cr_assert(eq(int, record_process(recorder, RANDOM_FIRST_PID, "python"), 0));
	cr_assert(eq(int, random_samples_play(samples, recorder), 0));
	if (finish)
		cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	cr_assert(eq(u64, recorder_bytes(recorder), (uint64_t)lseek(fd, 0, SEEK_END)));
	recorder_destroy(recorder);
	return fd;
}

static struct recording *open_file(int fd)
{
	struct recording *recording;
	struct message message = {0};

	cr_assert(eq(int, recording_open(fd, &recording, &message), 0), "%s", message.text);
	return recording;
}

static const struct random_options cases[] = {
	{.seed = 1, .nr_ticks = 3000},
	{.seed = 2, .nr_ticks = 3000, .rate_hz = 1000},
	{.seed = 3, .nr_ticks = 3000, .rate_hz = 1000, .measures_cpu = true},
	{.seed = 4, .nr_ticks = 3000, .rate_hz = 300, .measures_cpu = true, .is_wild = true},
	{.seed = 5, .nr_ticks = 3000, .is_wild = true},
	{.seed = 6, .nr_ticks = 30000, .rate_hz = 20000},
	{.seed = 7, .nr_ticks = 200, .rate_hz = 1, .is_wild = true},
	{.seed = 8, .nr_ticks = 60000, .measures_cpu = true, .is_wild = true},
	{.seed = 9, .nr_ticks = 1, .rate_hz = 1000},
	{.seed = 10, .nr_ticks = 0},
};

Test(recording, round_trips_every_sample)
{
	for (size_t i = 0; i < NR(cases); i++) {
		struct random_samples samples;
		int fd = record(&samples, &cases[i], true);
		struct recording *recording = open_file(fd);
		uint64_t torn_bytes;

		cr_assert(not(recording_is_torn(recording, &torn_bytes)));
		cr_assert(eq(u64, torn_bytes, 0));
		for (int again = 0; again < 2; again++) {
			struct reading *reading = new_reading(&samples);

			cr_assert(eq(int, recording_read(recording, &reading_ops, reading), 0));
			cr_assert(eq(u32, reading->nr_samples, samples.nr_expected));
			cr_assert(eq(u32, reading->nr_threads, samples.nr_begun));
			for (uint32_t t = 0; t < reading->nr_threads; t++)
				cr_assert(eq(str, reading->names[t], samples.thread_names[t]));
			free_reading(reading);
		}
		recording_close(recording);
		random_samples_done(&samples);
		(void)close(fd);
	}
}

Test(recording, stops_when_a_callback_fails)
{
	struct random_samples samples;
	int fd = record(&samples, &cases[1], true);
	struct recording *recording = open_file(fd);
	const int errors[] = {-ENOMEM, -ENOENT, -EBADMSG};

	for (size_t i = 0; i < NR(errors); i++) {
		struct reading *reading = new_reading(&samples);

		reading->fail_with = errors[i];
		cr_assert(eq(int, recording_read(recording, &reading_ops, reading), errors[i]));
		cr_assert(eq(u32, reading->nr_samples, 1));
		free_reading(reading);
	}
	recording_close(recording);
	random_samples_done(&samples);
	(void)close(fd);
}

/* A whole file in memory. */
struct bytes {
	uint8_t *at;
	size_t nr;
};

static struct bytes read_file(int fd)
{
	struct bytes bytes = {.nr = (size_t)lseek(fd, 0, SEEK_END)};

	bytes.at = malloc(bytes.nr);
	cr_assert(bytes.at != NULL);
	cr_assert(pread(fd, bytes.at, bytes.nr, 0) == (ssize_t)bytes.nr);
	return bytes;
}

static int file_of(const uint8_t *at, size_t nr)
{
	int fd = new_file();

	cr_assert(write(fd, at, nr) == (ssize_t)nr);
	return fd;
}

/*
 * Whatever the file, the samples read from it are the first ones that were written. Returns their
 * number.
 */
static uint32_t read_prefix(int fd, const struct random_samples *samples, bool *ret_torn)
{
	struct recording *recording;
	struct reading *reading;
	uint64_t torn_bytes;
	uint32_t nr;
	int err = recording_open(fd, &recording, NULL);

	*ret_torn = true;
	if (err) {
		cr_assert(err == -EBADMSG || err == -EPROTO, "%d", err);
		return 0;
	}
	reading = new_reading(samples);
	cr_assert(eq(int, recording_read(recording, &reading_ops, reading), 0));
	*ret_torn = recording_is_torn(recording, &torn_bytes);
	cr_assert(torn_bytes <= (uint64_t)lseek(fd, 0, SEEK_END));
	nr = reading->nr_samples;
	free_reading(reading);
	recording_close(recording);
	return nr;
}

static const struct random_options small = {.seed = 11, .nr_ticks = 40, .rate_hz = 10};

Test(recording, reads_up_to_a_tear)
{
	struct random_samples samples;
	int fd = record(&samples, &small, true);
	struct bytes bytes = read_file(fd);
	uint32_t nr_before = 0, nr_steps = 0;
	bool is_torn = true;

	for (size_t nr = 0; nr <= bytes.nr; nr++) {
		int torn_fd = file_of(bytes.at, nr);
		uint32_t nr_samples = read_prefix(torn_fd, &samples, &is_torn);

		cr_assert(nr_samples >= nr_before);
		nr_steps += nr_samples > nr_before;
		nr_before = nr_samples;
		(void)close(torn_fd);
	}
	cr_assert(not(is_torn));
	cr_assert(eq(u32, nr_before, samples.nr_expected));
	cr_assert(nr_steps >= 4, "%u", nr_steps); /* a flush each second */
	free(bytes.at);
	random_samples_done(&samples);
	(void)close(fd);
}

Test(recording, stops_at_a_corrupted_byte)
{
	struct random_samples samples;
	int fd = record(&samples, &small, true);
	struct bytes bytes = read_file(fd);

	for (size_t i = 0; i < bytes.nr; i++) {
		for (int flip = 1; flip < 256; flip = flip * 3 + 1) {
			int bad_fd;
			bool is_torn;

			bytes.at[i] ^= (uint8_t)flip;
			bad_fd = file_of(bytes.at, bytes.nr);
			(void)read_prefix(bad_fd, &samples, &is_torn);
			bytes.at[i] ^= (uint8_t)flip;
			(void)close(bad_fd);
		}
	}
	free(bytes.at);
	random_samples_done(&samples);
	(void)close(fd);
}

/* A file with one frame of this content. */
static int file_of_content(const uint8_t *content, size_t nr)
{
	size_t max = ZSTD_compressBound(nr);
	uint8_t *compressed = malloc(max);
	int fd;

	cr_assert(compressed != NULL);
	max = ZSTD_compress(compressed, max, content, nr, 1);
	cr_assert(not(ZSTD_isError(max)));
	fd = file_of(compressed, max);
	free(compressed);
	return fd;
}

/* The contents of all frames of a file. */
static struct bytes contents_of(int fd)
{
	struct bytes file = read_file(fd);
	struct bytes bytes = {.at = malloc(1 << 20)};
	size_t at = 0;

	cr_assert(bytes.at != NULL);
	while (at < file.nr) {
		size_t size = ZSTD_findFrameCompressedSize(file.at + at, file.nr - at);
		size_t nr = ZSTD_decompress(bytes.at + bytes.nr, (1 << 20) - bytes.nr, file.at + at,
					    size);

		cr_assert(not(ZSTD_isError(size) || ZSTD_isError(nr)));
		bytes.nr += nr;
		at += size;
	}
	free(file.at);
	return bytes;
}

/*
 * Damage each byte of the uncompressed contents, so that the checksum is right and everything
 * else may be wrong.
 */
Test(recording, bad_indices_are_never_emitted)
{
	struct random_samples samples;
	int fd = record(&samples, &small, true);
	struct bytes bytes = contents_of(fd);
	uint32_t nr_good = 0;

	for (size_t i = 0; i < bytes.nr; i++) {
		for (int flip = 1; flip < 256; flip = flip * 3 + 1) {
			int bad_fd;
			bool is_torn;

			bytes.at[i] ^= (uint8_t)flip;
			bad_fd = file_of_content(bytes.at, bytes.nr);
			nr_good += read_prefix(bad_fd, NULL, &is_torn) > 0;
			bytes.at[i] ^= (uint8_t)flip;
			(void)close(bad_fd);
		}
	}
	cr_assert(nr_good > 0);
	free(bytes.at);
	random_samples_done(&samples);
	(void)close(fd);
}

Test(recording, refuses_other_versions_and_files)
{
	struct random_samples samples;
	int fd = record(&samples, &small, true);
	struct bytes bytes = contents_of(fd);
	struct recording *recording;
	struct message message = {0};
	int other_fd;

	bytes.at[8] = 2;
	other_fd = file_of_content(bytes.at, bytes.nr);
	cr_assert(eq(int, recording_open(other_fd, &recording, &message), -EPROTO));
	cr_assert(strstr(message.text, "version 2") && strstr(message.text, "newer"));
	(void)close(other_fd);

	other_fd = file_of_content((const uint8_t *)"pysampl", 7);
	cr_assert(eq(int, recording_open(other_fd, &recording, &message), -EBADMSG));
	cr_assert(strstr(message.text, "not a pysample recording") != NULL);
	(void)close(other_fd);

	other_fd = file_of((const uint8_t *)"main;f 12\n", 10);
	cr_assert(eq(int, recording_open(other_fd, &recording, &message), -EBADMSG));
	(void)close(other_fd);

	other_fd = new_file();
	cr_assert(eq(int, recording_open(other_fd, &recording, &message), -EBADMSG));
	(void)close(other_fd);
	cr_assert(eq(int, recording_open(-1, &recording, &message), -EBADF));
	free(bytes.at);
	random_samples_done(&samples);
	(void)close(fd);
}

/* A record of a later version, before the last one. */
Test(recording, skips_unknown_records)
{
	struct random_samples samples;
	int fd = record(&samples, &small, true);
	struct bytes bytes = contents_of(fd);
	const uint8_t later[] = {200, 3, 1, 2, 3};
	uint8_t *content = malloc(bytes.nr + sizeof(later));
	bool is_torn;
	int later_fd;

	memcpy(content, bytes.at, 18);
	memcpy(content + 18, later, sizeof(later));
	memcpy(content + 18 + sizeof(later), bytes.at + 18, bytes.nr - 18);
	later_fd = file_of_content(content, bytes.nr + sizeof(later));
	cr_assert(eq(u32, read_prefix(later_fd, &samples, &is_torn), samples.nr_expected));
	cr_assert(not(is_torn));
	(void)close(later_fd);
	free(content);
	free(bytes.at);
	random_samples_done(&samples);
	(void)close(fd);
}

/* Bytes after the end are reported. */
Test(recording, reports_trailing_bytes)
{
	struct random_samples samples;
	int fd = record(&samples, &small, true);
	struct recording *recording;
	uint64_t torn_bytes;

	cr_assert(write(fd, "rubbish", 7) == 7);
	recording = open_file(fd);
	cr_assert(recording_is_torn(recording, &torn_bytes));
	cr_assert(torn_bytes >= 7);
	recording_close(recording);
	random_samples_done(&samples);
	(void)close(fd);
}

/*
 * A recording without an engine is older than the proofs, so its samples are approximate. Those
 * of a core are not.
 */
Test(recording, without_an_engine_is_approximate)
{
	static const struct {
		struct run_info info;
		uint32_t flags;
		const char *engine;
	} engines[] = {
		{{.engine = "preempt"}, SAMPLE_HOLDS_GIL, "preempt"},
		{{.engine = "racing"}, SAMPLE_HOLDS_GIL, "racing"},
		{{.pysample.host = "here"}, SAMPLE_HOLDS_GIL | SAMPLE_APPROXIMATE, "racing"},
		{{.target.core = "core.7"}, SAMPLE_HOLDS_GIL, NULL},
	};
	const struct sample_thread thread = {.tid = 7};
	const struct sample sample = {
		.time_ns = NS_PER_S, .thread = &thread, .flags = SAMPLE_HOLDS_GIL};

	for (size_t i = 0; i < NR(engines); i++) {
		const struct run run = {.info = engines[i].info, .stats = {.samples = 1}};
		struct reading *reading = new_reading(NULL);
		const uint64_t nr_approximate = (engines[i].flags & SAMPLE_APPROXIMATE) != 0;
		const int fd = new_file();
		struct recorder *recorder;
		struct recording *recording;

		cr_assert(eq(int, recorder_create(fd, &run, &recorder), 0));
		cr_assert(eq(int, record_process(recorder, 7, "python"), 0));
		cr_assert(eq(int,
			     recorder_sink(recorder)->ops->sample(recorder_sink(recorder), &sample),
			     0));
		cr_assert(eq(int, recorder_finish(recorder, &run), 0));
		recorder_destroy(recorder);
		cr_assert(eq(int, recording_open(fd, &recording, NULL), 0));
		cr_assert(eq(int, recording_read(recording, &reading_ops, reading), 0));
		cr_expect(eq(u32, reading->flags, engines[i].flags), "case %zu", i);
		cr_expect(eq(u64, recording_run(recording)->stats.approximate, nr_approximate));
		cr_expect(
			eq(int, recording_run(recording)->info.engine == NULL, !engines[i].engine));
		if (engines[i].engine)
			cr_expect(eq(str, (char *)recording_run(recording)->info.engine,
				     (char *)engines[i].engine));
		recording_close(recording);
		free_reading(reading);
		(void)close(fd);
	}
}
