/* SPDX-License-Identifier: MIT */
#include "cmd/dump/dump_native.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "procmem/sched/run_count.h"

/* Limit on the looks at a thread that moves meanwhile. */
enum { MAX_LOOKS = 20 };

/* Read where the thread waits, before its Python frames are read. */
static void dump_native_look(struct sample_sink *sink, const struct sample_thread *thread)
{
	struct dump_native *native = (struct dump_native *)sink;

	native->nr_looks++;
	native->waits =
		thread->tid && wait_place_read(native->process, thread->tid,
					       run_count_read_once(native->process, thread->tid),
					       &native->place) == 0;
}

/* Unwind a waiting thread. Returns -EAGAIN if it has moved. */
static int unwind_waiting(struct dump_native *native, const struct sample *sample)
{
	cleanup_free struct loop_entry *entries =
		calloc(sample->nr_frames + 1ull, sizeof(*entries));
	int err;

	if (!entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < sample->nr_frames; i++)
		entries[i].c_addr = sample->details[i].entry_addr;
	jit_frames_set_time(native->jit, clock_now_ns());
	native_stacks_unwind_waiting(&native->stacks, &native->place, entries, sample->nr_frames);
	err = kernel_frames_set_waiting(&native->kernel, sample->thread->tid);
	if (err)
		return err;
	return wait_place_check(native->process, sample->thread->tid, &native->place) ? -EAGAIN : 0;
}

static int emit_without_c_frames(struct dump_native *native, const struct sample *sample)
{
	native->nr_unknown++;
	return native->next->ops->sample(native->next, sample);
}

/* Emit the frames of a copy, which is a moment older but of one instant. */
static int emit_copied_stack(struct dump_native *native, const struct sample *sample)
{
	const struct running_stack *stack = running_stacks_find(&native->running, sample->thread);
	struct sample copied = *sample;

	if (!stack)
		return emit_without_c_frames(native, sample);
	copied.frames = stack->frames;
	copied.details = stack->details;
	copied.nr_frames = stack->nr_frames;
	copied.flags &= ~(uint32_t)SAMPLE_UNPROVEN;
	copied.error = 0;
	return native->next->ops->sample(native->next, &copied);
}

static int dump_native_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct dump_native *native = (struct dump_native *)sink;
	int err;

	if (native->waits && sample->flags & SAMPLE_UNPROVEN)
		native->waits = false;
	err = native->waits ? unwind_waiting(native, sample) : 0;
	if (err == -EAGAIN && native->nr_looks < MAX_LOOKS)
		return err;
	native->nr_looks = 0;
	native->nr_threads++;
	if (err == -EAGAIN || !native->waits)
		return emit_copied_stack(native, sample);
	return err ? err : native_stacks_emit(&native->stacks, sample, native->next);
}

static int dump_native_task(struct sample_sink *sink, const struct task_sample *task)
{
	const struct dump_native *native = (const struct dump_native *)sink;

	return native->next->ops->task(native->next, task);
}

int dump_native_init(struct dump_native *native, struct target *target, struct sampler *sampler,
		     bool kernel_frames, struct sample_sink *next)
{
	static const struct sample_sink_ops ops = {
		.before_look = dump_native_look,
		.sample = dump_native_sample,
		.task = dump_native_task,
	};
	struct native_stacks_options options = {
		.memory = &target->live.memory,
		.maps = &target->maps,
		.images = &target->images.source,
		.sampler = sampler,
		.kernel = &native->kernel,
		.max_frames = NATIVE_STACKS_MAX_FRAMES,
	};
	int err;

	*native = (struct dump_native){.sink.ops = &ops, .next = next, .process = &target->process};
	err = kernel_frames ? kernel_frames_open(&native->kernel, &target->process, sampler,
						 &native->why_no_kernel)
			    : 0;
	if (!err)
		err = running_stacks_collect(&native->running, target, kernel_frames,
					     &native->why_no_native, &native->why_no_kernel);
	if (!err)
		err = jit_frames_create(&target->process, &target->live.memory, &native->jit);
	options.jit = native->jit;
	if (!err)
		err = native_stacks_init(&native->stacks, &options);
	return err;
}

void dump_native_done(struct dump_native *native)
{
	native_stacks_done(&native->stacks);
	jit_frames_destroy(native->jit);
	kernel_frames_close(&native->kernel);
	running_stacks_done(&native->running);
}
