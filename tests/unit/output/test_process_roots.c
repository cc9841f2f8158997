/* SPDX-License-Identifier: MIT */
/* Roots of processes in the tree of stacks, from samples of several that interleave. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "output/formats/collapsed.h"
#include "output/profile/profile.h"
#include "output/recording/recorder.h"
#include "output/recording/recording.h"
#include "output/recording/replay.h"
#include "procmem/cleanup.h"
#include "tests/support/artefact_text.h"

enum { NR_PROCESSES = 3, NR_THREADS = 4, NR_TICKS = 2 };

static const struct function work = {0, 10, "work", "app.py", FUNCTION_PYTHON};

/* Two workers of one name, and a process of which only its arguments are known. */
static const struct process_info processes[NR_PROCESSES] = {
	{.pid = 4711, .name = "gunicorn app:wsgi", .start_ns = 1000},
	{.pid = 4712, .parent_pid = 4711, .name = "gunicorn app:wsgi", .start_ns = 2000},
	{.pid = 4713, .command_line = "/usr/bin/python3 -c secret"},
};

/* One thread of each, and one of a process that nobody added. */
static const struct sample_thread threads[NR_THREADS] = {
	{.id = 0, .slot = 0, .process = 0, .tid = 4711, .name = "MainThread", .is_main = true},
	{.id = 1, .slot = 1, .process = 1, .tid = 4712, .name = "MainThread", .is_main = true},
	{.id = 2, .slot = 2, .process = 2, .tid = 4713, .name = "MainThread", .is_main = true},
	{.id = 3, .slot = 3, .process = PROFILE_NONE, .tid = 5},
};

/* All threads work; the last one of the first tick runs no Python code. */
static void push_all(struct sample_sink *sink)
{
	const struct frame frame = {&work, 11};

	for (uint64_t tick = 1; tick <= NR_TICKS; tick++)
		for (uint32_t i = 0; i < NR_THREADS; i++) {
			const struct sample sample = {
				.time_ns = tick * 1000000,
				.wall_ns = 1000000,
				.thread = &threads[i],
				.frames = &frame,
				.nr_frames = tick > 1 || i + 1 < NR_THREADS,
			};

			cr_assert(eq(int, sink->ops->sample(sink, &sample), 0));
		}
}

static const struct run run = {.info.engine = "tick"};

/* Begin a recording of these processes. *ret_fd is open until the test ends. */
static struct recorder *begin(const struct process_info *infos, uint32_t nr, int *ret_fd)
{
	struct recorder *recorder;
	uint32_t index;

	*ret_fd = memfd_create("recording", MFD_CLOEXEC);
	cr_assert(eq(int, recorder_create(*ret_fd, &run, &recorder), 0));
	for (uint32_t i = 0; i < nr; i++)
		cr_assert(eq(int, recorder_add_process(recorder, &infos[i], &index), 0));
	return recorder;
}

/* End it, and open what was written. */
static struct recording *end(struct recorder *recorder, int fd)
{
	struct message message = {0};
	struct recording *recording;

	cr_assert(eq(int, recorder_finish(recorder, &run), 0));
	recorder_destroy(recorder);
	cr_assert(eq(int, recording_open(fd, &recording, &message), 0), "%s", message.text);
	return recording;
}

static struct recording *record(void)
{
	int fd;
	struct recorder *recorder = begin(processes, NR_PROCESSES, &fd);

	push_all(recorder_sink(recorder));
	cr_assert(eq(int, recorder_end_process(recorder, 1, 2000000), 0));
	return end(recorder, fd);
}

static char *collapsed(const struct profile *profile)
{
	const struct artefact artefact = {.profile = profile};
	size_t size;

	return artefact_text(collapsed_write, &artefact, &size);
}

#define WORK  "work (app.py:10)"
#define IDLE  "[no python frames]"
#define FIRST "gunicorn app:wsgi (4711)"
#define OTHER "gunicorn app:wsgi (4712)"
#define THIRD "python3 (4713)"

