/* SPDX-License-Identifier: MIT */
/* Pauses of a run: no looks, no interrupts, and no weight for the time that they take. */
#include "procmem/clock.h"
#include "sampler/sampler_interrupts.h"
#include "sampler/sampler_state.h"
#include "sampler/task_roots.h"

/* Stop or continue to interrupt threads. */
static int enable(struct sampler *sampler, bool is_on)
{
	int err = 0;

	if (sampler->interrupts)
		err = sampler_interrupts_enable(sampler->interrupts, is_on);
	if (sampler->native) {
		int native_err = sampler_native_enable(sampler->native, is_on);

		err = err ? err : native_err;
	}
	return err;
}

/* Emit what was sampled before the pause. */
static int drain(struct sampler *sampler)
{
	int err = 0;

	if (sampler->interrupts) {
		err = sampler_interrupts_drain(sampler->interrupts);
		sampler_interrupts_end_reads(sampler->interrupts);
	} else if (sampler->native) {
		err = sampler_native_drain(sampler->native, clock_now_ns());
	}
	return err;
}

/* Read a thread's CPU clock. */
static bool read_clock(struct sampler *sampler, struct cpu_account *cpu, uint64_t *ret_ns)
{
	if (!sampler->extras.cpu || cpu->clock.kind == CPU_CLOCK_NONE)
		return false;
	sampler->stats.clock_reads++;
	return cpu_clock_read(&cpu->clock, ret_ns) == 0;
}

static int begin(struct sampler *sampler)
{
	int err;

	/* Threads that have ended are the only ones that cannot be stopped. */
	(void)enable(sampler, false);
	err = drain(sampler);
	for (uint32_t i = 0; i < sampler->nr_threads; i++) {
		struct cpu_account *cpu = &sampler->threads[i].cpu;

		cpu->has_paused = read_clock(sampler, cpu, &cpu->paused_ns);
	}
	sampler->pause.is_on = true;
	sampler->pause.begin_ns = clock_now_ns();
	return err;
}

/* Move a time, unless it is 0: none. */
static void shift(uint64_t *time_ns, uint64_t by_ns)
{
	if (*time_ns)
		*time_ns += by_ns;
}

/* Let the accounts of all threads continue as if the pause had not been. */
static void end(struct sampler *sampler, uint64_t now_ns)
{
	const uint64_t length_ns = now_ns - sampler->pause.begin_ns;

	for (uint32_t i = 0; i < sampler->nr_threads; i++) {
		struct sampled_thread *sampled = &sampler->threads[i];
		struct cpu_account *cpu = &sampled->cpu;
		uint64_t cpu_ns;

		shift(&sampled->time.last_ns, length_ns);
		shift(&sampled->time.covered_ns, length_ns);
		if (cpu->has_paused && read_clock(sampler, cpu, &cpu_ns) && cpu_ns > cpu->paused_ns)
			cpu->last_ns += cpu_ns - cpu->paused_ns;
		cpu->has_paused = false;
	}
	if (sampler->roots)
		task_roots_shift(sampler->roots, length_ns);
	shift(&sampler->tick.last_ns, length_ns);
	shift(&sampler->tick.last_look_ns, length_ns);
	sampler->pause.is_on = false;
	sampler->pause.sum_ns += length_ns;
	(void)enable(sampler, true);
}

int sampler_pause_update(struct sampler *sampler, bool is_wanted, struct ticker *ticker)
{
	const struct sampler_pause *pause = &sampler->pause;
	int err = 0;
	uint64_t now_ns;

	if (!pause->is_on && !is_wanted)
		return 0;
	if (!pause->is_on)
		err = begin(sampler);
	now_ns = clock_now_ns();
	if (is_wanted) {
		ticker_hold(ticker, now_ns);
	} else {
		end(sampler, now_ns);
		ticker_resume(ticker, now_ns);
	}
	return err;
}

void sampler_pause_finish(struct sampler *sampler)
{
	if (!sampler->pause.is_on)
		return;
	sampler->pause.sum_ns += clock_now_ns() - sampler->pause.begin_ns;
	sampler->pause.is_on = false;
}
