/* SPDX-License-Identifier: MIT */
#include "tests/support/random_samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

enum { MAX_THREADS = 65536 };

/* A number below bound: the upper half of xorshift64* (Vigna 2016). */
static uint32_t below(struct random_samples *samples, uint32_t bound)
{
	uint64_t x = samples->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	samples->random = x;
	return (uint32_t)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 32) % bound;
}

static void begin_thread(struct random_samples *samples, uint32_t slot)
{
	struct random_thread *thread = &samples->threads[slot];

	*thread = (struct random_thread){
		.info = {.id = samples->next_id++,
			 .slot = slot,
			 .process = below(samples, samples->last_process + 1),
			 .tid = (pid_t)(100 + below(samples, 1000)),
			 .interpreter_id = below(samples, 3),
			 .is_main = !slot},
		.number = UINT32_MAX,
	};
	(void)snprintf(thread->info.name, sizeof(thread->info.name), "thread %u é",
		       samples->next_id);
}

void random_samples_init(struct random_samples *samples, const struct random_options *options)
{
	*samples = (struct random_samples){
		.options = *options,
		.random = options->seed * UINT64_C(0x9e3779b97f4a7c15) | 1,
		.now_ns = UINT64_C(86400123456789),
		.unit_us = 1,
		.thread_names = calloc(MAX_THREADS, THREAD_NAME_MAX_BYTES),
		.thread_processes = calloc(MAX_THREADS, sizeof(uint32_t)),
	};
	if (!samples->thread_names || !samples->thread_processes)
		abort();
	/*
	 * docs/formats.md leaves the unit to the writer: here at most 1/30 of the interval and
	 * 32 µs.
	 */
	while (options->rate_hz > 0 && samples->unit_us < 32 &&
	       (double)samples->unit_us * 2 * 30 <= 1e6 / options->rate_hz)
		samples->unit_us *= 2;
	for (uint32_t i = 0; i < RANDOM_FUNCTIONS; i++) {
		(void)snprintf(samples->names[i], sizeof(samples->names[i]), "f%u", i / 2);
		samples->functions[i] = (struct function){
			.id = i,
			.first_line = i == 3 ? 0 : (int32_t)(1 + below(samples, 5000)),
			.qualname = i == 5 ? "" : samples->names[i],
			.path = i % 3 ? "/srv/a b;\"\n.py" : (i % 2 ? "" : "lib/x.py"),
			.kind = (enum function_kind)(i % NR_FUNCTION_KINDS),
		};
	}
	for (uint32_t slot = 0; slot < RANDOM_THREADS; slot++)
		begin_thread(samples, slot);
}

void random_samples_done(struct random_samples *samples)
{
	free(samples->expected);
	free(samples->thread_names);
	free(samples->thread_processes);
}

struct run random_samples_run(const struct random_samples *samples)
{
	return (struct run){
		.info = {.pysample.version = "1.2.3",
			 .target.command_line = "python3 app.py",
			 .engine = "preempt",
			 .requested_hz = samples->options.rate_hz,
			 .start_unix_ns = UINT64_C(1700000000123456789)},
		.stats = {.start_ns = UINT64_C(86400123456789)},
	};
}

/* Change the inner frames of a stack, or nothing. Returns the number of unchanged frames. */
static uint32_t move_stack(struct random_samples *samples, struct random_thread *thread)
{
	uint32_t nr_same = thread->nr_frames;

	if (below(samples, 3) == 0)
		return nr_same;
	nr_same = below(samples, thread->nr_frames + 1);
	thread->nr_frames = below(samples, 4) ? nr_same + below(samples, 4) : 0;
	if (thread->nr_frames > RANDOM_MAX_DEPTH)
		thread->nr_frames = RANDOM_MAX_DEPTH;
	if (nr_same > thread->nr_frames)
		nr_same = thread->nr_frames;
	for (uint32_t i = nr_same; i < thread->nr_frames; i++)
		thread->frames[i] = (struct frame){
			.function = &samples->functions[below(samples, RANDOM_FUNCTIONS)],
			.line = (int32_t)below(samples, 6000),
		};
	return nr_same;
}

