/* SPDX-License-Identifier: MIT */
/*
 * What the samples of a thread weigh in wall-clock time. Looks find it every so often, so each weighs the
 * time since the one before. An interrupt comes when the thread has used a period of CPU time, so that is
 * what its sample stands for, and what is left of the time that passed is that in which the thread did not
 * run: samples of looks stand for it.
 */
#include "sampler/sampler_state.h"
#include "sampler/ticker.h"

void sampler_wall_begin(struct sampler *sampler, struct sampled_thread *sampled)
{
	sampled->was_interrupted = false;
	sampled->lost_ns = 0;
	sampled->told_ns = sampler->interrupts && !sampler->last_tick_ns ? clock_now_ns()
									 : sampler->last_tick_ns;
}

void sampler_wall_lost(struct sampled_thread *sampled, uint64_t period_ns)
{
	sampled->told_ns += period_ns;
	sampled->lost_ns += period_ns;
}

void sampler_wall_used(struct sampled_thread *sampled, uint64_t period_ns, struct sample *sample)
{
	sampled->told_ns += period_ns;
	sample->wall_ns = period_ns + sampled->lost_ns;
	sampled->lost_ns = 0;
}

uint32_t sampler_wall_measure(const struct sampler *sampler, struct sampled_thread *sampled,
			      struct sample *sample)
{
	const uint64_t time_ns = sample->time_ns;
	uint64_t left_ns = time_ns > sampled->told_ns ? time_ns - sampled->told_ns : 0;
	uint32_t nr = 1;

	if (sample->wall_ns)
		return nr;
	if (!sampler->interrupts) {
		sample->wall_ns = sampled->last_ns ? time_ns - sampled->last_ns : 0;
		return nr;
	}
	/* Between interrupts it may have waited for some periods until a look has met it. */
	if (sampled->was_interrupted)
		nr = sampler_interrupts_nr_periods(sampler->interrupts, left_ns);
	sampled->told_ns += left_ns;
	sample->wall_ns = (left_ns + sampled->lost_ns) / nr;
	sampled->lost_ns = 0;
	return nr;
}
