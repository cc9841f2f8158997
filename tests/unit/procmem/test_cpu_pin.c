/* SPDX-License-Identifier: MIT */
#include "procmem/sched/cpu_pin.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static cpu_set_t affinity(void)
{
	cpu_set_t cpus;

	cr_assert(zero(int, sched_getaffinity(0, sizeof(cpus), &cpus)));
	return cpus;
}

static void expect_affinity(const cpu_set_t *expected)
{
	const cpu_set_t is = affinity();

	cr_expect(zero(int, memcmp(&is, expected, sizeof(is))));
}

static cpu_set_t only(uint32_t cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	return cpus;
}

/* The lowest CPU of the set from cpu on; CPU_SETSIZE if there is none. */
static uint32_t cpu_from(const cpu_set_t *cpus, uint32_t cpu)
{
	while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, cpus))
		cpu++;
	return cpu;
}

Test(cpu_pin, moves_to_each_cpu_and_returns)
{
	const cpu_set_t usual = affinity();
	struct cpu_pin pin;

	cr_assert(zero(int, cpu_pin_open(&pin)));
	expect_affinity(&usual);
	cr_expect(zero(int, memcmp(&pin.usual, &usual, sizeof(usual))));
	cr_expect(eq(u32, pin.cpu, CPU_NONE));
	for (uint32_t cpu = cpu_from(&usual, 0); cpu < CPU_SETSIZE;
	     cpu = cpu_from(&usual, cpu + 1)) {
		const cpu_set_t there = only(cpu);

		for (int i = 0; i < 2; i++) {
			cr_expect(zero(int, cpu_pin_move(&pin, cpu)));
			cr_expect(eq(u32, pin.cpu, cpu));
			cr_expect(eq(u32, cpu_current(), cpu));
			expect_affinity(&there);
		}
	}
	cr_expect(zero(int, cpu_pin_move(&pin, CPU_NONE)));
	expect_affinity(&usual);
	cr_expect(zero(int, cpu_pin_move(&pin, cpu_from(&usual, 0))));
	cpu_pin_close(&pin);
	expect_affinity(&usual);
	cr_expect(not(pin.is_open));
	cpu_pin_close(&pin);
}

/* CPUs outside the thread's original affinity mask are refused. */
Test(cpu_pin, refuses_cpus_outside_the_affinity)
{
	const cpu_set_t all = affinity();
	const uint32_t first = cpu_from(&all, 0);
	const uint32_t refused[] = {cpu_from(&all, first + 1), CPU_SETSIZE, CPU_NONE - 1};
	cpu_set_t usual = only(first);
	struct cpu_pin pin;

	cr_assert(zero(int, sched_setaffinity(0, sizeof(usual), &usual)));
	cr_assert(zero(int, cpu_pin_open(&pin)));
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		cr_assert(zero(int, cpu_pin_move(&pin, first)));
		cr_expect(eq(int, cpu_pin_move(&pin, refused[i]), -EPERM));
		cr_expect(eq(u32, pin.cpu, CPU_NONE));
		expect_affinity(&usual);
	}
	cpu_pin_close(&pin);
	expect_affinity(&usual);
}

/* The first version of struct sched_attr, see sched_setattr(2). */
struct sched_attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

static struct sched_attributes attributes(void)
{
	struct sched_attributes attributes = {0};

	cr_assert(
		zero(int, (int)syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0)));
	return attributes;
}

Test(cpu_pin, slice_follows_the_look_time_and_is_restored)
{
	static const struct {
		uint64_t look_ns, slice_ns;
	} steps[] = {
		{0, 100000},	       {80000, 100000},	 {80001, 200000},   {640000, 800000},
		{267000, 800000},      {266000, 400000}, {641000, 1600000}, {UINT32_MAX, 3200000},
		{UINT32_MAX, 3200000}, {100000, 200000}, {0, 100000},
	};
	struct sched_attributes usual = attributes();
	struct cpu_pin pin;

	usual.size = sizeof(usual);
	usual.runtime_ns = 0; /* discard an inherited slice */
	(void)syscall(SYS_sched_setattr, 0, &usual, 0);
	usual = attributes();
	cr_assert(zero(int, cpu_pin_open(&pin)));
	cpu_pin_fit_slice(&pin, 0);
	if (pin.slice_is_refused) {
		cr_expect(zero(u64, pin.slice_ns));
		cpu_pin_close(&pin);
		cr_skip("this kernel has no custom time slices");
	}
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		cpu_pin_fit_slice(&pin, steps[i].look_ns);
		cr_expect(eq(u64, pin.slice_ns, steps[i].slice_ns), "step %zu", i);
		cr_expect(eq(u64, attributes().runtime_ns, steps[i].slice_ns), "step %zu", i);
		cr_expect(eq(u32, attributes().policy, usual.policy));
		cr_expect(eq(i32, attributes().nice, usual.nice));
	}
	cpu_pin_close(&pin);
	cr_expect(eq(u64, attributes().runtime_ns, usual.runtime_ns));
	cr_expect(eq(u32, attributes().policy, usual.policy));
	cr_expect(eq(i32, attributes().nice, usual.nice));

	usual.size = sizeof(usual);
	usual.runtime_ns = 700000;
	cr_assert(zero(int, (int)syscall(SYS_sched_setattr, 0, &usual, 0)));
	cr_assert(zero(int, cpu_pin_open(&pin)));
	cpu_pin_fit_slice(&pin, 0);
	cr_expect(eq(u64, attributes().runtime_ns, 100000));
	cpu_pin_close(&pin);
	cr_expect(eq(u64, attributes().runtime_ns, 700000), "the previous slice is restored");
}

Test(cpu_pin, sleeping_counts_as_leaving, .timeout = 60)
{
	const struct context_switches first = context_switches_read();
	struct context_switches now;

	do {
		(void)usleep(1000);
		now = context_switches_read();
	} while (now.voluntary == first.voluntary);
	cr_expect(lt(u64, first.voluntary, now.voluntary));
	cr_expect(le(u64, first.involuntary, now.involuntary));
}
