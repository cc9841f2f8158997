/* SPDX-License-Identifier: MIT */
/*
 * Makes a recording of a program that never ran, for scripts/bench formats. Its content is always
 * the same: THREADS threads, 16 by default, SAMPLES samples in all at 1 kHz, and 20,000 distinct
 * stacks of 27 frames on average, which share their callers as a tree does. The stack of each sample
 * is drawn independently, the n-th stack 1/n as often as the first. No real program is as hard to
 * compress.
 *
 * usage: make_recording FILE.pysample [SAMPLES [THREADS [cpu]]]
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output/recording/recorder.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "tests/support/processes.h"

enum {
	MAX_THREADS = 16,
	NR_STACKS = 20000,
	NR_FUNCTIONS = 4000,
	NR_FILES = 300,
	MIN_DEPTH = 15,
	MAX_DEPTH = 39,
	LINES_OF_FUNCTION = 40,
	DEFAULT_SAMPLES = 1000000,
};

#define TICK_NS	     1000000u
#define START_NS     1000000000000u
#define START_UNIX_S 1790000000u

struct stack {
	struct frame frames[MAX_DEPTH];
	uint32_t nr;
	bool was_seen;
};

struct program {
	struct function functions[NR_FUNCTIONS];
	uint32_t nr_ids;
	uint32_t nr_threads;
	struct stack stacks[NR_STACKS];
	double up_to[NR_STACKS]; /* sum of the weights of the stacks up to and including this one */
	uint64_t random;
};

struct sampled_thread {
	struct sample_thread thread;
	const struct stack *stack;
	uint64_t time_ns;
};

/* splitmix64; https://prng.di.unimi.it/splitmix64.c */
static uint64_t draw(struct program *program)
{
	uint64_t bits = program->random += 0x9e3779b97f4a7c15;

	bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
	bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
	return bits ^ bits >> 31;
}

static uint32_t draw_below(struct program *program, uint32_t end)
{
	return (uint32_t)(draw(program) % end);
}

static void make_functions(struct program *program)
{
	static const char *const places[] = {"/srv/app/package",
					     "/srv/venv/lib/python3.12/site-packages/library",
					     "/usr/lib/python3.12/module"};

	for (uint32_t i = 0; i < NR_FUNCTIONS; i++) {
		uint32_t file = i % NR_FILES;
		char *name = NULL;
		char *path = NULL;

		if (asprintf(&name, "Class%u.method_%u", (unsigned)i / 9, (unsigned)i) < 0 ||
		    asprintf(&path, "%s_%u/file_%u.py", places[file % 3], (unsigned)file / 10,
			     (unsigned)file) < 0)
			abort();
		program->functions[i] = (struct function){
			.first_line = (int32_t)(10 + i / NR_FILES * (LINES_OF_FUNCTION + 5)),
			.id = UINT32_MAX, /* until it is first seen */
			.qualname = name,
			.path = path,
		};
	}
}

static void make_frame(struct program *program, struct frame *frame)
{
	const struct function *function = &program->functions[draw_below(program, NR_FUNCTIONS)];

	*frame = (struct frame){
		.function = function,
		.line = function->first_line + 1 + (int32_t)draw_below(program, LINES_OF_FUNCTION),
	};
}

/* Each stack but the first shares its outer frames, half or more of the shorter's, with another. */
static void make_stacks(struct program *program)
{
	double sum = 0;

	for (uint32_t i = 0; i < NR_STACKS; i++) {
		struct stack *stack = &program->stacks[i];
		uint32_t nr_shared = 0;

		stack->nr = MIN_DEPTH + draw_below(program, MAX_DEPTH - MIN_DEPTH + 1);
		if (i) {
			const struct stack *other = &program->stacks[draw_below(program, i)];
			uint32_t most = other->nr < stack->nr ? other->nr : stack->nr;

			nr_shared = most / 2 + draw_below(program, most / 2);
			memcpy(stack->frames, other->frames, nr_shared * sizeof(*stack->frames));
		}
		for (uint32_t k = nr_shared; k < stack->nr; k++)
			make_frame(program, &stack->frames[k]);
		sum += 1.0 / (i + 1);
		program->up_to[i] = sum;
	}
}

