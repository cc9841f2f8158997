/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "output/recording/recorded_threads.h"
#include "output/recording/recorder.h"
#include "output/recording/recording.h"
#include "output/recording/recording_format.h"
#include "procmem/clock.h"
#include "tests/support/processes.h"
#include "tests/support/random_samples.h"

static int new_file(void)
{
	int fd = memfd_create("recording", 0);

	cr_assert(fd >= 0);
	return fd;
}

static struct recorder *new_recorder(int fd, const struct run *run)
{
	struct recorder *recorder;

	cr_assert(eq(int, recorder_create(fd, run, &recorder), 0));
	return recorder;
}

static struct recording *open_file(int fd)
{
	struct recording *recording;
	struct message message = {0};

	cr_assert(eq(int, recording_open(fd, &recording, &message), 0), "%s", message.text);
	return recording;
}

/* Counts of everything in a recording. */
struct counts {
	uint32_t nr_processes, nr_functions, nr_nodes, nr_threads, nr_samples, nr_resets;
	uint64_t command_bytes, name_bytes; /* of processes */
	uint32_t max_nodes, deepest;	    /* node index of a sample */
	uint64_t wall_ns, cpu_ns;
	uint64_t nr_in_jit;
	uint32_t flags; /* of the last sample */
	uint64_t torn_bytes;
};

static int count_process(void *context, const struct process_info *process)
{
	struct counts *counts = context;

	counts->nr_processes++;
	counts->command_bytes += strlen(process->command_line);
	counts->name_bytes += strlen(process->name);
	return 0;
}

static int count_process_end(void *context, uint32_t process, uint64_t end_ns)
{
	(void)context, (void)process, (void)end_ns;
	return 0;
}

static int count_thread(void *context, uint32_t process, const struct profile_thread *thread)
{
	(void)process, (void)thread;
	((struct counts *)context)->nr_threads++;
	return 0;
}

static int count_function(void *context, const struct function *function)
{
	(void)function;
	((struct counts *)context)->nr_functions++;
	return 0;
}

static int count_node(void *context, uint32_t parent, uint32_t function, int32_t line)
{
	struct counts *counts = context;

	(void)parent, (void)function, (void)line;
	counts->nr_nodes++;
	if (counts->nr_nodes > counts->max_nodes)
		counts->max_nodes = counts->nr_nodes;
	return 0;
}

static int count_renamed(void *context, uint32_t thread, const char *name)
{
	(void)context, (void)thread, (void)name;
	return 0;
}

static int count_sample(void *context, const struct recorded_sample *sample)
{
	struct counts *counts = context;

	cr_assert(sample->node == PROFILE_NONE || sample->node < counts->nr_nodes);
	if (sample->node != PROFILE_NONE && sample->node > counts->deepest)
		counts->deepest = sample->node;
	counts->nr_samples++;
	counts->wall_ns += sample->wall_ns;
	counts->cpu_ns += sample->cpu_ns;
	counts->nr_in_jit += (sample->flags & SAMPLE_IN_JIT) != 0;
	counts->flags = sample->flags;
	return 0;
}

static int count_reset(void *context)
{
	struct counts *counts = context;

	counts->nr_functions = 0;
	counts->nr_nodes = 0;
	counts->nr_resets++;
	return 0;
}

static struct counts count(int fd)
{
	static const struct recording_ops ops = {
		.process = count_process,
		.process_ended = count_process_end,
		.thread = count_thread,
		.function = count_function,
		.node = count_node,
		.renamed = count_renamed,
		.sample = count_sample,
		.reset = count_reset,
	};
	struct recording *recording = open_file(fd);
	struct counts counts = {0};
	uint64_t torn_bytes;

	cr_assert(eq(int, recording_read(recording, &ops, &counts), 0));
	(void)recording_is_torn(recording, &torn_bytes);
	counts.torn_bytes = torn_bytes;
	recording_close(recording);
	return counts;
}

static const struct function recurse = {0, 1, "recurse", "deep.py", FUNCTION_PYTHON};
static const struct function leaf = {1, 9, "leaf", "deep.py", FUNCTION_PYTHON};
static const struct sample_thread main_thread = {.tid = 100, .name = "MainThread", .is_main = true};

