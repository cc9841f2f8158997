/* SPDX-License-Identifier: MIT */
#include "sampler/native/merged_stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"

/*
 * Limit on the activations that are skipped, each after a search of all C frames, whose order is
 * not relied on (signals have stacks of their own). Activations after that are not placed.
 */
enum { MAX_SKIPPED_ACTIVATIONS = 1024 };

/* Precedes the name of a trampoline's function; a colon and the file's name follow. */
static const char prefix[] = "py::";

/*
 * Trampolines begin at multiples of this: Py_TRAMPOLINE_CODE_ALIGNMENT of the architectures that
 * define one.
 */
enum { ALIGNMENT_BYTES = 16 };

static const struct frame_detail no_detail = {.column = -1, .end_line = -1, .end_column = -1};

/* The value of activation.native without a C frame. */
#define NOT_FOUND UINT32_MAX

/* The Python frames of one call of the loop: frames [first, end) of the sample. */
struct activation {
	uint32_t first;
	uint32_t end;
	uint32_t native; /* index of its C frame */
};

struct merge {
	struct stack_merger *merger;
	const struct sample *sample;
	const struct native_stack *native;
	struct activation *activations; /* outermost first */
	uint32_t nr_activations;
	struct merged_stack stack; /* with room for all frames */
	bool has_gap;		   /* its innermost frame is a gap */
	bool lacks_functions;	   /* a function could not be made: out of memory */
};

/* Activations. */

/*
 * Place activations by their addresses, from the innermost one outwards. An activation without a
 * C frame, such as one of a suspended greenlet's stack, is skipped.
 */
static void place_by_address(struct merge *merge)
{
	const struct native_frame *native_frames = merge->native->frames;
	const uint32_t nr_native_frames = merge->native->nr_frames;
	uint32_t next = 0;
	uint32_t nr_left = MAX_SKIPPED_ACTIVATIONS;

	for (uint32_t i = merge->nr_activations; nr_left && i-- > 0;) {
		struct activation *activation = &merge->activations[i];
		const uint64_t addr = merge->sample->details[activation->first].entry_addr;
		uint32_t native = next;

		/*
		 * A frame without a known end holds nothing: the address may belong to a frame
		 * after a gap.
		 */
		while (native < nr_native_frames && (addr < native_frames[native].sp_addr ||
						     addr >= native_frames[native].cfa_addr))
			native++;
		if (native == nr_native_frames) {
			nr_left--;
			continue;
		}
		activation->native = native;
		next = native + 1;
	}
}

/* A compiler may split the loop into parts, whose names have a suffix. */
static bool is_loop(const struct native_frame *native)
{
	return native->function && strncmp(native->function->qualname, MERGED_STACK_LOOP,
					   strlen(MERGED_STACK_LOOP)) == 0;
}

/*
 * Place activations by counting functions named like the loop. There may be one more loop than
 * activations: the innermost one is just being called, or about to return. If a gap hides the
 * outer loops the inner ones can still be counted; with a whole stack any other difference proves
 * nothing.
 */
static void place_by_count(struct merge *merge)
{
	const struct native_stack *native = merge->native;
	uint32_t activation = merge->nr_activations;
	uint32_t nr_loops = 0;
	uint32_t nr_idle = 0;

	for (uint32_t i = 0; i < native->nr_frames; i++)
		nr_loops += is_loop(&native->frames[i]);
	if (native->is_whole && nr_loops == merge->nr_activations + 1)
		nr_idle = 1;
	else if (native->is_whole ? nr_loops != merge->nr_activations
				  : nr_loops > merge->nr_activations)
		return;
	for (uint32_t i = 0; i < native->nr_frames && activation > 0; i++) {
		if (!is_loop(&native->frames[i]))
			continue;
		if (nr_idle)
			nr_idle--;
		else
			merge->activations[--activation].native = i;
	}
}

/* Trampolines. */

/* The text after a prefix; NULL: the text lacks the prefix, or is NULL. */
static const char *after_prefix(const char *text, const char *start)
{
	const size_t length = strlen(start);

	return text && strncmp(text, start, length) == 0 ? text + length : NULL;
}

bool trampoline_is_name(const char *name)
{
	return after_prefix(name, prefix) != NULL;
}

/* Whether a native frame is the trampoline that called the activation's loop. */
static bool is_trampoline_of(const struct merge *merge, uint32_t native,
			     const struct activation *activation)
{
	const struct native_frame *frame = &merge->native->frames[native];
	const struct function *python = merge->sample->frames[activation->first].function;
	const char *rest;

	if (!frame->trampoline_addr || native != activation->native + 1 ||
	    python->kind != FUNCTION_PYTHON)
		return false;
	if (!frame->function)
		return true;
	rest = after_prefix(frame->function->qualname, prefix);
	rest = after_prefix(after_prefix(rest, python->qualname), ":");
	return rest && strcmp(rest, python->path) == 0;
}

static size_t trampoline_index(remote_addr addr)
{
	return addr / ALIGNMENT_BYTES % MERGED_STACK_TRAMPOLINES;
}

/*
 * The function for the trampoline at addr, with the name that CPython would write if the function
 * that it calls is known. NULL: out of memory.
 */
