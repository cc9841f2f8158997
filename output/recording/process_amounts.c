/* SPDX-License-Identifier: MIT */
#include "output/recording/process_amounts.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"

struct counter {
	struct process_amounts *amounts; /* by process; the last one is for threads without one */
	uint32_t nr_processes;
	uint32_t *process_of; /* owned; by thread */
	uint32_t nr_threads, max_threads;
};

static int count_thread(void *context, uint32_t process, const struct profile_thread *thread)
{
	struct counter *counter = context;
	uint32_t *process_of = array_reserve(counter->process_of, counter->nr_threads + 1,
					     &counter->max_threads, sizeof(*process_of));

	(void)thread;
	if (!process_of)
		return -ENOMEM;
	counter->process_of = process_of;
	if (process == PROFILE_NONE)
		process = counter->nr_processes;
	if (process > counter->nr_processes)
		return -ESTALE;
	process_of[counter->nr_threads++] = process;
	counter->amounts[process].nr_threads++;
	return 0;
}

static int count_sample(void *context, const struct recorded_sample *sample)
{
	const struct counter *counter = context;
	struct process_amounts *amounts = &counter->amounts[counter->process_of[sample->thread]];

	amounts->nr_samples++;
	amounts->wall_ns += sample->wall_ns;
	amounts->cpu_ns += sample->cpu_ns;
	return 0;
}

int process_amounts_read(struct recording *recording, struct process_amounts **ret_amounts)
{
	static const struct recording_ops ops = {
		.thread = count_thread,
		.sample = count_sample,
	};
	struct counter counter = {.nr_processes = recording_processes(recording)->nr};
	cleanup_free struct process_amounts *amounts =
		calloc((size_t)counter.nr_processes + 1, sizeof(*amounts));
	int err;

	if (!amounts)
		return -ENOMEM;
	counter.amounts = amounts;
	err = recording_read(recording, &ops, &counter);
	free(counter.process_of);
	if (!err)
		*ret_amounts = take_ptr(amounts);
	return err;
}