/* Stacks of 50,000 frames that share nothing: a tree is full after 41 of them. */
Test(recorder, full_tables_are_reset)
{
	enum { DEPTH = 50000, NR_SAMPLES = 100 };
	const struct run run = {0};
	int fd = new_file();
	struct recorder *recorder = new_recorder(fd, &run);
	struct sample_sink *sink = recorder_sink(recorder);
	struct frame *frames = calloc(DEPTH, sizeof(*frames));
	struct sample sample = {.thread = &main_thread, .frames = frames, .nr_frames = DEPTH};
	struct counts counts;

	for (int i = 0; i < DEPTH; i++)
		frames[i] = (struct frame){&recurse, 2};
	for (int i = 0; i < NR_SAMPLES; i++) {
		frames[0] = (struct frame){&leaf, i};
		sample.time_ns = 1000000 + (uint64_t)i * 1000;
		sample.wall_ns = i ? 1000 : 0;
		cr_assert(eq(int, sink->ops->sample(sink, &sample), 0));
	}
	cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	recorder_destroy(recorder);
	counts = count(fd);
	cr_assert(eq(u32, counts.nr_resets, NR_SAMPLES / 41));
	cr_assert(eq(u32, counts.nr_samples, NR_SAMPLES));
	cr_assert(eq(u32, counts.nr_threads, 1));
	cr_assert(eq(u64, counts.wall_ns, (NR_SAMPLES - 1) * 1000));
	cr_assert(counts.max_nodes <= 1u << 21);
	free(frames);
	(void)close(fd);
}

static int push(struct recorder *recorder, uint64_t time_ns, int32_t line)
{
	struct sample_sink *sink = recorder_sink(recorder);
	const struct frame frame = {&leaf, line};

	return sink->ops->sample(sink, &(struct sample){.time_ns = time_ns,
							.thread = &main_thread,
							.frames = &frame,
							.nr_frames = 1});
}

/*
 * A recording that was not finished contains all but the last second, with the counters of that
 * time.
 */
Test(recorder, flushes_every_second)
{
	const struct run run = {.info = {.pysample.host = "here", .requested_hz = 100}};
	struct sampler_stats stats = {.start_ns = 5 * (uint64_t)NS_PER_S};
	int fd = new_file();
	struct recorder *recorder = new_recorder(fd, &run);
	struct sample_sink *sink = recorder_sink(recorder);
	const uint64_t begin_ns = stats.start_ns;
	struct recording *recording = open_file(fd);

	cr_assert(eq(str, (char *)recording_run(recording)->info.pysample.host, (char *)"here"));
	recording_close(recording);
	recorder_set_stats(recorder, &stats);
	for (uint64_t i = 0; i < 1000; i++) {
		const uint64_t now_ns = begin_ns + i * 10000000;
		const struct run *read;
		uint64_t torn_bytes;

		cr_assert(eq(int, push(recorder, now_ns, (int32_t)i), 0));
		stats.ticks++;
		stats.samples++;
		stats.lost[LOSS_MOVED] += i % 7 == 0;
		cr_assert(eq(int, sink->ops->tick(sink, now_ns), 0));
		recording = open_file(fd);
		read = recording_run(recording);
		cr_assert(recording_is_torn(recording, &torn_bytes));
		cr_assert(eq(u64, torn_bytes, 0));
		cr_assert(read->stats.samples + 100 > stats.samples);
		cr_assert(eq(u64, read->stats.samples, read->info.account.nr_samples));
		cr_assert(eq(u64, read->stats.lost[LOSS_MOVED], (read->stats.ticks + 6) / 7));
		if (read->stats.ticks)
			cr_assert(eq(u64, read->stats.end_ns - begin_ns,
				     read->stats.ticks * 10000000));
		if (i % 100 == 99)
			cr_assert(eq(u32, count(fd).nr_samples, (uint32_t)read->stats.samples));
		recording_close(recording);
	}
	recorder_destroy(recorder);
	(void)close(fd);
}

/* A target without samples is recorded, too, by its ticks. */
Test(recorder, flushes_without_samples)
{
	const struct run run = {0};
	struct sampler_stats stats = {.start_ns = NS_PER_S};
	int fd = new_file();
	struct recorder *recorder = new_recorder(fd, &run);
	struct sample_sink *sink = recorder_sink(recorder);
	struct recording *recording;

	recorder_set_stats(recorder, &stats);
	for (stats.ticks = 1; stats.ticks <= 50; stats.ticks++)
		cr_assert(eq(int, sink->ops->tick(sink, stats.ticks * NS_PER_S / 10), 0));
	recording = open_file(fd);
	cr_assert(recording_run(recording)->stats.ticks >= 40);
	recording_close(recording);
	recorder_destroy(recorder);
	(void)close(fd);
}