static const struct stack *draw_stack(struct program *program)
{
	double wanted = (double)(draw(program) >> 11) * 0x1p-53 * program->up_to[NR_STACKS - 1];
	uint32_t low = 0;
	uint32_t high = NR_STACKS - 1;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (program->up_to[middle] < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return &program->stacks[low];
}

/* Number the functions of a stack when it is first drawn, as a sampler does. */
static void number_functions(struct program *program, const struct stack *drawn)
{
	struct stack *stack = &program->stacks[drawn - program->stacks];

	for (uint32_t i = 0; !stack->was_seen && i < stack->nr; i++) {
		struct function *function =
			&program->functions[stack->frames[i].function - program->functions];

		if (function->id == UINT32_MAX)
			function->id = program->nr_ids++;
	}
	stack->was_seen = true;
}

static uint32_t nr_equal_frames(const struct stack *one, const struct stack *other)
{
	uint32_t nr = 0;

	while (one && nr < one->nr && nr < other->nr &&
	       one->frames[nr].function == other->frames[nr].function &&
	       one->frames[nr].line == other->frames[nr].line)
		nr++;
	return nr;
}

static int push_sample(struct program *program, struct sample_sink *sink,
		       struct sampled_thread *thread, uint64_t now_ns, bool with_cpu)
{
	const struct stack *stack = draw_stack(program);
	struct sample sample = {
		.time_ns = now_ns,
		.wall_ns = now_ns - thread->time_ns,
		.thread = &thread->thread,
		.frames = stack->frames,
		.nr_frames = stack->nr,
		.nr_unchanged = nr_equal_frames(thread->stack, stack),
	};

	number_functions(program, stack);
	if (with_cpu) {
		sample.cpu_ns = draw_below(program, 1000) * (uint64_t)1000;
		sample.flags = SAMPLE_CPU_MEASURED | (sample.cpu_ns ? SAMPLE_ON_CPU : 0u);
	}
	if (thread->thread.id == now_ns / TICK_NS % program->nr_threads)
		sample.flags |= SAMPLE_HOLDS_GIL;
	thread->stack = stack;
	thread->time_ns = now_ns;
	return sink->ops->sample(sink, &sample);
}

/* Push all ticks, each up to 60 us late, as a sampler's are. */
static int push_ticks(struct program *program, struct sample_sink *sink, uint64_t nr_samples,
		      bool with_cpu, struct sampler_stats *stats)
{
	struct sampled_thread threads[MAX_THREADS] = {0};
	int err = 0;

	for (uint32_t i = 0; i < program->nr_threads; i++) {
		threads[i].thread = (struct sample_thread){
			.id = i, .slot = i, .tid = (pid_t)(4242 + i), .is_main = !i};
		(void)snprintf(threads[i].thread.name, sizeof(threads[i].thread.name), "%s-%u",
			       i ? "worker" : "MainThread", (unsigned)i);
		threads[i].time_ns = START_NS - TICK_NS;
	}
	for (; !err && stats->samples < nr_samples; stats->ticks++) {
		uint64_t now_ns = START_NS + stats->ticks * TICK_NS +
				  draw_below(program, 60) * (uint64_t)1000;

		for (uint32_t i = 0; !err && i < program->nr_threads && stats->samples < nr_samples;
		     i++) {
			err = push_sample(program, sink, &threads[i], now_ns, with_cpu);
			stats->samples++;
		}
		stats->end_ns = now_ns;
		if (!err && sink->ops->tick)
			err = sink->ops->tick(sink, now_ns);
	}
	return err;
}

static int record(struct program *program, int fd, uint64_t nr_samples, bool with_cpu)
{
	struct run run = {
		.info =
			{
				.pysample.version = PYSAMPLE_VERSION,
				.pysample.arguments = "make_recording",
				.start_unix_ns = START_UNIX_S * (uint64_t)NS_PER_S,
				.target.command_line = "python3 never_ran.py",
				.target.pid = 4242,
				.python.version = "3.12.0",
				.requested_hz = 1000,
			},
		.stats = {.start_ns = START_NS, .end_ns = START_NS},
	};
	struct recorder *recorder;
	int err = recorder_create(fd, &run, &recorder);

	if (err)
		return err;
	err = record_process(recorder, run.info.target.pid, run.info.target.command_line);
	if (!err)
		err = push_ticks(program, recorder_sink(recorder), nr_samples, with_cpu,
				 &run.stats);
	run.info.account = recorder_sums(recorder)->account;
	run.info.shown_ns = recorder_sums(recorder)->time_ns;
	if (!err)
		err = recorder_finish(recorder, &run);
	recorder_destroy(recorder);
	return err;
}

int main(int argc, char **argv)
{
	uint64_t nr_samples = argc > 2 ? strtoull(argv[2], NULL, 10) : DEFAULT_SAMPLES;
	uint64_t nr_threads = argc > 3 ? strtoull(argv[3], NULL, 10) : MAX_THREADS;
	struct program *program = calloc(1, sizeof(*program));
	cleanup_close int fd = -1;
	int err;

	if (argc < 2 || argc > 5 || !nr_samples || !nr_threads || nr_threads > MAX_THREADS) {
		(void)fprintf(stderr,
			      "usage: make_recording FILE.pysample [SAMPLES [THREADS "
			      "[cpu]]], at most %d threads\n",
			      MAX_THREADS);
		return 2;
	}
	fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (!program || fd < 0) {
		perror(argv[1]);
		return 1;
	}
	program->nr_threads = (uint32_t)nr_threads;
	make_functions(program);
	make_stacks(program);
	err = record(program, fd, nr_samples, argc > 4 && strcmp(argv[4], "cpu") == 0);
	if (err)
		(void)fprintf(stderr, "make_recording: %s\n", strerror(-err));
	return err ? 1 : 0;
}