/* The CPU weight that a reader must return. The sum of all weights is exact to two units. */
static uint64_t expect_cpu_us(const struct random_samples *samples, struct random_thread *thread,
			      const struct sample *sample, uint64_t wall_us)
{
	const int64_t unit_us = (int64_t)samples->unit_us;
	const int64_t due_ns = thread->cpu_rest_ns + (int64_t)sample->cpu_ns;
	int64_t cpu_us = (int64_t)wall_us;

	if (llabs(due_ns - cpu_us * 1000) >= 2000 * unit_us)
		cpu_us = due_ns > 0 ? due_ns / 1000 / unit_us * unit_us : 0;
	thread->cpu_rest_ns = due_ns - cpu_us * 1000;
	if (llabs(thread->cpu_rest_ns) >= 2000 * unit_us)
		abort();
	return (uint64_t)cpu_us;
}

/* Note what a reader must return for a sample. */
static void expect(struct random_samples *samples, struct random_thread *thread,
		   const struct sample *sample)
{
	const uint64_t tick_ns = samples->tick_ns;
	const uint64_t since_ns = thread->has_last ? tick_ns - thread->last_ns : 0;
	struct expected_sample *expected;

	if (thread->number == UINT32_MAX)
		thread->number = samples->nr_begun++ % MAX_THREADS;
	memcpy(samples->thread_names[thread->number], thread->info.name, THREAD_NAME_MAX_BYTES);
	samples->thread_processes[thread->number] = thread->info.process;
	samples->expected = array_reserve(samples->expected, samples->nr_expected + 1,
					  &samples->max_expected, sizeof(*samples->expected));
	if (!samples->expected)
		abort();
	expected = &samples->expected[samples->nr_expected++];
	*expected = (struct expected_sample){
		.time_us = tick_ns / 1000 / samples->unit_us * samples->unit_us,
		.thread = thread->number,
		.flags = sample->flags,
		.nr_frames = sample->nr_frames,
	};
	memcpy(expected->frames, thread->frames, sample->nr_frames * sizeof(struct frame));
	if (sample->wall_ns == since_ns && (!sample->cpu_ns || sample->flags & SAMPLE_ON_CPU)) {
		expected->wall_us = thread->has_last ? expected->time_us - thread->last_us : 0;
	} else {
		expected->wall_us = (sample->wall_ns + thread->wall_rest_ns) / 1000;
		thread->wall_rest_ns = (sample->wall_ns + thread->wall_rest_ns) % 1000;
	}
	if (sample->cpu_ns)
		expected->cpu_us = expect_cpu_us(samples, thread, sample, expected->wall_us);
	thread->has_last = true;
	thread->last_ns = tick_ns;
	thread->last_us = expected->time_us;
}

/* None, some or nearly all of the time that passed. */
static uint64_t random_cpu_ns(struct random_samples *samples, uint64_t wall_ns)
{
	switch (below(samples, 3)) {
	case 0:
		return 0;
	case 1:
		return below(samples, 1u << 21);
	default:
		return wall_ns > 50000 ? wall_ns - 50000 + below(samples, 100000) : wall_ns;
	}
}

/*
 * Play one sample of a thread. time_ns is the sample's own time; the time that counts is the
 * tick's.
 */
static int play_sample(struct random_samples *samples, struct random_thread *thread,
		       uint64_t time_ns, struct sample_sink *sink)
{
	const bool is_odd = samples->options.is_wild && below(samples, 50) == 0;
	struct sample sample = {
		.time_ns = time_ns,
		.thread = &thread->info,
		.frames = thread->frames,
		.nr_unchanged = move_stack(samples, thread),
		.flags = below(samples, 8) ? SAMPLE_HOLDS_GIL : below(samples, SAMPLE_CPU_MEASURED),
	};

	sample.flags |= below(samples, 8) ? 0 : SAMPLE_IN_JIT;
	sample.flags |= below(samples, 4) ? 0 : SAMPLE_APPROXIMATE;
	sample.flags |= below(samples, 2) ? 0 : SAMPLE_IDLE;
	sample.nr_frames = thread->nr_frames;
	sample.wall_ns = thread->has_last ? samples->tick_ns - thread->last_ns : 0;
	if (is_odd)
		sample.wall_ns = below(samples, 1u << 31);
	if (samples->options.measures_cpu) {
		sample.flags |= SAMPLE_CPU_MEASURED;
		sample.cpu_ns = random_cpu_ns(samples, sample.wall_ns);
		sample.flags |= sample.cpu_ns ? SAMPLE_ON_CPU : 0;
	}
	expect(samples, thread, &sample);
	return sink->ops->sample(sink, &sample);
}