/* The sums are those of the samples as read back; their total is exact. */
Test(recorder, sums_match_the_stored_samples)
{
	const struct random_options options = {
		.seed = 21, .nr_ticks = 5000, .rate_hz = 1000, .measures_cpu = true};
	struct random_samples samples;
	int fd = new_file();
	struct run run;
	struct recorder *recorder;
	struct counts counts;
	const struct profile_sums *sums;

	random_samples_init(&samples, &options);
	run = random_samples_run(&samples);
	recorder = new_recorder(fd, &run);
	cr_assert(eq(int, random_samples_play(&samples, recorder), 0));
	cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	sums = recorder_sums(recorder);
	counts = count(fd);
	cr_assert(eq(u64, sums->account.nr_samples, counts.nr_samples));
	cr_assert(eq(u64, sums->account.nr_shown, counts.nr_samples));
	cr_assert(eq(u64, sums->account.nr_cpu_measured, counts.nr_samples));
	cr_assert(eq(u64, sums->account.wall_ns, counts.wall_ns));
	cr_assert(eq(u64, sums->account.cpu_ns, counts.cpu_ns));
	cr_assert(eq(u64, sums->time_ns, counts.wall_ns));
	cr_assert(sums->frameless_ns > 0 && sums->frameless_ns < sums->time_ns);
	cr_assert(eq(u64, sums->account.nr_in_jit, counts.nr_in_jit));
	cr_assert(counts.nr_in_jit > 0);
	recorder_destroy(recorder);
	random_samples_done(&samples);
	(void)close(fd);
}

/* A copy is complete, and the recording continues as if there had been none. */
Test(recorder, copies_and_continues)
{
	const struct run run = {0};
	int fd = new_file(), copy_fd = new_file();
	struct recorder *recorder = new_recorder(fd, &run);
	struct recording *recording;
	uint64_t torn_bytes;

	for (uint64_t i = 1; i <= 5; i++)
		cr_assert(eq(int, push(recorder, i * NS_PER_S, 1), 0));
	cr_assert(eq(int, recorder_copy(recorder, &run, 6 * (uint64_t)NS_PER_S, fd, copy_fd), 0));
	for (uint64_t i = 6; i <= 9; i++)
		cr_assert(eq(int, push(recorder, i * NS_PER_S, 1), 0));
	cr_assert(eq(int, recorder_copy(recorder, &run, 9 * (uint64_t)NS_PER_S, fd, -1), -EBADF));
	cr_assert(eq(int, push(recorder, 10 * (uint64_t)NS_PER_S, 1), 0));
	cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	recording = open_file(copy_fd);
	cr_expect(not(recording_is_torn(recording, &torn_bytes)));
	recording_close(recording);
	cr_expect(eq(u32, count(copy_fd).nr_samples, 5));
	recording = open_file(fd);
	cr_expect(not(recording_is_torn(recording, &torn_bytes)));
	recording_close(recording);
	cr_expect(eq(u32, count(fd).nr_samples, 10));
	recorder_destroy(recorder);
	(void)close(copy_fd);
	(void)close(fd);
}

/* Flags that only dumps use are not stored. */
Test(recorder, stores_flags_of_samples)
{
	const struct run run = {.info = {.engine = "preempt"}};
	int fd = new_file();
	struct recorder *recorder = new_recorder(fd, &run);
	struct sample_sink *sink = recorder_sink(recorder);
	const struct sample sample = {
		.time_ns = NS_PER_S, .thread = &main_thread, .flags = UINT32_MAX};

	cr_assert(eq(int, sink->ops->sample(sink, &sample), 0));
	cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	cr_expect(eq(u32, count(fd).flags,
		     SAMPLE_HOLDS_GIL | SAMPLE_UNPROVEN | SAMPLE_WAITS_FOR_GIL | SAMPLE_GC |
			     SAMPLE_EXCEPTION | SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU |
			     SAMPLE_IN_JIT | SAMPLE_APPROXIMATE | SAMPLE_IDLE));
	recorder_destroy(recorder);
	(void)close(fd);
}

