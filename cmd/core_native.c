/* SPDX-License-Identifier: MIT */
#include "cmd/core_native.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/core_threads.h"
#include "procmem/cleanup.h"
#include "sampler/merged_stack.h"

/* Room for "?? (", the last part of a path, an offset. */
enum { UNNAMED_MAX_BYTES = 320 };

/* The C stack of one thread, of which native->frames has the addresses. */
struct native_stack {
	struct native_frame *natives; /* innermost first; owned */
	size_t nr;
	bool is_whole;
};

/* Names. */

/* The name of a function that has none: "?? (libc.so.6+0x1234)". */
static void name_by_place(const struct native_name *found, char name[UNNAMED_MAX_BYTES])
{
	const char *slash = strrchr(found->path, '/');
	const char *module = slash ? slash + 1 : found->path;

	(void)snprintf(name, UNNAMED_MAX_BYTES, "?? (%.255s%s%#llx)", module, module[0] ? "+" : "",
		       (unsigned long long)found->offset);
}

static const struct function *function_of(struct core_native *native,
					  const struct unwind_frame *frame)
{
	struct native_name found;
	char unnamed[UNNAMED_MAX_BYTES];
	const char *name = found.name;

	native_names_find(native->names, frame->lookup_addr, &found);
	if (frame->is_signal_frame) {
		name = CORE_NATIVE_SIGNAL;
	} else if (!found.name[0]) {
		name_by_place(&found, unnamed);
		name = unnamed;
	}
	return sampler_function(native->sampler, FUNCTION_NATIVE, name, found.path);
}

/* Stacks. */

/* How many frames the next stack may have. */
static size_t max_frames(const struct core_native *native)
{
	if (!native->nr_frames_left)
		return 1;
	return native->nr_frames_left < CORE_NATIVE_MAX_FRAMES ? native->nr_frames_left
							       : CORE_NATIVE_MAX_FRAMES;
}

/* Unwind a thread's stack. 0 and a stack with at least one frame, or -ENOMEM. */
static int take_stack(struct core_native *native, const struct core_thread *thread,
		      struct native_stack *ret_stack)
{
	const struct registers registers = registers_of_user(thread->registers);
	cleanup_free struct native_frame *natives = NULL;
	size_t nr;
	int err;

	stack_window_forget(&native->window);
	err = unwind_stack(native->modules, &native->window, &registers, native->frames,
			   max_frames(native), &nr);
	native->nr_frames_left -= nr < native->nr_frames_left ? nr : native->nr_frames_left;
	native->nr_stacks++;
	native->nr_holed += err != 0;
	natives = reallocarray(NULL, nr, sizeof(*natives));
	if (!natives)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct unwind_frame *frame = &native->frames[i];

		natives[i] = (struct native_frame){
			.sp_addr = frame->sp,
			.cfa_addr = frame->cfa,
			.function = function_of(native, frame),
		};
		if (!natives[i].function)
			return -ENOMEM;
	}
	*ret_stack =
		(struct native_stack){.natives = take_ptr(natives), .nr = nr, .is_whole = !err};
	return 0;
}

/* Samples. */

static const struct frame_detail no_detail = {.column = -1, .end_line = -1, .end_column = -1};

/* One frame of the merged stack. 0 or -ENOMEM. */
static int make_frame(struct core_native *native, const struct sample *sample,
		      const struct native_stack *stack, const struct merged_frame *merged,
		      struct frame *ret_frame, struct frame_detail *ret_detail)
{
	*ret_detail = no_detail;
	*ret_frame = (struct frame){.function = NULL};
	switch (merged->kind) {
	case MERGED_PYTHON:
		*ret_frame = sample->frames[merged->index];
		*ret_detail = sample->details[merged->index];
		break;
	case MERGED_NATIVE:
		ret_frame->function = stack->natives[merged->index].function;
		ret_detail->addr = native->frames[merged->index].pc;
		break;
	case MERGED_HOLE:
		ret_frame->function =
			sampler_function(native->sampler, FUNCTION_NATIVE, CORE_NATIVE_HOLE, "");
		break;
	}
	return ret_frame->function ? 0 : -ENOMEM;
}

static int hand_on(struct core_native *native, const struct sample *sample,
		   const struct native_stack *stack)
{
	cleanup_free struct merged_frame *merged = NULL;
	cleanup_free struct frame *frames = NULL;
	cleanup_free struct frame_detail *details = NULL;
	struct sample with_natives = *sample;
	uint32_t nr;
	int err;

	err = merged_stack_make(sample, stack->natives, (uint32_t)stack->nr, stack->is_whole,
				&merged, &nr);
	if (err)
		return err;
	frames = reallocarray(NULL, nr, sizeof(*frames));
	details = reallocarray(NULL, nr, sizeof(*details));
	if (!frames || !details)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < nr; i++)
		err = make_frame(native, sample, stack, &merged[i], &frames[i], &details[i]);
	with_natives.frames = frames;
	with_natives.details = details;
	with_natives.nr_frames = nr;
	with_natives.nr_unchanged = 0;
	return err ? err : native->next->ops->sample(native->next, &with_natives);
}

static int core_native_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct core_native *native = (struct core_native *)sink;
	const struct core_thread *thread =
		core_threads_find(native->threads, sample->thread->ident);
	struct native_stack stack;
	int err;

	if (thread)
		native->has_sample[thread - native->core->notes.threads] = true;
	/* Without a C stack there is nothing to say of it, not even where there are holes. */
	if (!thread || !sample->details || (sample->flags & SAMPLE_C_STACK_MISSING))
		return native->next->ops->sample(native->next, sample);
	err = take_stack(native, thread, &stack);
	if (err)
		return err;
	err = hand_on(native, sample, &stack);
	free(stack.natives);
	return err;
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
		struct native_stack stack;

		if (native->has_sample[i])
			continue;
		err = take_stack(native, &notes->threads[i], &stack);
		if (err)
			return err;
		err = hand_on(native, &sample, &stack);
		free(stack.natives);
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
	int err;

	*native = (struct core_native){
		.sink.ops = &ops,
		.next = next,
		.core = core,
		.threads = threads,
		.sampler = sampler,
	};
	native->nr_frames_left = CORE_NATIVE_MAX_KEPT_FRAMES;
	native->frames = reallocarray(NULL, CORE_NATIVE_MAX_FRAMES, sizeof(*native->frames));
	native->has_sample = calloc(core->notes.nr_threads + 1, sizeof(*native->has_sample));
	if (!native->frames || !native->has_sample)
		return -ENOMEM;
	err = stack_window_init(&native->window, core_memory(core));
	if (!err)
		err = unwind_modules_create(core_memory(core), &core->maps, images,
					    &native->modules);
	return err ? err : native_names_create(&core->maps, images, &native->names);
}

void core_native_done(struct core_native *native)
{
	unwind_modules_destroy(native->modules);
	native_names_destroy(native->names);
	stack_window_done(&native->window);
	free(native->frames);
	free(native->has_sample);
}
