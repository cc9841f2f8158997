/* SPDX-License-Identifier: MIT */
#include "procmem/clock.h"
#include "sampler/preempt.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHORT_NS = 200000 };

/* More looks than a CPU without runners is held for, and more than it takes to move the pin. */
enum { MANY_LOOKS = 100 };

static cpu_set_t affinity_of(pid_t tid)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	(void)sched_getaffinity(tid, sizeof(cpus), &cpus);
	return cpus;
}

static bool is_same(const cpu_set_t *a, const cpu_set_t *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static cpu_set_t only(uint32_t cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	return cpus;
}

static bool is_part(const cpu_set_t *part, const cpu_set_t *whole)
{
	cpu_set_t both;

	CPU_AND(&both, part, whole);
	return is_same(&both, part);
}

/* The lowest CPU of the set from cpu on; CPU_SETSIZE if there is none. */
static uint32_t cpu_from(const cpu_set_t *cpus, uint32_t cpu)
{
	while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, cpus))
		cpu++;
	return cpu;
}

/* Sleep until a look on the CPUs that are followed. */
static void sleep_until(struct preempt *preempt, struct followed_cpus *followed, uint64_t time_ns)
{
	preempt_aim(preempt, followed, time_ns);
	clock_sleep_until(time_ns);
}

static struct preempt *create(void)
{
	struct preempt *preempt = NULL;

	cr_assert(zero(int, preempt_create(&preempt)));
	return preempt;
}

Test(preempt, moves_to_the_followed_cpu_and_returns)
{
	const cpu_set_t usual = affinity_of(0);

	preempt_destroy(NULL);
	for (uint32_t cpu = cpu_from(&usual, 0); cpu < CPU_SETSIZE;
	     cpu = cpu_from(&usual, cpu + 1)) {
		const cpu_set_t there = only(cpu);
		struct preempt *preempt = create();
		struct followed_cpus followed = {0};
		cpu_set_t is = affinity_of(0);

		cr_expect(is_same(&is, &usual), "no CPU is followed yet");
		preempt_move(preempt, &followed);
		is = affinity_of(0);
		cr_expect(is_same(&is, &usual));
		cr_expect(preempt_follow(preempt, &followed, cpu));
		preempt_move(preempt, &followed);
		is = affinity_of(0);
		cr_expect(is_same(&is, &there));
		preempt_destroy(preempt);
		is = affinity_of(0);
		cr_expect(is_same(&is, &usual));
	}
}

Test(preempt, only_our_cpus_are_followed)
{
	const cpu_set_t all = affinity_of(0);
	const uint32_t first = cpu_from(&all, 0);
	const uint32_t others[] = {cpu_from(&all, first + 1), CPU_SETSIZE, CPU_NONE - 1};
	const cpu_set_t usual = only(first);
	struct preempt *preempt;
	struct followed_cpus followed = {0};
	cpu_set_t is;

	cr_assert(zero(int, sched_setaffinity(0, sizeof(usual), &usual)));
	preempt = create();
	cr_expect(preempt_follow(preempt, &followed, CPU_NONE), "CPU not found");
	cr_expect(preempt_follow(preempt, &followed, first));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		cr_expect(not(preempt_follow(preempt, &followed, others[i])));
		preempt_move(preempt, &followed);
		is = affinity_of(0);
		cr_expect(is_same(&is, &usual));
	}
	preempt_destroy(preempt);
}

Test(preempt, reports_the_cpu_it_holds)
{
	const cpu_set_t usual = affinity_of(0);
	const uint32_t cpu = cpu_from(&usual, 0);
	const cpu_set_t there = only(cpu);
	struct preempt *preempt = create();
	struct followed_cpus followed = {0};
	cpu_set_t begun, held;

	(void)preempt_follow(preempt, &followed, cpu);
	preempt_move(preempt, &followed);
	for (int i = 0; i < MANY_LOOKS; i++) {
		preempt_hold(preempt, &followed, &begun);
		cr_expect(is_same(&begun, &there));
		(void)preempt_release(preempt, &held);
		/* A CPU that another thread takes meanwhile is not reported as held. */
		cr_expect(is_part(&held, &begun));
	}
	preempt_destroy(preempt);
}

