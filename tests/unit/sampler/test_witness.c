/* SPDX-License-Identifier: MIT */
#include "sampler/witness.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "procmem/live.h"
#include "procmem/sched/cpu_pin.h"
#include "symbols/elf/live_images.h"
#include "tests/support/fake_memory.h"
#include "tests/support/own_process.h"
#include "tests/support/pipe_waiter.h"

#define POINTER	  UINT64_C(0x7f0000001000)
#define ELSEWHERE UINT64_C(0x500000)

enum { CPU_ID_OFFSET = -92 };

/* A set of these CPUs. */
static cpu_set_t cpu_set_of(const uint32_t *cpus, size_t nr)
{
	cpu_set_t held;

	CPU_ZERO(&held);
	for (size_t i = 0; i < nr; i++)
		CPU_SET(cpus[i], &held);
	return held;
}

static cpu_set_t all_cpus(void)
{
	cpu_set_t held;

	memset(&held, 0xff, sizeof(held));
	return held;
}

/* End a look, and report whether the thread stood still. */
static bool end_and_check(struct witness *witness, const struct look_memory *look,
			  const cpu_set_t *held)
{
	static const struct witness_means means = {.process = NULL};

	witness_end(witness, &means, 0);
	return witness_stood_still(witness, look, held);
}

/* The word at the beginning and end of a look during which CPUs 2 and 7 are held. */
Test(witness, rseq_word_proves_a_held_cpu)
{
	static const struct {
		char name[32];
		uint32_t first, last;
		bool stood;
		uint32_t cpu;
	} cases[] = {
		{"held", 7, 7, true, 7},
		{"held, too", 2, 2, true, 2},
		{"from one held CPU to another", 2, 7, false, 7},
		{"it went away", 7, 3, false, 3},
		{"it came", 3, 7, false, 7},
		{"on another CPU", 3, 3, false, 3},
		{"not registered", UINT32_MAX, UINT32_MAX, false, CPU_NONE},
		{"registration failed", UINT32_MAX - 1, UINT32_MAX - 1, false, CPU_NONE},
		{"not registered any more", 7, UINT32_MAX, false, CPU_NONE},
		{"registered during look", UINT32_MAX, 7, false, 7},
		{"no such CPU", CPU_SETSIZE, CPU_SETSIZE, false, CPU_SETSIZE},
		{"far above any CPU", 0x7fffffff, 0x7fffffff, false, 0x7fffffff},
	};
	const cpu_set_t held = cpu_set_of((const uint32_t[]){2, 7}, 2);
	const struct witness_means means = {
		.rseq = {.is_known = true, .cpu_id_offset = CPU_ID_OFFSET}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fake_memory fake;
		struct look_memory look;
		struct witness witness;
		uint64_t word;

		fake_memory_init(&fake);
		(void)fake_memory_map(&fake, POINTER + CPU_ID_OFFSET, 4);
		(void)fake_memory_map(&fake, ELSEWHERE, 8);
		fake_memory_write_u32(&fake, POINTER + CPU_ID_OFFSET, cases[i].first);
		look_memory_init(&look, &fake.memory);
		witness_open(&means, POINTER, 0, &witness);
		cr_assert(eq(int, witness.kind, WITNESS_RSEQ));
		cr_expect(eq(u32, witness.cpu, CPU_NONE));
		cr_assert(zero(int, witness_begin(&witness, &look, &held)));
		cr_assert(zero(int, look_memory_begin(&look)));
		fake_memory_write_u32(&fake, POINTER + CPU_ID_OFFSET, cases[i].last);
		/* Read something else, so that the word is read again after it. */
		cr_assert(zero(int, remote_memory_read_u64(&look.memory, ELSEWHERE, &word)));
		cr_assert(zero(int, look_memory_end(&look)));
		cr_expect(eq(int, end_and_check(&witness, &look, &held), cases[i].stood), "%s",
			  cases[i].name);
		cr_expect(eq(u32, witness.cpu, cases[i].cpu), "%s", cases[i].name);
		witness_close(&witness);
		cr_expect(eq(int, witness.kind, WITNESS_NONE));
		witness_close(&witness);
		look_memory_done(&look);
		fake_memory_done(&fake);
	}
}