static const struct function *trampoline_function(const struct stack_merger *merger,
						  remote_addr addr)
{
	const size_t index = trampoline_index(addr);
	const struct function *python = merger->trampolines[index].python;
	cleanup_free char *name = NULL;

	if (!python || merger->trampolines[index].addr != addr)
		return sampler_function(merger->sampler, FUNCTION_JIT, MERGED_STACK_TRAMPOLINE, "");
	if (asprintf(&name, "%s%s:%s", prefix, python->qualname, python->path) < 0) {
		name = NULL; /* its value is undefined now */
		return NULL;
	}
	return sampler_function(merger->sampler, FUNCTION_JIT, name, "");
}

/* Merging. */

static void append(struct merge *merge, struct frame frame, const struct frame_detail *detail)
{
	struct merged_stack *stack = &merge->stack;

	merge->lacks_functions = merge->lacks_functions || !frame.function;
	merge->has_gap = false;
	stack->frames[stack->nr_frames] = frame;
	stack->details[stack->nr_frames++] = *detail;
}

/* Adjacent gaps are merged. */
static void append_gap(struct merge *merge)
{
	if (merge->has_gap)
		return;
	append(merge,
	       (struct frame){.function = sampler_function(merge->merger->sampler, FUNCTION_NATIVE,
							   MERGED_STACK_GAP, "")},
	       &no_detail);
	merge->has_gap = true;
}

static void append_native(struct merge *merge, const struct native_frame *native)
{
	struct frame_detail detail = no_detail;
	struct frame frame = {.function = native->function};

	if (!frame.function)
		frame.function = trampoline_function(merge->merger, native->trampoline_addr);
	detail.addr = native->pc_addr;
	append(merge, frame, &detail);
	merge->stack.runs_executor = merge->stack.runs_executor || native->is_executor;
}

/*
 * Append everything, outermost first. The Python frames of an activation replace its C frame. An
 * activation without one goes where the C frames so far end, with a gap on each side.
 */
static void append_all(struct merge *merge)
{
	const struct native_stack *native = merge->native;
	struct stack_merger *merger = merge->merger;
	uint32_t nr_left = native->nr_frames; /* not appended yet: the inner ones */

	for (uint32_t i = 0; i < merge->nr_activations; i++) {
		const struct activation *activation = &merge->activations[i];
		const struct frame *frames = merge->sample->frames;
		const bool is_found = activation->native != NOT_FOUND;

		if (nr_left == native->nr_frames && !native->is_whole && is_found)
			append_gap(merge);
		while (is_found && nr_left > activation->native + 1) {
			const struct native_frame *frame = &native->frames[--nr_left];

			if (is_trampoline_of(merge, nr_left, activation)) {
				const size_t index = trampoline_index(frame->trampoline_addr);

				/* The latest use counts. */
				merger->trampolines[index].addr = frame->trampoline_addr;
				merger->trampolines[index].python =
					frames[activation->first].function;
				if (!merger->keeps_trampolines)
					continue;
			}
			append_native(merge, frame);
		}
		if (is_found)
			nr_left--;
		else if (nr_left < native->nr_frames)
			append_gap(merge);
		for (uint32_t frame = activation->first; frame < activation->end; frame++)
			append(merge, frames[frame], &merge->sample->details[frame]);
		merge->stack.runs_executor = false;
		if (!is_found)
			append_gap(merge);
	}
	if (nr_left == native->nr_frames && !native->is_whole)
		append_gap(merge);
	while (nr_left > 0)
		append_native(merge, &native->frames[--nr_left]);
	for (uint32_t i = native->nr_kernel; i-- > 0;)
		append(merge, (struct frame){.function = native->kernel[i]}, &no_detail);
}

int merged_stack_make(struct stack_merger *merger, const struct sample *sample,
		      const struct native_stack *native, struct merged_stack *ret_stack)
{
	cleanup_free struct activation *activations =
		reallocarray(NULL, sample->nr_frames + 1ull, sizeof(*activations));
	struct merge merge = {
		.merger = merger,
		.sample = sample,
		.native = native,
		.activations = activations,
	};
	bool has_addresses = false; /* the interpreter has the addresses of its loops */
	uint64_t max_frames;

	if (!activations)
		return -ENOMEM;
	for (uint32_t i = 0; i < sample->nr_frames; i++) {
		if (i == 0 || sample->details[i].is_entry)
			activations[merge.nr_activations++] =
				(struct activation){.first = i, .native = NOT_FOUND};
		activations[merge.nr_activations - 1].end = i + 1;
		has_addresses = has_addresses || sample->details[i].entry_addr;
	}
	/* At most a gap before and after each activation, and one at the end. */
	max_frames = (uint64_t)sample->nr_frames + native->nr_frames + native->nr_kernel +
		     2ull * merge.nr_activations + 1;
	merge.stack.frames = reallocarray(NULL, max_frames, sizeof(*merge.stack.frames));
	merge.stack.details = reallocarray(NULL, max_frames, sizeof(*merge.stack.details));
	if (merge.stack.frames && merge.stack.details) {
		if (has_addresses)
			place_by_address(&merge);
		else
			place_by_count(&merge);
		append_all(&merge);
	}
	if (!merge.stack.details || !merge.stack.frames || merge.lacks_functions) {
		merged_stack_done(&merge.stack);
		return -ENOMEM;
	}
	*ret_stack = merge.stack;
	return 0;
}

void merged_stack_done(struct merged_stack *stack)
{
	free(stack->frames);
	free(stack->details);
}
