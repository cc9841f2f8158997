/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "procmem/clock.h"
#include "sampler/sampler_state.h"
#include "tests/support/own_process.h"

struct last_sample_sink {
	struct sample_sink sink;
	uint64_t cpu_ns;
	uint32_t flags;
};

static int keep_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct last_sample_sink *last_sample_sink = (struct last_sample_sink *)sink;

	last_sample_sink->cpu_ns = sample->cpu_ns;
	last_sample_sink->flags = sample->flags;
	return 0;
}

/* CPU time that an interrupt has reported is not counted again by a tick. */
Test(sampler_thread, cpu_time_is_counted_once)
{
	static const struct sample_sink_ops ops = {.sample = keep_sample};
	struct last_sample_sink last_sample_sink = {.sink.ops = &ops};
	struct process process;
	struct sample_thread info = {.tid = getpid()};
	struct sampled_thread sampled = {.info = &info};
	struct sampler sampler = {.extras.cpu = true, .threads = &sampled, .nr_threads = 1};
	const struct snapshot_thread thread = {.slot = 0};
	struct sample sample = {0};
	uint64_t until_ns;

	process = own_process_open();
	cr_assert(zero(int, cpu_clock_open(&process, getpid(), &sampled.cpu.clock)));
	cr_assert(zero(int, cpu_clock_read(&sampled.cpu.clock, &sampled.cpu.last_ns)));
	sampled.cpu.has_last = true;
	sampler_thread_weigh(&sampler, &sampled, 1000 * (uint64_t)NS_PER_S, &sample);
	cr_expect(eq(u64, sample.cpu_ns, 1000 * (uint64_t)NS_PER_S));
	cr_expect(eq(u32, sample.flags, SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU));
	until_ns = sampled.cpu.last_ns;
	for (int i = 0; i < 3; i++) {
		cr_assert(zero(int, sampler_thread_send(&sampler, &thread, (struct sample){0},
							&last_sample_sink.sink)));
		cr_expect(zero(u64, last_sample_sink.cpu_ns));
		cr_expect(eq(u32, last_sample_sink.flags, SAMPLE_CPU_MEASURED));
		cr_expect(eq(u64, sampled.cpu.last_ns, until_ns), "the last time does not go back");
	}
	cpu_clock_close(&sampled.cpu.clock);
	process_close(&process);
}

struct sleeper {
	sem_t begun, end;
	pid_t tid;
};

static void *sleep_until_end(void *context)
{
	struct sleeper *sleeper = context;

	sleeper->tid = gettid();
	sem_post(&sleeper->begun);
	while (sem_wait(&sleeper->end) != 0)
		;
	return NULL;
}

/* Send a sample with flags. Returns whether it is marked as idle. */
static bool is_idle(struct sampler *sampler, uint64_t time_ns, uint32_t flags)
{
	static const struct sample_sink_ops ops = {.sample = keep_sample};
	struct last_sample_sink sink = {.sink.ops = &ops};
	const struct snapshot_thread thread = {.slot = 0};
	const struct sample sample = {.time_ns = time_ns, .flags = flags};

	cr_assert(zero(int, sampler_thread_send(sampler, &thread, sample, &sink.sink)));
	return sink.flags & SAMPLE_IDLE;
}

/* A thread is idle if it sleeps, unless it is known to hold the GIL, to want it, or to have run. */
Test(sampler_thread, threads_that_wait_are_idle)
{
	struct process process = own_process_open();
	struct sample_thread info = {0};
	struct sampled_thread sampled = {.info = &info};
	struct sampler sampler = {
		.process = &process,
		.extras.states = true,
		.threads = &sampled,
		.nr_threads = 1,
	};
	struct sleeper sleeper;
	struct sample weighed = {0};
	uint64_t now_ns = NS_PER_S;
	pthread_t thread;

	cr_assert(zero(int, sem_init(&sleeper.begun, 0, 0)));
	cr_assert(zero(int, sem_init(&sleeper.end, 0, 0)));
	cr_assert(zero(int, pthread_create(&thread, NULL, sleep_until_end, &sleeper)));
	cr_assert(zero(int, sem_wait(&sleeper.begun)));
	cr_expect(not(is_idle(&sampler, now_ns, 0)), "its id is unknown");
	info.tid = getpid();
	cr_expect(not(is_idle(&sampler, now_ns += NS_PER_S, 0)), "this thread runs");
	info.tid = sleeper.tid;
	while (!is_idle(&sampler, now_ns += NS_PER_S, 0))
		(void)usleep(1000);
	cr_expect(not(is_idle(&sampler, now_ns += NS_PER_S, SAMPLE_HOLDS_GIL)));
	cr_expect(is_idle(&sampler, now_ns += NS_PER_S, 0));
	cr_expect(not(is_idle(&sampler, now_ns += NS_PER_S, SAMPLE_WAITS_FOR_GIL)));
	sampler_thread_weigh(&sampler, &sampled, 1, &weighed);
	cr_expect(not(is_idle(&sampler, now_ns += NS_PER_S, 0)), "an interrupt's sample");
	cr_expect(is_idle(&sampler, now_ns += NS_PER_S, 0));
	sampler.extras.states = false;
	cr_expect(not(is_idle(&sampler, now_ns += NS_PER_S, 0)), "not requested");
	sem_post(&sleeper.end);
	cr_assert(zero(int, pthread_join(thread, NULL)));
	process_close(&process);
}
