/* SPDX-License-Identifier: MIT */
#include "output/recording/recorded_threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"

static int add_thread(void *context, uint32_t process, const struct profile_thread *thread)
{
	struct recorded_threads *threads = context;
	struct profile_thread *rows;

	rows = array_reserve(threads->threads, threads->nr_threads + 1, &threads->max_threads,
			     sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	threads->threads = rows;
	rows[threads->nr_threads] = *thread;
	rows[threads->nr_threads++].process = process;
	return 0;
}

static int rename_thread(void *context, uint32_t thread, const char *name)
{
	struct recorded_threads *threads = context;
	char *kept = threads->threads[thread].name;
	const size_t length = strnlen(name, THREAD_NAME_MAX_BYTES - 1);

	memcpy(kept, name, length);
	kept[length] = '\0';
	return 0;
}

static int count_sample(void *context, const struct recorded_sample *sample)
{
	struct recorded_threads *threads = context;

	if (!threads->nr_samples++)
		threads->first_ns = sample->time_ns;
	threads->last_ns = sample->time_ns;
	return 0;
}

int recorded_threads_read(struct recording *recording, struct recorded_threads *ret_threads)
{
	static const struct recording_ops ops = {
		.thread = add_thread,
		.renamed = rename_thread,
		.sample = count_sample,
	};

	*ret_threads = (struct recorded_threads){0};
	return recording_read(recording, &ops, ret_threads);
}

void recorded_threads_done(struct recorded_threads *threads)
{
	free(threads->threads);
	*threads = (struct recorded_threads){0};
}