/* A sleeping thread does not hold its CPU, and this is reported. */
Test(preempt, sleeping_counts_as_leaving, .timeout = 60)
{
	const cpu_set_t usual = affinity_of(0);
	struct preempt *preempt = create();
	struct followed_cpus followed = {0};
	cpu_set_t held;

	(void)preempt_follow(preempt, &followed, cpu_from(&usual, 0));
	preempt_move(preempt, &followed);
	for (int i = 0; i < 3; i++) {
		uint64_t before;

		preempt_hold(preempt, &followed, &held);
		before = context_switches_read().voluntary;
		while (context_switches_read().voluntary == before)
			(void)usleep(1000);
		cr_expect(preempt_release(preempt, &held));
		cr_expect(zero(int, CPU_COUNT(&held)));
	}
	preempt_destroy(preempt);
}

Test(preempt, clock_sleeps_on_the_pinned_cpu, .timeout = 60)
{
	const cpu_set_t usual = affinity_of(0);
	const uint32_t cpu = cpu_from(&usual, 0);
	const cpu_set_t there = only(cpu);
	struct preempt *preempt = create();
	struct followed_cpus followed = {0};
	uint64_t until_ns;
	cpu_set_t is;

	(void)preempt_follow(preempt, &followed, cpu);
	until_ns = clock_now_ns() + SHORT_NS;
	while (clock_now_ns() < until_ns)
		sleep_until(preempt, &followed, until_ns);
	is = affinity_of(0);
	cr_expect(is_same(&is, &there));
	preempt_destroy(preempt);
	is = affinity_of(0);
	cr_expect(is_same(&is, &usual));
}

/* The id of another thread of ours with this CPU alone in its affinity mask; 0 if there is none. */
static pid_t find_guard(uint32_t cpu)
{
	const cpu_set_t there = only(cpu);
	DIR *tasks = opendir("/proc/self/task");
	pid_t found = 0;

	cr_assert(ne(ptr, tasks, NULL));
	for (struct dirent *entry; (entry = readdir(tasks));) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		const cpu_set_t is = affinity_of(tid);

		if (tid > 0 && tid != gettid() && is_same(&is, &there))
			found = tid;
	}
	(void)closedir(tasks);
	return found;
}

/*
 * Run a tick: sleep, hold, and follow the target to the CPUs in found. Returns the CPUs held at
 * the beginning.
 */
static cpu_set_t hold_for_a_tick(struct preempt *preempt, struct followed_cpus *followed,
				 const uint32_t *found, size_t nr_found)
{
	cpu_set_t begun, held;

	sleep_until(preempt, followed, clock_now_ns() + SHORT_NS);
	preempt_hold(preempt, followed, &begun);
	(void)preempt_release(preempt, &held);
	cr_expect(is_part(&held, &begun));
	for (size_t i = 0; i < nr_found; i++)
		cr_expect(preempt_follow(preempt, followed, found[i]));
	return begun;
}

/* Find two CPUs, or skip the test. */
static void find_cpus(uint32_t cpus[2])
{
	const cpu_set_t usual = affinity_of(0);

	cpus[0] = cpu_from(&usual, 0);
	cpus[1] = cpu_from(&usual, cpus[0] + 1);
	if (cpus[1] >= CPU_SETSIZE)
		cr_skip("needs two CPUs");
}

/*
 * Whether the guard is in time depends on the machine. That there is a guard, and where, does
 * not.
 */
Test(preempt, other_cpu_gets_a_guard, .timeout = 60)
{
	const cpu_set_t usual = affinity_of(0);
	struct preempt *preempt;
	struct followed_cpus followed = {0};
	cpu_set_t both, held;
	uint32_t cpus[2];
	bool is_pinned;
	cpu_set_t is;

	find_cpus(cpus);
	both = only(cpus[0]);
	CPU_SET(cpus[1], &both);
	preempt = create();
	(void)preempt_follow(preempt, &followed, cpus[0]);
	preempt_move(preempt, &followed);
	cr_expect(zero(int, find_guard(cpus[1])));
	(void)preempt_follow(preempt, &followed, cpus[1]);
	do {
		held = hold_for_a_tick(preempt, &followed, cpus, 2);
		cr_expect(is_part(&held, &both));
		is_pinned = CPU_ISSET(cpu_current(), &held);
		cr_expect(is_pinned);
	} while (!find_guard(cpus[1]) && !find_guard(cpus[0]));
	preempt_destroy(preempt);
	is = affinity_of(0);
	cr_expect(is_same(&is, &usual));
	/* The guard was joined, but the kernel may take a moment to remove it. */
	while (find_guard(cpus[0]) || find_guard(cpus[1]))
		(void)usleep(1000);
}

