/* SPDX-License-Identifier: MIT */
#include "cmd/core/core_threads.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/core/core_stack.h"

struct core_thread_index {
	remote_addr thread_pointer;
	size_t thread; /* index among the core's threads */
	bool seen;
};

static int compare_pointers(const void *a, const void *b)
{
	remote_addr x = ((const struct core_thread_index *)a)->thread_pointer;
	remote_addr y = ((const struct core_thread_index *)b)->thread_pointer;

	return (x > y) - (x < y);
}

/*
 * Returns the entry of the thread with that ident, its pthread_self(), or NULL if there is none:
 * the first whose thread pointer is not below it.
 */
static struct core_thread_index *find_thread(const struct core_threads *threads, uint64_t ident)
{
	const struct core_notes *notes = &threads->core->notes;
	size_t low = 0, high = notes->nr_threads;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (threads->index[middle].thread_pointer < ident)
			low = middle + 1;
		else
			high = middle;
	}
	return ident && low < notes->nr_threads &&
			       threads->index[low].thread_pointer - ident <=
				       notes->max_pthread_bytes
		       ? &threads->index[low]
		       : NULL;
}

/* Count a thread that has no C stack to follow. Returns flags for its sample. */
static uint32_t check_c_stack(struct core_threads *threads, const struct core_thread *thread)
{
	switch (core_stack_find_state(threads->core, thread)) {
	case CORE_STACK_MISSING:
		threads->nr_without_stack++;
		return SAMPLE_C_STACK_MISSING;
	case CORE_STACK_UNMAPPED:
		threads->nr_astray++;
		return 0;
	case CORE_STACK_SAVED:
	default:
		return 0;
	}
}

uint32_t core_thread_flags(const struct core *core, size_t index)
{
	/* The thread that got the signal is the first that the kernel writes. */
	return core->notes.death.signal && index == 0 ? SAMPLE_CRASHED : 0;
}

/* Add to a sample what the core knows of its thread. */
static void describe(struct core_threads *threads, struct core_thread_index *entry,
		     struct sample_thread *thread, struct sample *sample)
{
	const struct core *core = threads->core;
	const struct core_thread *own = &core->notes.threads[entry->thread];

	threads->nr_python += !entry->seen;
	entry->seen = true;
	thread->tid = own->tid;
	thread->is_main = own->tid == core->notes.psinfo.pid && thread->interpreter_id == 0;
	sample->flags |= core_thread_flags(core, entry->thread) | check_c_stack(threads, own);
}

static int core_threads_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct core_threads *threads = (struct core_threads *)sink;
	struct sample_thread thread = *sample->thread;
	struct sample described = *sample;
	struct core_thread_index *entry = find_thread(threads, thread.ident);

	described.thread = &thread;
	threads->nr_samples++;
	threads->nr_incomplete += sample->error != 0;
	threads->nr_with_gaps += (sample->flags & SAMPLE_GAPS) != 0;
	threads->nr_bridged += (sample->flags & SAMPLE_BRIDGED) != 0;
	if (entry)
		describe(threads, entry, &thread, &described);
	return threads->next->ops->sample(threads->next, &described);
}

static int core_threads_task(struct sample_sink *sink, const struct task_sample *task)
{
	struct core_threads *threads = (struct core_threads *)sink;
	struct task_sample described = *task;
	const struct core_thread_index *entry;
	struct sample_thread thread;

	if (task->thread) {
		thread = *task->thread;
		entry = find_thread(threads, thread.ident);
		if (entry)
			thread.tid = threads->core->notes.threads[entry->thread].tid;
		described.thread = &thread;
	}
	return threads->next->ops->task(threads->next, &described);
}

int core_threads_init(struct core_threads *threads, struct core *core, struct sample_sink *next)
{
	static const struct sample_sink_ops ops = {
		.sample = core_threads_sample,
		.task = core_threads_task,
	};
	const size_t nr_threads = core->notes.nr_threads;

	*threads = (struct core_threads){.sink.ops = &ops, .next = next, .core = core};
	threads->index = calloc(nr_threads + 1, sizeof(*threads->index));
	if (!threads->index)
		return -ENOMEM;
	for (size_t i = 0; i < nr_threads; i++)
		threads->index[i] = (struct core_thread_index){
			.thread_pointer = core->notes.threads[i].thread_pointer, .thread = i};
	qsort(threads->index, nr_threads, sizeof(*threads->index), compare_pointers);
	return 0;
}

void core_threads_done(struct core_threads *threads)
{
	free(threads->index);
	threads->index = NULL;
}

const struct core_thread *core_threads_find(const struct core_threads *threads, uint64_t ident)
{
	const struct core_thread_index *entry = find_thread(threads, ident);

	return entry ? &threads->core->notes.threads[entry->thread] : NULL;
}