/* Make a look for this witness alone, with all CPUs held. */
static void make_look(struct look_memory *look, struct witness *witness)
{
	const cpu_set_t all = all_cpus();

	cr_assert(zero(int, witness_begin(witness, look, &all)));
	cr_assert(zero(int, look_memory_begin(look)));
	cr_assert(zero(int, look_memory_end(look)));
}

/* A real thread, by the pthread_t that CPython keeps. */
Test(witness, reads_the_word_of_our_own_thread)
{
	struct witness_means means = {0};
	struct live_images images;
	struct live_memory live;
	struct look_memory look;
	struct process process;
	struct witness witness;
	struct maps maps;
	cpu_set_t usual;

	process = own_process_open();
	cr_assert(zero(int, maps_read(&process, &maps)));
	live_images_init(&images, &process);
	live_memory_init(&live, &process);
	means.rseq = rseq_place_find(&live.memory, &maps, &images.source);
	maps_done(&maps);
	if (!means.rseq.is_known)
		cr_skip("the C library registers no areas");
	look_memory_init(&look, &live.memory);
	witness_open(&means, (uint64_t)pthread_self(), 0, &witness);
	cr_assert(eq(int, witness.kind, WITNESS_RSEQ));
	cr_assert(zero(int, sched_getaffinity(0, sizeof(usual), &usual)));
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		const cpu_set_t there = cpu_set_of(&cpu, 1);

		if (!CPU_ISSET(cpu, &usual))
			continue;
		cr_assert(zero(int, sched_setaffinity(0, sizeof(there), &there)));
		look_memory_clear_seals(&look);
		make_look(&look, &witness);
		cr_expect(end_and_check(&witness, &look, &there));
		cr_expect(eq(u32, witness.cpu, cpu));
	}
	witness_close(&witness);
	look_memory_done(&look);
	process_close(&process);
}

Test(witness, unreadable_word_proves_nothing)
{
	const cpu_set_t all = all_cpus();
	const struct witness_means means = {
		.rseq = {.is_known = true, .cpu_id_offset = CPU_ID_OFFSET}};
	struct fake_memory fake;
	struct look_memory look;
	struct witness witness;

	fake_memory_init(&fake);
	look_memory_init(&look, &fake.memory);
	witness_open(&means, POINTER, 0, &witness);
	make_look(&look, &witness);
	cr_expect(not(end_and_check(&witness, &look, &all)), "although CPU 0 is held");
	cr_expect(eq(u32, witness.cpu, CPU_NONE));
	witness_close(&witness);
	look_memory_done(&look);
	fake_memory_done(&fake);
}

Test(witness, proves_nothing_without_means)
{
	const cpu_set_t all = all_cpus();
	const struct witness_means no_means = {0};
	const struct witness_means no_process = {
		.rseq = {.is_known = true, .cpu_id_offset = CPU_ID_OFFSET}, .prefers_clock = true};
	struct look_memory look = {0};
	struct witness witness;
	struct thread_stat now;

	witness_open(&no_means, POINTER, getpid(), &witness);
	cr_expect(eq(int, witness.kind, WITNESS_NONE));
	cr_expect(zero(int, witness_begin(&witness, &look, &all)));
	cr_expect(not(end_and_check(&witness, &look, &all)));
	cr_expect(eq(int, witness_now(&witness, &no_means, getpid(), &now), -ENOTSUP));
	witness_close(&witness);
	/* Without a process there is no clock; without a thread pointer there is no word. */
	witness_open(&no_process, POINTER, getpid(), &witness);
	cr_expect(eq(int, witness.kind, WITNESS_RSEQ));
	witness_close(&witness);
	witness_open(&no_process, 0, getpid(), &witness);
	cr_expect(eq(int, witness.kind, WITNESS_NONE));
	witness_close(&witness);
}

/* A thread of ours that works all the time and counts its work. */
struct spinner {
	pthread_t thread;
	pid_t tid;
	uint64_t used_ns;
	bool ends;
};

