/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <unistd.h>

#include "sampler/sampler_state.h"

/* What an interrupt has told of a thread's CPU time no tick tells again. */
Test(sampler_cpu, what_was_told_is_not_told_again)
{
	struct process process;
	struct sampler sampler = {.looks.cpu = true};
	struct sample_thread info = {.tid = getpid()};
	struct sampled_thread sampled = {.info = &info};
	struct sample told = {0};
	uint64_t until_ns;

	cr_assert(zero(int, process_open(getpid(), &process, NULL)));
	sampler.process = &process;
	sampler_cpu_begin(&sampler, &sampled);
	cr_assert(sampled.cpu.has_last);
	sampler_cpu_used(&sampler, &sampled, 1000 * (uint64_t)NS_PER_S, &told);
	cr_expect(eq(u64, told.cpu_ns, 1000 * (uint64_t)NS_PER_S));
	cr_expect(eq(u32, told.flags, SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU));
	until_ns = sampled.cpu.last_ns;
	for (int i = 0; i < 3; i++) {
		struct sample sample = {0};

		sampler_cpu_measure(&sampler, &sampled, &sample);
		cr_expect(zero(u64, sample.cpu_ns));
		cr_expect(eq(u32, sample.flags, SAMPLE_CPU_MEASURED));
		cr_expect(eq(u64, sampled.cpu.last_ns, until_ns), "it is not taken back");
	}
	cpu_clock_close(&sampled.cpu.clock);
	process_close(&process);
}