static const struct {
	struct profile_options options;
	const char *expected;
} cases[] = {
	{{0}, WORK " 7\n" IDLE " 1\n"},
	{{.by_process = true},
	 FIRST ";" WORK " 2\n" OTHER ";" WORK " 2\n" THIRD ";" WORK " 2\n"
	       "[other processes];" IDLE " 1\n[other processes];" WORK " 1\n"},
	{{.by_process = true, .by_thread = true},
	 FIRST ";thread MainThread (4711);" WORK " 2\n" OTHER ";thread MainThread (4712);" WORK
	       " 2\n" THIRD ";thread MainThread (4713);" WORK " 2\n"
	       "[other processes];thread (5);" IDLE " 1\n[other processes];thread (5);" WORK
	       " 1\n"},
	{{.by_process = true, .merges_names = true},
	 "gunicorn app:wsgi;" WORK " 4\npython3;" WORK " 2\n"
	 "[other processes];" IDLE " 1\n[other processes];" WORK " 1\n"},
	/* Room for one root, then three that are reserved. */
	{{.by_process = true, .max_nodes = 5},
	 FIRST ";" WORK " 2\n[other processes];" IDLE " 1\n[other stacks] 5\n"},
};

Test(process_roots, are_above_all_stacks_of_a_process)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct profile *profile = profile_create(&cases[i].options);
		cleanup_free char *text = NULL;
		uint32_t index;

		for (uint32_t k = 0; k < NR_PROCESSES; k++)
			cr_assert(eq(int, profile_add_process(profile, &processes[k], &index), 0));
		push_all(profile_sink(profile));
		text = collapsed(profile);
		cr_expect(eq(str, text, (char *)cases[i].expected), "case %zu", i);
		profile_destroy(profile);
	}
}

Test(process_roots, are_the_same_in_a_replay)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct profile *profile = profile_create(&cases[i].options);
		struct recording *recording = record();
		cleanup_free char *text = NULL;

		cr_assert(eq(int,
			     replay(recording, &(struct replay_filter){0}, profile, PROFILE_SHOWN),
			     0));
		recording_close(recording);
		text = collapsed(profile);
		cr_expect(eq(str, text, (char *)cases[i].expected), "case %zu", i);
		profile_destroy(profile);
	}
}

/* The threads of the base are found in processes of equal names. */
Test(process_roots, are_shared_by_both_sides_of_a_comparison)
{
	const struct profile_options options = {
		.by_process = true, .merges_names = true, .by_thread = true};
	struct profile *profile = profile_create(&options);
	uint32_t nr_before, nr;

	for (int side = 0; side < NR_PROFILE_SIDES; side++) {
		struct recording *recording = record();

		cr_assert(eq(int,
			     replay(recording, &(struct replay_filter){0}, profile,
				    (enum profile_side)side),
			     0));
		recording_close(recording);
		(void)profile_nodes(profile, side == PROFILE_SHOWN ? &nr_before : &nr);
	}
	cr_expect(eq(u32, nr, nr_before));
	profile_destroy(profile);
}

Test(process_roots, processes_are_selected_by_name_and_pid)
{
	static const struct {
		const char *processes[2];
		uint32_t nr;
		uint64_t nr_samples;
	} filters[] = {
		{{0}, 0, 8},
		{{"4712"}, 1, 2},
		{{"gunicorn*"}, 1, 4},
		{{"gunicorn app:wsgi"}, 1, 4},
		{{"gunicorn"}, 1, 0},
		{{"python3"}, 1, 2},
		{{"python?", "4711"}, 2, 4},
		{{"*"}, 1, 6},
		{{"*secret*"}, 1, 0},
	};

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		const struct replay_filter filter = {
			.processes = {filters[i].processes, filters[i].nr}};
		struct profile *profile = profile_create(&(struct profile_options){0});
		struct recording *recording = record();

		cr_assert(eq(int, replay(recording, &filter, profile, PROFILE_SHOWN), 0));
		recording_close(recording);
		cr_expect(eq(u64, profile_sums(profile, PROFILE_SHOWN)->account.nr_samples,
			     filters[i].nr_samples),
			  "case %zu", i);
		profile_destroy(profile);
	}
}

