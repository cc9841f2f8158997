/* SPDX-License-Identifier: MIT */
#include "procmem/sched/perf_events.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "symbols/unwind/registers.h"
#include "tests/support/own_process.h"

enum { STACK_BYTES = 16384, WORD_ON_STACK = 0x5eed };

/* A thread and what it reports about itself. */
struct worker {
	pthread_t thread;
	pid_t tid;
	const volatile uint64_t *word; /* on its stack */
	volatile bool is_over;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	volatile uint64_t word = WORD_ON_STACK;

	worker->word = &word;
	__atomic_store_n(&worker->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!worker->is_over)
		word = WORD_ON_STACK;
	return NULL;
}

static void worker_begin(struct worker *worker)
{
	*worker = (struct worker){.tid = 0};
	cr_assert(zero(int, pthread_create(&worker->thread, NULL, work, worker)));
	while (!__atomic_load_n(&worker->tid, __ATOMIC_ACQUIRE))
		(void)usleep(100);
}

static void worker_end(struct worker *worker)
{
	worker->is_over = true;
	(void)pthread_join(worker->thread, NULL);
}

/* Open the events, or skip the test where the kernel refuses them. */
static struct perf_events open_events(const struct process *process)
{
	const struct perf_events_options options = {
		.period_ns = 1000000,
		.max_stack_bytes = STACK_BYTES,
	};
	struct perf_events events = PERF_EVENTS_CLOSED;
	struct message message = {0};
	int err = perf_events_open(process, &options, &events, &message);

	if (err == -EPERM || err == -ENOTSUP)
		cr_skip_test("%s", message.text);
	cr_assert(zero(int, err));
	return events;
}

static uint64_t soon_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + 50000000u;
}

/* Wait for a copy without a limit: the test's timeout is the limit. */
static struct perf_copy next_copy(struct perf_events *events)
{
	struct perf_copy copy;

	while (perf_events_next(events, &copy))
		perf_events_wait(events, soon_ns());
	return copy;
}

Test(perf_events, copies_have_the_stack_of_their_thread, .timeout = 60)
{
	struct process process = own_process_open();
	struct perf_events events = open_events(&process);
	struct worker workers[2];
	unsigned int nr_of[2] = {0};

	worker_begin(&workers[0]);
	worker_begin(&workers[1]);
	cr_assert(zero(int, perf_events_add(&events, workers[0].tid)));
	cr_assert(zero(int, perf_events_add(&events, workers[1].tid)));
	cr_expect(zero(int, perf_events_add(&events, workers[1].tid)));
	while (nr_of[0] < 20 || nr_of[1] < 20) {
		const struct perf_copy copy = next_copy(&events);
		const struct registers registers = registers_of_perf(copy.registers);
		const unsigned int who = copy.tid == workers[1].tid;
		const uint64_t offset = (uint64_t)workers[who].word - registers.values[REGISTER_SP];

		cr_assert(eq(int, copy.tid, workers[who].tid));
		cr_assert(offset + 8 <= copy.nr_stack_bytes);
		cr_expect(
			zero(int, memcmp(copy.stack + offset, (const void *)workers[who].word, 8)));
		nr_of[who]++;
	}
	cr_expect(ge(u64, events.stats.nr_copies, 40));
	worker_end(&workers[0]);
	worker_end(&workers[1]);
	perf_events_close(&events);
	process_close(&process);
}

/* Copies are also found by a caller that cannot wait. */
Test(perf_events, copies_are_found_without_waiting, .timeout = 60)
{
	struct process process = own_process_open();
	struct perf_events events = open_events(&process);
	struct perf_copy copy;
	struct worker worker;

	worker_begin(&worker);
	cr_assert(zero(int, perf_events_add(&events, worker.tid)));
	while (perf_events_next(&events, &copy))
		perf_events_catch_up(&events);
	cr_expect(eq(int, copy.tid, worker.tid));
	worker_end(&worker);
	perf_events_close(&events);
	process_close(&process);
}