Test(preempt, idle_cpus_are_not_held, .timeout = 60)
{
	struct preempt *preempt;
	struct followed_cpus followed = {0};
	uint32_t cpus[2];
	cpu_set_t held;
	cpu_set_t is, there;

	find_cpus(cpus);
	there = only(cpus[1]);
	preempt = create();
	(void)preempt_follow(preempt, &followed, cpus[0]);
	(void)preempt_follow(preempt, &followed, cpus[1]);
	for (int i = 0; i < MANY_LOOKS; i++)
		(void)hold_for_a_tick(preempt, &followed, &cpus[1], 1);
	/* The sampler has moved to the target's CPU, and no guard is on the old one. */
	preempt_move(preempt, &followed);
	is = affinity_of(0);
	cr_expect(is_same(&is, &there));
	for (int i = 0; i < 3; i++) {
		held = hold_for_a_tick(preempt, &followed, &cpus[1], 1);
		cr_expect(is_same(&held, &there));
	}
	preempt_destroy(preempt);
}

/* Guards that were used never, once or more often. */
Test(preempt, affinity_is_restored_after_any_number_of_ticks, .timeout = 60)
{
	uint32_t cpus[2];
	const cpu_set_t usual = affinity_of(0);

	find_cpus(cpus);
	for (int i = 0; i < 20; i++) {
		struct preempt *preempt = create();
		struct followed_cpus followed = {0};
		cpu_set_t is;

		(void)preempt_follow(preempt, &followed, cpus[0]);
		(void)preempt_follow(preempt, &followed, cpus[1]);
		for (int nr = 0; nr < i % 3; nr++)
			(void)hold_for_a_tick(preempt, &followed, cpus, 2);
		preempt_destroy(preempt);
		is = affinity_of(0);
		cr_expect(is_same(&is, &usual));
	}
}

/*
 * The next look comes when it was announced, or later. The guards are in time for it repeatedly,
 * as far as the machine allows.
 */
Test(preempt, announced_ticks_find_the_guards_ready, .timeout = 60)
{
	static const int64_t off_ns[] = {0, SHORT_NS, 10 * SHORT_NS};
	uint32_t cpus[2];

	find_cpus(cpus);
	for (size_t i = 0; i < sizeof(off_ns) / sizeof(*off_ns); i++) {
		struct preempt *preempt = create();
		struct followed_cpus followed = {0};
		uint64_t next_ns = clock_now_ns() + SHORT_NS;
		int nr_both = 0;

		(void)preempt_follow(preempt, &followed, cpus[0]);
		(void)preempt_follow(preempt, &followed, cpus[1]);
		while (nr_both < 3) {
			cpu_set_t begun, held;

			sleep_until(preempt, &followed, next_ns);
			next_ns = clock_now_ns() + 2 * SHORT_NS;
			preempt_set_next(preempt, next_ns);
			next_ns = (uint64_t)((int64_t)next_ns + off_ns[i]);
			preempt_hold(preempt, &followed, &begun);
			(void)preempt_release(preempt, &held);
			cr_expect(is_part(&held, &begun));
			nr_both += CPU_COUNT(&held) == 2;
			(void)preempt_follow(preempt, &followed, cpus[nr_both % 2]);
		}
		preempt_destroy(preempt);
	}
}

/* A second look in a tick does not wait for the guards, which wait for the next tick. */
Test(preempt, second_hold_in_a_tick_does_not_wait, .timeout = 60)
{
	uint64_t next_ns = clock_now_ns() + SHORT_NS;
	uint32_t cpus[2];
	struct preempt *preempt;
	struct followed_cpus followed = {0};
	bool both = false;

	find_cpus(cpus);
	preempt = create();
	(void)preempt_follow(preempt, &followed, cpus[0]);
	(void)preempt_follow(preempt, &followed, cpus[1]);
	do {
		cpu_set_t held;

		sleep_until(preempt, &followed, next_ns);
		next_ns = clock_now_ns() + 100 * SHORT_NS;
		preempt_set_next(preempt, next_ns);
		for (int i = 0; i < 3; i++) {
			preempt_hold(preempt, &followed, &held);
			(void)preempt_release(preempt, &held);
			both = i == 0 ? CPU_COUNT(&held) == 2 : both;
		}
		(void)preempt_follow(preempt, &followed, cpus[0]);
		(void)preempt_follow(preempt, &followed, cpus[1]);
	} while (!both || clock_now_ns() >= next_ns);
	preempt_destroy(preempt);
}
