/* SPDX-License-Identifier: MIT */
#include "cmd/core/core_native.h"

#include <errno.h>
#include <stdlib.h>

#include "cmd/core/core_threads.h"

/* Returns how many frames the next stack may have. */
static size_t max_frames(const struct core_native *native)
{
	if (!native->nr_frames_left)
		return 1;
	return native->nr_frames_left < NATIVE_STACKS_MAX_FRAMES ? native->nr_frames_left
								 : NATIVE_STACKS_MAX_FRAMES;
}

/* Emit a thread's sample with its C stack. Returns 0, -ENOMEM, or what next returned. */
static int emit_with_c_frames(struct core_native *native, const struct core_thread *thread,
			      const struct sample *sample)
{
	const struct registers registers = registers_of_user(thread->registers);
	struct native_stacks *stacks = &native->stacks;

	stack_window_forget(&native->window);
	native_stacks_unwind(stacks, &registers, &native->window, max_frames(native));
	native->nr_frames_left -= stacks->nr_frames < native->nr_frames_left
					  ? stacks->nr_frames
					  : native->nr_frames_left;
	native->nr_stacks++;
	native->nr_with_gaps += !stacks->is_whole;
	return native_stacks_emit(stacks, sample, native->next);
}

static const struct frame_detail no_detail = {.column = -1, .end_line = -1, .end_column = -1};

static int core_native_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct core_native *native = (struct core_native *)sink;
	const struct core_thread *thread =
		core_threads_find(native->threads, sample->thread->ident);

	if (thread)
		native->has_sample[thread - native->core->notes.threads] = true;
	/* Without a C stack there is nothing to add, not even a gap. */
	if (!thread || !sample->details || (sample->flags & SAMPLE_C_STACK_MISSING))
		return native->next->ops->sample(native->next, sample);
	return emit_with_c_frames(native, thread, sample);
}

static int core_native_task(struct sample_sink *sink, const struct task_sample *task)
{
	const struct core_native *native = (const struct core_native *)sink;

	return native->next->ops->task(native->next, task);
}

int core_native_add_unknown(struct core_native *native)
{
	const struct core_notes *notes = &native->core->notes;
	int err = 0;

	for (size_t i = 0; !err && i < notes->nr_threads; i++) {
		const struct sample_thread thread = {.tid = notes->threads[i].tid};
		const struct frame none = {.line = 0};
		const struct sample sample = {
			.thread = &thread,
			.frames = &none,
			.details = &no_detail,
			.flags = core_thread_flags(native->core, i),
		};

		if (native->has_sample[i])
			continue;
		err = emit_with_c_frames(native, &notes->threads[i], &sample);
		native->nr_added++;
	}
	return err;
}

int core_native_init(struct core_native *native, struct core *core,
		     const struct core_threads *threads, struct image_source *images,
		     struct sampler *sampler, struct sample_sink *next)
{
	static const struct sample_sink_ops ops = {
		.sample = core_native_sample,
		.task = core_native_task,
	};
	struct native_stacks_options options = {
		.memory = core_memory(core),
		.maps = &core->maps,
		.images = images,
		.sampler = sampler,
		.max_frames = NATIVE_STACKS_MAX_FRAMES,
	};
	int err;

	*native = (struct core_native){
		.sink.ops = &ops,
		.next = next,
		.core = core,
		.threads = threads,
	};
	native->nr_frames_left = CORE_NATIVE_MAX_KEPT_FRAMES;
	native->has_sample = calloc(core->notes.nr_threads + 1, sizeof(*native->has_sample));
	if (!native->has_sample)
		return -ENOMEM;
	err = jit_frames_create_of_core(core_memory(core), &core->maps, images, &native->jit);
	if (!err)
		err = stack_window_init(&native->window, core_memory(core));
	options.jit = native->jit;
	return err ? err : native_stacks_init(&native->stacks, &options);
}

void core_native_done(struct core_native *native)
{
	native_stacks_done(&native->stacks);
	jit_frames_destroy(native->jit);
	stack_window_done(&native->window);
	free(native->has_sample);
}