/* When the file cannot grow, every write fails, and what was flushed before can be read. */
Test(recorder, reports_a_write_error, .signal = 0)
{
	const struct run run = {.info = {.requested_hz = 1000}};
	const struct rlimit limit = {20000, RLIM_INFINITY};
	char path[] = "/tmp/test_recorder_XXXXXX";
	int fd = mkstemp(path);
	struct recorder *recorder = new_recorder(fd, &run);
	uint64_t time_ns = NS_PER_S;
	struct recording *recording;
	uint64_t torn_bytes;
	int err = 0;

	cr_assert(fd >= 0 && unlink(path) == 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	cr_assert(eq(int, setrlimit(RLIMIT_FSIZE, &limit), 0));
	for (int32_t i = 0; !err && i < 1000000; i++)
		err = push(recorder, time_ns += 1000000, (i * 7919) % 5003);
	cr_assert(eq(int, err, -EFBIG));
	cr_assert(eq(int, push(recorder, time_ns, 1), -EFBIG));
	cr_assert(eq(int, push(recorder, time_ns + NS_PER_S, 1), -EFBIG));
	cr_assert(eq(int, recorder_finish(recorder, &run), -EFBIG));
	recorder_destroy(recorder);
	cr_assert(eq(long, (long)lseek(fd, 0, SEEK_END), 20000));
	recording = open_file(fd);
	cr_assert(recording_is_torn(recording, &torn_bytes));
	cr_assert(torn_bytes > 0);
	recording_close(recording);
	cr_assert(count(fd).nr_samples > 5000);
	(void)close(fd);
}

Test(recorder, reports_a_closed_pipe)
{
	const struct run run = {0};
	struct recorder *recorder;
	int fds[2];

	(void)signal(SIGPIPE, SIG_IGN);
	cr_assert(eq(int, pipe(fds), 0));
	recorder = new_recorder(fds[1], &run);
	(void)close(fds[0]);
	cr_assert(eq(int, push(recorder, NS_PER_S, 1), 0));
	cr_assert(eq(int, recorder_finish(recorder, &run), -EPIPE));
	recorder_destroy(recorder);
	cr_assert(eq(int, recorder_create(fds[1], &run, &recorder), -EPIPE));
	recorder_destroy(NULL);
	(void)close(fds[1]);
}

static uint32_t u32_at(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

/* Parse the seek table of zstd's seekable format. */
Test(recorder, ends_with_a_seek_table)
{
	const struct run run = {0};
	int fd = new_file();
	struct recorder *recorder = new_recorder(fd, &run);
	uint8_t bytes[4096];
	ssize_t nr;
	uint32_t nr_frames, table, at = 0;

	for (uint64_t i = 1; i <= 5; i++)
		cr_assert(eq(int, push(recorder, i * NS_PER_S, 1), 0));
	cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	nr = pread(fd, bytes, sizeof(bytes), 0);
	cr_assert(nr > 100 && nr < (ssize_t)sizeof(bytes));
	cr_assert(eq(u64, recorder_bytes(recorder), (uint64_t)nr));
	cr_assert(eq(u32, u32_at(bytes + nr - 4), 0x8F92EAB1));
	cr_assert(eq(u8, bytes[nr - 5], 0));
	nr_frames = u32_at(bytes + nr - 9);
	table = (uint32_t)nr - 9 - 8 * nr_frames;
	cr_assert(eq(u32, nr_frames, 6));
	cr_assert(eq(u32, u32_at(bytes + table - 8), 0x184D2A5E));
	cr_assert(eq(u32, u32_at(bytes + table - 4), 8 * nr_frames + 9));
	for (uint32_t i = 0; i < nr_frames; i++) {
		cr_assert(eq(u32, u32_at(bytes + at), 0xFD2FB528));
		at += u32_at(bytes + table + 8 * i);
	}
	cr_assert(eq(u32, at, table - 8));
	recorder_destroy(recorder);
	(void)close(fd);
}

/* Idle threads take no room, so a second of them fits in one small frame. */
Test(recorder, starts_a_frame_at_the_sample_limit)
{
	enum { NR_THREADS = 100, NR_TICKS = RECORDING_MAX_SAMPLES / NR_THREADS * 5 / 4 };
	const struct run run = {.info = {.requested_hz = 100000}};
	int fd = new_file();
	struct recorder *recorder = new_recorder(fd, &run);
	struct sample_sink *sink = recorder_sink(recorder);
	struct counts counts;

	for (uint32_t i = 0; i < NR_TICKS; i++) {
		for (uint32_t j = 0; j < NR_THREADS; j++) {
			const struct sample_thread thread = {.id = j, .slot = j};
			const struct sample sample = {
				.time_ns = NS_PER_S + (uint64_t)i * 10000,
				.wall_ns = i ? 10000 : 0,
				.thread = &thread,
			};

			cr_assert(eq(int, sink->ops->sample(sink, &sample), 0));
		}
	}
	cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	cr_assert(recorder_bytes(recorder) < 10000);
	recorder_destroy(recorder);
	counts = count(fd);
	cr_assert(eq(u64, counts.torn_bytes, 0));
	cr_assert(eq(u32, counts.nr_samples, NR_TICKS * NR_THREADS));
	(void)close(fd);
}

/* One thread too many is refused, and the recording can still be finished and read. */
Test(recorder, refuses_threads_beyond_the_limit)
{
	const struct run run = {0};
	int fd = new_file();
	struct recorder *recorder = new_recorder(fd, &run);
	struct sample_sink *sink = recorder_sink(recorder);
	struct sample_thread thread = {0};
	struct sample sample = {.time_ns = NS_PER_S, .thread = &thread};
	struct counts counts;

	for (uint32_t i = 0; i < RECORDING_MAX_THREADS; i++) {
		thread.id = i;
		thread.slot = i % RECORDING_MAX_SLOTS;
		cr_assert(eq(int, sink->ops->sample(sink, &sample), 0));
	}
	thread.id = RECORDING_MAX_THREADS;
	cr_assert(eq(int, sink->ops->sample(sink, &sample), -E2BIG));
	cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	recorder_destroy(recorder);
	counts = count(fd);
	cr_assert(eq(u64, counts.torn_bytes, 0));
	cr_assert(eq(u32, counts.nr_threads, RECORDING_MAX_THREADS));
	cr_assert(eq(u32, counts.nr_samples, RECORDING_MAX_THREADS));
	(void)close(fd);
}

/* Push a sample of the only thread of a process. */
static int push_of(struct recorder *recorder, uint32_t process)
{
	const struct sample_thread thread = {.id = process, .slot = process, .process = process};
	struct sample_sink *sink = recorder_sink(recorder);

	return sink->ops->sample(sink, &(struct sample){.time_ns = NS_PER_S, .thread = &thread});
}

/*
 * Command lines beyond the limit of all together are left out, but no name, and processes beyond
 * the limit, without an end of the recording.
 */
Test(recorder, leaves_out_processes_beyond_the_limit)
{
	/* Their names have one byte each. An eighth of the room is for names only. */
	enum { NR_LONG = RECORDING_MAX_COMMAND_BYTES / 8 * 7 / (RECORDING_MAX_STRING_BYTES + 1) };
	const struct run run = {0};
	int fd = new_file();
	struct recorder *recorder = new_recorder(fd, &run);
	char *line = malloc(100000);
	const struct process_info process = {.pid = 1, .name = "n", .command_line = line};
	struct counts counts;
	uint32_t index;

	cr_assert(line != NULL);
	memset(line, 'x', 100000);
	line[99999] = '\0';
	for (uint32_t i = 0; i < RECORDING_MAX_PROCESSES; i++) {
		cr_assert(eq(int, recorder_add_process(recorder, &process, &index), 0));
		cr_assert(eq(u32, index, i));
	}
	cr_assert(eq(int, recorder_add_process(recorder, &process, &index), 0));
	cr_expect(eq(u32, index, PROFILE_NONE));
	for (uint32_t i = 0; i <= RECORDING_MAX_PROCESSES; i++)
		cr_assert(eq(int, push_of(recorder, i), 0));
	cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	recorder_destroy(recorder);
	counts = count(fd);
	cr_assert(eq(u64, counts.torn_bytes, 0));
	cr_assert(eq(u32, counts.nr_processes, RECORDING_MAX_PROCESSES));
	cr_assert(eq(u64, counts.command_bytes, (uint64_t)NR_LONG * RECORDING_MAX_STRING_BYTES));
	cr_assert(eq(u64, counts.name_bytes, RECORDING_MAX_PROCESSES));
	free(line);
	(void)close(fd);
}

/* A process is written with its first thread, and its end, too, if that came before. */
Test(recorder, leaves_out_processes_without_samples)
{
	const struct run run = {0};
	int fd = new_file();
	struct recorder *recorder = new_recorder(fd, &run);
	const struct profile_process *rows;
	struct recording *recording;

	for (pid_t pid = 1; pid <= 4; pid++)
		cr_assert(eq(int, record_process(recorder, pid, "python"), 0));
	for (uint32_t i = 2; i < 4; i++)
		cr_assert(eq(int, recorder_end_process(recorder, i, NS_PER_S), 0));
	cr_assert(eq(int, push_of(recorder, 3), 0));
	cr_assert(eq(int, push_of(recorder, 1), 0));
	cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	recorder_destroy(recorder);

	recording = open_file(fd);
	rows = recording_processes(recording)->rows;
	cr_assert(eq(u32, recording_processes(recording)->nr, 2));
	cr_expect(eq(int, rows[0].pid, 4));
	cr_expect(rows[0].end_ns > 0);
	cr_expect(eq(int, rows[1].pid, 2));
	cr_expect(eq(u64, rows[1].end_ns, 0));
	recording_close(recording);
	(void)close(fd);
}

/* Processes interleave: each thread is in its own, and a process may end at any time. */
Test(recorder, keeps_what_is_known_of_processes)
{
	const struct run run = {.info.start_unix_ns = UINT64_C(1700000000000000000),
				.stats.start_ns = NS_PER_S};
	const uint64_t epoch_ns = run.info.start_unix_ns - run.stats.start_ns;
	const struct process_info processes[] = {
		{.pid = 7,
		 .name = "gunicorn app:wsgi",
		 .command_line = "a b",
		 .start_ns = NS_PER_S},
		{.pid = 8, .parent_pid = 7, .name = "gunicorn app:wsgi", .start_ns = 2 * NS_PER_S},
	};
	static const uint32_t process_of_thread[] = {0, 1, 5};
	int fd = new_file();
	struct recorder *recorder = new_recorder(fd, &run);
	struct sample_sink *sink = recorder_sink(recorder);
	struct recorded_threads threads;
	const struct profile_process *rows;
	struct recording *recording;
	uint32_t index;

	for (uint32_t i = 0; i < 2; i++) {
		cr_assert(eq(int, recorder_add_process(recorder, &processes[i], &index), 0));
		cr_assert(eq(u32, index, i));
	}
	for (uint32_t i = 0; i < 3; i++) {
		const struct sample_thread thread = {
			.id = i, .slot = i, .process = process_of_thread[i]};
		const struct sample sample = {.time_ns = UINT64_C(3) * NS_PER_S, .thread = &thread};

		cr_assert(eq(int, sink->ops->sample(sink, &sample), 0));
		cr_assert(eq(int, recorder_end_process(recorder, 1, (UINT64_C(3) + i) * NS_PER_S),
			     0));
	}
	cr_assert(eq(int, recorder_end_process(recorder, PROFILE_NONE, NS_PER_S), 0));
	cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	recorder_destroy(recorder);

	recording = open_file(fd);
	cr_assert(eq(int, recorded_threads_read(recording, &threads), 0));
	cr_assert(eq(u32, recording_processes(recording)->nr, 2));
	rows = recording_processes(recording)->rows;
	cr_expect(eq(str, rows[0].name, (char *)"gunicorn app:wsgi"));
	cr_expect(eq(str, rows[0].command_line, (char *)"a b"));
	cr_expect(eq(str, rows[1].command_line, (char *)""));
	cr_expect(eq(int, rows[0].parent_pid, 0));
	cr_expect(eq(int, rows[1].parent_pid, 7));
	cr_expect(eq(u64, rows[1].start_ns, epoch_ns + 2 * NS_PER_S));
	cr_expect(eq(u64, rows[0].end_ns, 0));
	cr_expect(eq(u64, rows[1].end_ns, epoch_ns + UINT64_C(5) * NS_PER_S));
	cr_assert(eq(u32, threads.nr_threads, 3));
	cr_expect(eq(u32, threads.threads[0].process, 0));
	cr_expect(eq(u32, threads.threads[1].process, 1));
	cr_expect(eq(u32, threads.threads[2].process, PROFILE_NONE), "not among those added");
	recorded_threads_done(&threads);
	recording_close(recording);
	(void)close(fd);
}