Test(process_roots, a_replay_keeps_what_is_known_of_processes)
{
	struct profile *profile = profile_create(&(struct profile_options){.keep_threads = true});
	struct recording *recording = record();
	const struct profile_process *rows;
	uint32_t nr;

	cr_assert(
		eq(int, replay(recording, &(struct replay_filter){0}, profile, PROFILE_SHOWN), 0));
	recording_close(recording);
	rows = profile_processes(profile, &nr);
	cr_assert(eq(u32, nr, NR_PROCESSES));
	cr_expect(eq(str, rows[1].name, (char *)"gunicorn app:wsgi"));
	cr_expect(eq(int, rows[1].parent_pid, 4711));
	cr_expect(eq(u64, rows[1].end_ns - rows[1].start_ns, 1998000));
	cr_expect(eq(u64, rows[0].end_ns, 0));
	profile_destroy(profile);
}

/* Record a sample of one process. */
static struct recording *record_one(const struct process_info *process)
{
	const struct frame frame = {&work, 11};
	const struct sample sample = {
		.time_ns = 1000000,
		.wall_ns = 1000000,
		.thread = &threads[0],
		.frames = &frame,
		.nr_frames = 1,
	};
	int fd;
	struct recorder *recorder = begin(process, 1, &fd);

	cr_assert(
		eq(int, recorder_sink(recorder)->ops->sample(recorder_sink(recorder), &sample), 0));
	return end(recorder, fd);
}

/* Two processes are one if pid, name and command line are equal; in a comparison, the name. */
Test(process_roots, processes_are_identified_by_what_they_are)
{
	/* The 32-bit FNV-1a hashes of the last two names are equal. */
	static const struct {
		struct process_info first, second;
		uint32_t nr_processes;
		uint32_t nr_roots; /* in a comparison */
	} pairs[] = {
		{{.pid = 1, .name = "a"}, {.pid = 1, .name = "a"}, 1, 1},
		{{.pid = 1, .name = "a"}, {.pid = 2, .name = "a"}, 2, 1},
		{{.pid = 1, .name = "a"}, {.pid = 1, .name = "b"}, 2, 2},
		{{.pid = 1, .name = "a", .command_line = "a 1"},
		 {.pid = 1, .name = "a", .command_line = "a 2"},
		 2,
		 1},
		{{.pid = 1, .name = "python 24878.py"},
		 {.pid = 1, .name = "python 505500.py"},
		 2,
		 2},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		for (int side = 0; side < NR_PROFILE_SIDES; side++) {
			const struct process_info *both[] = {&pairs[i].first, &pairs[i].second};
			const struct profile_options options = {
				.by_process = true,
				.merges_names = side == PROFILE_BASE,
				.keep_threads = true,
			};
			const uint32_t nr_expected =
				side == PROFILE_BASE ? pairs[i].nr_roots : pairs[i].nr_processes;
			struct profile *profile = profile_create(&options);
			uint32_t nr_processes, nr_threads, nr_nodes;

			for (int k = 0; k < 2; k++) {
				struct recording *recording = record_one(both[k]);

				cr_assert(eq(int,
					     replay(recording, &(struct replay_filter){0}, profile,
						    k ? (enum profile_side)side : PROFILE_SHOWN),
					     0));
				recording_close(recording);
			}
			(void)profile_processes(profile, &nr_processes);
			(void)profile_threads(profile, &nr_threads);
			(void)profile_nodes(profile, &nr_nodes);
			cr_expect(eq(u32, nr_processes, pairs[i].nr_processes), "case %zu", i);
			cr_expect(eq(u32, nr_threads, nr_expected), "case %zu", i);
			cr_expect(eq(u32, nr_nodes, 2 * nr_expected), "case %zu", i);
			profile_destroy(profile);
		}
}
