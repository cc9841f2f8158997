/* SPDX-License-Identifier: MIT */
/* The CPU time of samples. */
#include "sampler/sampler_state.h"

void sampler_cpu_begin(struct sampler *sampler, struct sampled_thread *sampled)
{
	struct cpu_account *cpu = &sampled->cpu;

	cpu_clock_close(&cpu->clock);
	cpu->has_last = false;
	if (!sampler->looks.cpu)
		return;
	if (!sampler->process || !sampled->info->tid ||
	    cpu_clock_open(sampler->process, sampled->info->tid, &cpu->clock) != 0) {
		sampler->stats.clockless++;
		return;
	}
	if (cpu->clock.kind == CPU_CLOCK_SCHEDSTAT)
		sampler->stats.rough_clocks++;
	sampler->stats.clock_reads++;
	cpu->has_last = cpu_clock_read(&cpu->clock, &cpu->last_ns) == 0;
}

void sampler_cpu_measure(struct sampler *sampler, struct sampled_thread *sampled,
			 struct sample *sample)
{
	struct cpu_account *cpu = &sampled->cpu;
	uint64_t now_ns;

	if (!sampler->looks.cpu || cpu->clock.kind == CPU_CLOCK_NONE)
		return;
	sampler->stats.clock_reads++;
	if (cpu_clock_read(&cpu->clock, &now_ns) != 0)
		return;
	if (cpu->has_last) {
		/* An interrupt may have told of it ahead: sampler_cpu_used(). */
		sample->cpu_ns = now_ns > cpu->last_ns ? now_ns - cpu->last_ns : 0;
		sample->flags |= SAMPLE_CPU_MEASURED;
		if (sample->cpu_ns)
			sample->flags |= SAMPLE_ON_CPU;
	}
	if (!cpu->has_last || now_ns > cpu->last_ns)
		cpu->last_ns = now_ns;
	cpu->has_last = true;
}

void sampler_cpu_used(struct sampler *sampler, struct sampled_thread *sampled, uint64_t cpu_ns,
		      struct sample *sample)
{
	struct cpu_account *cpu = &sampled->cpu;

	if (!sampler->looks.cpu)
		return;
	sample->cpu_ns = cpu_ns;
	sample->flags |= SAMPLE_CPU_MEASURED | SAMPLE_ON_CPU;
	/* What a clock tells next is of the time since: ticks may have told a part of this already. */
	cpu->last_ns += cpu_ns;
}