/* Add a process, which may end one. */
static int add_process(struct random_samples *samples, struct recorder *recorder)
{
	const struct process_info process = {
		.pid = (pid_t)(RANDOM_FIRST_PID + samples->last_process + 1),
		.parent_pid = (pid_t)below(samples, 3),
		.name = below(samples, 2) ? "python app.py" : NULL,
		.command_line = "python",
		.start_ns = below(samples, 4) ? samples->now_ns : 0,
	};
	int err = 0;

	if (below(samples, 4) == 0)
		err = recorder_end_process(recorder, below(samples, samples->last_process + 1),
					   samples->now_ns);
	return err ? err : recorder_add_process(recorder, &process, &samples->last_process);
}

/* Play an event between ticks. */
static int play_event(struct random_samples *samples, struct recorder *recorder)
{
	const uint32_t slot = below(samples, RANDOM_THREADS);
	struct random_thread *thread = &samples->threads[slot];
	struct sample_sink *sink = recorder_sink(recorder);

	switch (below(samples, 5)) {
	case 0:
		begin_thread(samples, slot);
		return 0;
	case 1:
		(void)snprintf(thread->info.name, sizeof(thread->info.name), "renamed %u",
			       below(samples, 100));
		sink->ops->renamed(sink, &thread->info);
		if (thread->number != UINT32_MAX)
			memcpy(samples->thread_names[thread->number], thread->info.name,
			       THREAD_NAME_MAX_BYTES);
		return 0;
	case 2:
		samples->now_ns += (uint64_t)below(samples, 1u << 31) << below(samples, 16);
		return 0;
	case 3:
		return add_process(samples, recorder);
	default:
		/* All threads are others, as after an exec. */
		for (uint32_t i = 0; i < RANDOM_THREADS; i++)
			begin_thread(samples, i);
		return 0;
	}
}

static int play_tick(struct random_samples *samples, struct recorder *recorder)
{
	struct sample_sink *sink = recorder_sink(recorder);
	const uint32_t mask = below(samples, 4) ? 7 : below(samples, 1u << RANDOM_THREADS);
	const bool steps_back = samples->options.is_wild && below(samples, 100) == 0;
	const uint64_t time_ns =
		steps_back ? samples->now_ns - below(samples, 5000) : samples->now_ns;
	int err = 0;

	if (time_ns > samples->tick_ns)
		samples->tick_ns = time_ns;
	for (uint32_t slot = 0; !err && slot < RANDOM_THREADS; slot++)
		if (mask & 1u << slot)
			err = play_sample(samples, &samples->threads[slot], time_ns, sink);
	return err ? err : sink->ops->tick(sink, samples->now_ns);
}

int random_samples_play(struct random_samples *samples, struct recorder *recorder)
{
	const double rate_hz = samples->options.rate_hz;
	const uint64_t interval_ns = rate_hz > 0 ? (uint64_t)(1e9 / rate_hz) : 10000;
	const uint64_t begin_ns = samples->now_ns;
	uint64_t skipped_ns = 0;
	int err = 0;

	for (uint32_t i = 0; !err && i < samples->options.nr_ticks; i++) {
		const uint64_t before_ns = samples->now_ns;

		samples->now_ns = begin_ns + skipped_ns + i * interval_ns +
				  below(samples, (uint32_t)interval_ns);
		if (samples->now_ns < before_ns)
			samples->now_ns = before_ns;
		err = play_tick(samples, recorder);
		if (!err && samples->options.is_wild && below(samples, 30) == 0) {
			const uint64_t event_ns = samples->now_ns;

			err = play_event(samples, recorder);
			skipped_ns += samples->now_ns - event_ns;
		}
		if (below(samples, 20) == 0)
			skipped_ns += interval_ns * below(samples, 3);
	}
	return err;
}
