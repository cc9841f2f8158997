/* SPDX-License-Identifier: MIT */
#include "cmd/dump/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/sched/run_count.h"

static void waits_before_look(struct sample_sink *sink, const struct sample_thread *thread)
{
	struct waits *waits = (struct waits *)sink;

	waits->has_before =
		thread->tid && thread_call_read(waits->process, thread->tid, &waits->before) == 0;
	if (waits->next->ops->before_look)
		waits->next->ops->before_look(waits->next, thread);
}

static bool is_same_call(const struct thread_call *a, const struct thread_call *b)
{
	return a->number == b->number &&
	       memcmp(a->arguments, b->arguments, sizeof(a->arguments)) == 0;
}

/* Read what a thread waits in, unless it runs or has ended. */
static void read_wait(const struct waits *waits, struct looked_thread *thread)
{
	/* Read before it is seen waiting, it cannot change until the thread runs. */
	const uint64_t nr_runs = run_count_read_once(waits->process, thread->tid);
	const int err = thread_call_read(waits->process, thread->tid, &thread->call);

	if (err == -EAGAIN || thread_wait_read(waits->process, thread->tid, &thread->wait) ||
	    thread->wait.state == 'R')
		return;
	thread->is_waiting = true;
	thread->nr_runs = err ? 0 : nr_runs;
	thread->has_call = !err && waits->has_before && is_same_call(&thread->call, &waits->before);
}

/* Keep what a thread did. Returns 0 or -ENOMEM. */
static int add(struct waits *waits, const struct sample *sample)
{
	struct looked_thread *threads = array_reserve(waits->threads, waits->nr_threads + 1,
						      &waits->max_threads, sizeof(*threads));
	struct looked_thread thread = {
		.tid = sample->thread->tid,
		.index = waits->nr_samples - 1,
		.ident = sample->thread->ident,
		.nr_locks = sample->nr_locks,
	};

	if (!threads)
		return -ENOMEM;
	waits->threads = threads;
	memcpy(thread.name, sample->thread->name, sizeof(thread.name));
	if (sample->nr_locks) {
		thread.locks = array_copy(sample->locks, sample->nr_locks, sizeof(*thread.locks));
		if (!thread.locks)
			return -ENOMEM;
	}
	read_wait(waits, &thread);
	threads[waits->nr_threads++] = thread;
	return 0;
}

static int waits_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct waits *waits = (struct waits *)sink;
	int err = waits->next->ops->sample(waits->next, sample);

	if (err)
		return err;
	waits->nr_samples++;
	return sample->thread->tid ? add(waits, sample) : 0;
}

static int waits_task(struct sample_sink *sink, const struct task_sample *task)
{
	struct waits *waits = (struct waits *)sink;

	return waits->next->ops->task(waits->next, task);
}

void waits_init(struct waits *waits, const struct process *process, struct sample_sink *next)
{
	static const struct sample_sink_ops ops = {
		.before_look = waits_before_look,
		.sample = waits_sample,
		.task = waits_task,
	};

	*waits = (struct waits){.sink.ops = &ops, .next = next, .process = process};
}

void waits_done(struct waits *waits)
{
	for (uint32_t i = 0; i < waits->nr_threads; i++)
		free(waits->threads[i].locks);
	free(waits->threads);
	waits->threads = NULL;
	waits->nr_threads = 0;
}