/* The count of the oldest remaining copy, which stays in place. */
static uint64_t peek(struct perf_events *events, pid_t tid)
{
	events->found = (struct perf_copy){.tid = 0};
	while (!events->found.tid)
		cr_expect(eq(ptr, (void *)perf_events_find(events, tid, 1, 0), NULL));
	return events->found.count_ns;
}

/* Earlier copies are skipped, later ones stay, and a copy that was found is found again. */
Test(perf_events, copy_is_found_by_its_count, .timeout = 60)
{
	struct process process = own_process_open();
	struct perf_events events = open_events(&process);
	const struct perf_copy *found;
	struct worker worker;
	uint64_t count_ns, now_ns;

	worker_begin(&worker);
	cr_assert(zero(int, perf_events_add(&events, worker.tid)));
	for (int i = 0; i < 20; i++) {
		count_ns = peek(&events, worker.tid);
		found = perf_events_find(&events, worker.tid, count_ns, 0);
		cr_assert(ne(ptr, (void *)found, NULL));
		cr_expect(eq(int, found->tid, worker.tid));
		cr_expect(eq(u64, found->count_ns, count_ns));
		cr_expect(ge(sz, found->nr_stack_bytes, 8));
		cr_expect(eq(ptr, (void *)perf_events_find(&events, worker.tid, count_ns, 0),
			     (void *)found));
		cr_assert(zero(int, perf_events_count(&events, worker.tid, &now_ns)));
		cr_expect(ge(u64, now_ns, count_ns));
		/* Looking for a later copy discards the one found. */
		cr_expect(lt(u64, count_ns, peek(&events, worker.tid)));
		cr_expect(
			eq(ptr, (void *)perf_events_find(&events, worker.tid, count_ns, 0), NULL));
	}
	cr_expect(eq(ptr, (void *)perf_events_find(&events, getpid(), count_ns, 0), NULL));
	cr_expect(eq(int, perf_events_count(&events, getpid(), &now_ns), -ESRCH));
	perf_events_drop_ended(&events);
	cr_expect(zero(int, perf_events_count(&events, worker.tid, &now_ns)));
	worker_end(&worker);
	perf_events_drop_ended(&events);
	cr_expect(eq(int, perf_events_count(&events, worker.tid, &now_ns), -ESRCH));
	perf_events_close(&events);
	process_close(&process);
}

/* Number of rings that are mapped. */
static int nr_rings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int nr = 0;

	cr_assert(not(eq(ptr, maps, NULL)));
	while (fgets(line, sizeof(line), maps))
		nr += strstr(line, "[perf_event]") != NULL;
	(void)fclose(maps);
	return nr;
}

/* An ended thread is reported once; its ring is freed and its place is reused. */
Test(perf_events, ended_thread_frees_its_ring, .timeout = 60)
{
	struct process process = own_process_open();
	struct perf_events events = open_events(&process);
	struct perf_copy copy;
	struct worker worker;

	for (unsigned int i = 0; i < 10; i++) {
		worker_begin(&worker);
		cr_assert(zero(int, perf_events_add(&events, worker.tid)));
		cr_expect(eq(int, next_copy(&events).tid, worker.tid));
		worker_end(&worker);
		/*
		 * The end is reported once the kernel is done with the event. A ring that stays
		 * mapped makes the test time out.
		 */
		while (nr_rings() > 0) {
			perf_events_wait(&events, soon_ns());
			while (!perf_events_next(&events, &copy))
				cr_expect(eq(int, copy.tid, worker.tid));
		}
	}
	cr_expect(eq(u32, events.nr_threads, 1));
	perf_events_close(&events);
	process_close(&process);
}

Test(perf_events, refuses_threads_of_other_processes)
{
	struct process process = own_process_open();
	struct perf_events events = open_events(&process);

	cr_expect(eq(int, perf_events_add(&events, getppid()), -ESRCH));
	cr_expect(zero(u64, events.stats.nr_refused));
	perf_events_close(&events);
	process_close(&process);
}
