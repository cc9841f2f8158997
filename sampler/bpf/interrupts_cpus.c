/* SPDX-License-Identifier: MIT */
#include "sampler/bpf/interrupts_cpus.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "sampler/bpf/interrupt_event.h"

/* Open the events of all CPUs that are online. */
static int open_events(struct interrupts *interrupts)
{
	const int nr_cpus = libbpf_num_possible_cpus();
	int err = nr_cpus > 0 ? 0 : -ENOTSUP;

	interrupts->cpu_events =
		err ? NULL : calloc((size_t)nr_cpus, sizeof(*interrupts->cpu_events));
	if (!err && !interrupts->cpu_events)
		err = -ENOMEM;
	for (int cpu = 0; !err && cpu < nr_cpus; cpu++) {
		err = interrupt_event_open(interrupts, -1, cpu, interrupts->period_ns,
					   &interrupts->cpu_events[interrupts->nr_cpu_events]);
		interrupts->nr_cpu_events += !err;
		err = err == -ENODEV ? 0 : err;
	}
	return err;
}

int interrupts_cpus_open(struct interrupts *interrupts)
{
	int err = interrupts->nr_cpu_events ? 0 : open_events(interrupts);

	if (err) {
		interrupts_cpus_close(interrupts);
		return err;
	}
	for (uint32_t i = 0; i < INTERRUPT_MAX_PROCESSES; i++)
		if (interrupts->processes[i])
			interrupts_process_drop_events(interrupts->processes[i]);
	interrupts->program->bss->has_cpu_events = true;
	interrupts_cpus_enable(interrupts);
	return 0;
}

void interrupts_cpus_close(struct interrupts *interrupts)
{
	for (uint32_t i = 0; i < interrupts->nr_cpu_events; i++)
		interrupt_event_close(&interrupts->cpu_events[i]);
	free(interrupts->cpu_events);
	interrupts->cpu_events = NULL;
	interrupts->nr_cpu_events = 0;
}

void interrupts_cpus_enable(const struct interrupts *interrupts)
{
	for (uint32_t i = 0; i < interrupts->nr_cpu_events; i++)
		(void)interrupt_event_enable(&interrupts->cpu_events[i],
					     interrupts->nr_enabled > 0);
}