static void *spin(void *argument)
{
	struct spinner *spinner = argument;

	__atomic_store_n(&spinner->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&spinner->ends, __ATOMIC_ACQUIRE)) {
		struct timespec now;

		(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
		__atomic_store_n(&spinner->used_ns,
				 (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
				 __ATOMIC_RELEASE);
	}
	return NULL;
}

static void spinner_begin(struct spinner *spinner)
{
	*spinner = (struct spinner){.ends = false};
	cr_assert(zero(int, pthread_create(&spinner->thread, NULL, spin, spinner)));
	while (!__atomic_load_n(&spinner->tid, __ATOMIC_ACQUIRE))
		(void)usleep(1000);
}

/* Wait until the thread has worked longer than any clock tick. */
static void await_work(struct spinner *spinner)
{
	enum { LONG_NS = 25000000 };
	const uint64_t first_ns = __atomic_load_n(&spinner->used_ns, __ATOMIC_ACQUIRE);

	while (__atomic_load_n(&spinner->used_ns, __ATOMIC_ACQUIRE) - first_ns < LONG_NS)
		(void)usleep(1000);
}

static void spinner_end(struct spinner *spinner)
{
	__atomic_store_n(&spinner->ends, true, __ATOMIC_RELEASE);
	(void)pthread_join(spinner->thread, NULL);
}

/* The clock witness of a thread. The test is skipped on kernels without one. */
static struct witness open_clock(const struct process *process, pid_t tid)
{
	const struct witness_means means = {
		.process = process,
		.rseq = {.is_known = true, .cpu_id_offset = CPU_ID_OFFSET},
		.prefers_clock = true,
	};
	struct cpu_clock clock;
	struct witness witness;
	bool has_clock = !cpu_clock_open(process, tid, &clock);

	if (has_clock) {
		has_clock = clock.kind == CPU_CLOCK_TASK;
		cpu_clock_close(&clock);
	}
	witness_open(&means, POINTER, tid, &witness);
	cr_assert(eq(int, witness.kind, has_clock ? WITNESS_CLOCK : WITNESS_RSEQ));
	if (!has_clock)
		cr_skip("no task clocks here");
	return witness;
}

/*
 * The run-count witness of a thread. It is the last choice of witness_open(), so it is made by
 * hand.
 */
static struct witness open_runs(const struct process *process, pid_t tid)
{
	struct witness witness = {.kind = WITNESS_RUNS, .runs = RUN_COUNT_CLOSED, .cpu = CPU_NONE};
	int err = run_count_open(process, tid, &witness.runs);

	if (err == -ENOTSUP)
		cr_skip("the kernel does not count how often threads run");
	cr_assert(zero(int, err));
	witness.has_runs = true;
	return witness;
}

/* The clock is a proof on any CPU, held or not. */
Test(witness, clock_proves_that_a_thread_waits, .timeout = 60)
{
	const cpu_set_t no_cpus = cpu_set_of(NULL, 0);
	struct process process = own_process_open();
	struct look_memory look = {0};
	struct pipe_waiter waiter;
	struct witness witness;

	pipe_waiter_begin(&waiter);
	(void)pipe_waiter_place(&waiter, &process);
	witness = open_clock(&process, waiter.tid);
	for (int i = 0; i < 3; i++) {
		cr_assert(zero(int, witness_begin(&witness, &look, &no_cpus)));
		cr_expect(ne(u64, witness_cpu_ns(&witness), 0), "also if it has used no time");
		cr_expect(end_and_check(&witness, &look, &no_cpus));
		(void)pipe_waiter_continue(&waiter, &process);
	}
	/* The clock of an ended thread stands still, but its state may be another thread's. */
	const pid_t tid = waiter.tid;
	const struct witness_means followed = {.process = &process, .ids_may_be_reused = true};

	witness_end(&witness, &followed, tid);
	cr_expect(not(witness.has_ended));
	pipe_waiter_end(&waiter);
	own_process_await_end(&process, tid);
	cr_assert(zero(int, witness_begin(&witness, &look, &no_cpus)));
	cr_expect(end_and_check(&witness, &look, &no_cpus), "the end was not checked");
	witness_end(&witness, &followed, tid);
	cr_expect(witness.has_ended);
	cr_expect(not(witness_stood_still(&witness, &look, &no_cpus)));
	witness_close(&witness);
	process_close(&process);
}

Test(witness, clock_shows_that_a_thread_works, .timeout = 60)
{
	const cpu_set_t all = all_cpus();
	struct process process = own_process_open();
	struct look_memory look = {0};
	struct spinner spinner;
	struct witness witness;

	spinner_begin(&spinner);
	witness = open_clock(&process, spinner.tid);
	for (int i = 0; i < 3; i++) {
		cr_assert(zero(int, witness_begin(&witness, &look, &all)));
		await_work(&spinner);
		cr_expect(not(end_and_check(&witness, &look, &all)));
	}
	spinner_end(&spinner);
	witness_close(&witness);
	process_close(&process);
}

Test(witness, run_count_proves_that_a_thread_waits, .timeout = 60)
{
	const cpu_set_t all = all_cpus();
	const cpu_set_t no_cpus = cpu_set_of(NULL, 0);
	const struct {
		const cpu_set_t *first, *last;
		bool continues, stood;
	} cases[] = {
		{&all, &all, false, true},
		{&all, &all, true, false},
		{&no_cpus, &all, false, false},
		{&no_cpus, &no_cpus, false, false},
		/*
		 * The CPU was not held to the end, so the thread may have run before its count
		 * was read.
		 */
		{&all, &no_cpus, false, false},
		{&all, &all, false, true},
	};
	struct process process = own_process_open();
	struct look_memory look = {0};
	struct pipe_waiter waiter;
	struct witness witness;

	pipe_waiter_begin(&waiter);
	(void)pipe_waiter_place(&waiter, &process);
	witness = open_runs(&process, waiter.tid);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cr_assert(zero(int, witness_begin(&witness, &look, cases[i].first)));
		cr_expect(lt(u32, witness.cpu, CPU_SETSIZE));
		if (cases[i].continues)
			(void)pipe_waiter_continue(&waiter, &process);
		cr_expect(eq(int, end_and_check(&witness, &look, cases[i].last), cases[i].stood),
			  "case %zu", i);
	}
	pipe_waiter_end(&waiter);
	own_process_await_end(&process, waiter.tid);
	cr_assert(zero(int, witness_begin(&witness, &look, &all)));
	cr_expect(not(end_and_check(&witness, &look, &all)), "the thread has ended");
	witness_close(&witness);
	cr_expect(not(witness.has_runs));
	process_close(&process);
}

/* A thread that runs all the time may have an equal count; its CPU shows that it runs. */
Test(witness, run_count_shows_that_a_thread_works, .timeout = 60)
{
	struct process process = own_process_open();
	struct look_memory look = {0};
	struct spinner spinner;
	struct witness witness;
	cpu_set_t usual, its;
	cpu_set_t others;

	cr_assert(zero(int, sched_getaffinity(0, sizeof(usual), &usual)));
	spinner_begin(&spinner);
	witness = open_runs(&process, spinner.tid);
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &usual))
			continue;
		its = cpu_set_of(&cpu, 1);
		cr_assert(zero(int, sched_setaffinity(spinner.tid, sizeof(its), &its)));
		others = all_cpus();
		CPU_CLR(cpu, &others);
		cr_assert(zero(int, witness_begin(&witness, &look, &others)));
		cr_expect(eq(u32, witness.cpu, cpu));
		cr_expect(not(end_and_check(&witness, &look, &others)));
	}
	spinner_end(&spinner);
	witness_close(&witness);
	process_close(&process);
}

/* The thread's files are opened on demand. */
Test(witness, opens_files_on_demand, .timeout = 60)
{
	struct process process = own_process_open();
	const struct witness_means means = {
		.process = &process, .rseq = {.is_known = true, .cpu_id_offset = CPU_ID_OFFSET}};
	struct pipe_waiter waiter;
	struct witness witness;
	struct thread_stat now;
	int err;

	pipe_waiter_begin(&waiter);
	(void)pipe_waiter_place(&waiter, &process);
	witness_open(&means, POINTER, waiter.tid, &witness);
	cr_expect(eq(int, witness.kind, WITNESS_RSEQ));
	cr_expect(not(witness.has_runs));
	cr_expect(eq(int, witness_now(&witness, &means, 0, &now), -ENOTSUP),
		  "the thread id is unknown");
	err = witness_now(&witness, &means, waiter.tid, &now);
	if (err != -ENOTSUP) {
		cr_assert(zero(int, err));
		cr_expect(witness.has_runs);
		cr_expect(eq(chr, now.state, 'S'));
		cr_expect(lt(u32, now.cpu, CPU_SETSIZE));
	}
	pipe_waiter_end(&waiter);
	witness_close(&witness);
	process_close(&process);
}
