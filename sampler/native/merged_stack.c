/* SPDX-License-Identifier: MIT */
#include "sampler/native/merged_stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/native/trampoline.h"

/*
 * So many activations are passed over, each for a look at all C frames, the order of which is
 * not relied on (signals have stacks of their own); those that come behind are not placed.
 */
enum { MAX_PASSED_OVER = 1024 };

/* What activation.native is if its C frame was not found. */
#define NOT_FOUND UINT32_MAX

/* The Python frames of one call of the loop: [first, end) of the sample's. */
struct activation {
	uint32_t first;
	uint32_t end;
	uint32_t native; /* index of its C frame */
};

struct merge {
	const struct sample *sample;
	const struct native_frame *natives;
	uint32_t nr_natives;
	bool is_whole;
	struct activation *activations; /* outermost first */
	uint32_t nr_activations;
	struct merged_frame *merged;
	uint32_t nr_merged;
};

/* Activations. */

/*
 * By their addresses, from the innermost one outwards. An activation that is in no C frame,
 * as one of a stack that was put aside (greenlets), is passed over.
 */
static void place_by_address(struct merge *merge)
{
	uint32_t next = 0;
	uint32_t nr_left = MAX_PASSED_OVER;

	for (uint32_t i = merge->nr_activations; nr_left && i-- > 0;) {
		struct activation *activation = &merge->activations[i];
		const uint64_t addr = merge->sample->details[activation->first].entry_addr;
		uint32_t native = next;

		/* One whose end is not known holds nothing: it may be of a frame behind a hole. */
		while (native < merge->nr_natives && (addr < merge->natives[native].sp_addr ||
						      addr >= merge->natives[native].cfa_addr))
			native++;
		if (native == merge->nr_natives) {
			nr_left--;
			continue;
		}
		activation->native = native;
		next = native + 1;
	}
}

/* A compiler may split it: into parts with a suffix. */
static bool is_loop(const struct native_frame *native)
{
	return native->function && strncmp(native->function->qualname, MERGED_STACK_LOOP,
					   strlen(MERGED_STACK_LOOP)) == 0;
}

/*
 * By the names of their functions. There may be one loop more than activations, the innermost
 * one: it is being called, or about to return. Where a hole hides the outer ones, the inner ones
 * are there still; fewer than that say nothing.
 */
static void place_by_count(struct merge *merge)
{
	uint32_t activation = merge->nr_activations;
	uint32_t nr_loops = 0;
	uint32_t nr_idle = 0;

	for (uint32_t i = 0; i < merge->nr_natives; i++)
		nr_loops += is_loop(&merge->natives[i]);
	if (merge->is_whole && nr_loops == merge->nr_activations + 1)
		nr_idle = 1;
	else if (merge->is_whole ? nr_loops != merge->nr_activations
				 : nr_loops > merge->nr_activations)
		return;
	for (uint32_t i = 0; i < merge->nr_natives && activation > 0; i++) {
		if (!is_loop(&merge->natives[i]))
			continue;
		if (nr_idle)
			nr_idle--;
		else
			merge->activations[--activation].native = i;
	}
}

/* Merging. */

static void append(struct merge *merge, enum merged_kind kind, uint32_t index)
{
	merge->merged[merge->nr_merged++] = (struct merged_frame){.kind = kind, .index = index};
}

/* Whether a native frame is the trampoline of the activation, whose loop it has called. */
static bool is_trampoline_of(const struct merge *merge, uint32_t native,
			     const struct activation *activation)
{
	const struct native_frame *frame = &merge->natives[native];
	const struct function *python = merge->sample->frames[activation->first].function;

	return frame->trampoline_addr && native == activation->native + 1 &&
	       python->kind == FUNCTION_PYTHON &&
	       (!frame->function || trampoline_calls(frame->function, python));
}

/* One hole is enough where two would stand side by side. */
static void append_hole(struct merge *merge)
{
	if (!merge->nr_merged || merge->merged[merge->nr_merged - 1].kind != MERGED_HOLE)
		append(merge, MERGED_HOLE, 0);
}

/*
 * Append all, outermost first: the Python frames of an activation stand for its C frame. Those
 * that have none come where the C frames before it end, with holes around them.
 */
static void append_all(struct merge *merge)
{
	uint32_t nr_left = merge->nr_natives; /* those that are not appended: the inner ones */

	for (uint32_t i = 0; i < merge->nr_activations; i++) {
		const struct activation *activation = &merge->activations[i];
		const bool is_found = activation->native != NOT_FOUND;

		if (nr_left == merge->nr_natives && !merge->is_whole && is_found)
			append_hole(merge);
		while (is_found && nr_left > activation->native + 1) {
			nr_left--;
			append(merge,
			       is_trampoline_of(merge, nr_left, activation) ? MERGED_TRAMPOLINE
									    : MERGED_NATIVE,
			       nr_left);
		}
		if (is_found)
			nr_left--;
		else if (nr_left < merge->nr_natives)
			append_hole(merge);
		for (uint32_t frame = activation->first; frame < activation->end; frame++)
			append(merge, MERGED_PYTHON, frame);
		if (!is_found)
			append_hole(merge);
	}
	if (nr_left == merge->nr_natives && !merge->is_whole)
		append_hole(merge);
	while (nr_left > 0)
		append(merge, MERGED_NATIVE, --nr_left);
}

int merged_stack_make(const struct sample *sample, const struct native_frame *natives,
		      uint32_t nr_natives, bool is_whole, struct merged_frame **ret_merged,
		      uint32_t *ret_nr_merged)
{
	cleanup_free struct activation *activations =
		reallocarray(NULL, sample->nr_frames + 1ull, sizeof(*activations));
	struct merge merge = {
		.sample = sample,
		.natives = natives,
		.nr_natives = nr_natives,
		.is_whole = is_whole,
		.activations = activations,
	};
	bool tells_addresses = false; /* the interpreter, where its loops are */

	/* There is a hole before and behind each activation at most, and one at the end. */
	merge.merged = reallocarray(NULL, 3ull * sample->nr_frames + nr_natives + 1,
				    sizeof(*merge.merged));
	if (!activations || !merge.merged) {
		free(merge.merged);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < sample->nr_frames; i++) {
		if (i == 0 || sample->details[i].is_entry)
			activations[merge.nr_activations++] =
				(struct activation){.first = i, .native = NOT_FOUND};
		activations[merge.nr_activations - 1].end = i + 1;
		tells_addresses = tells_addresses || sample->details[i].entry_addr;
	}
	if (tells_addresses)
		place_by_address(&merge);
	else
		place_by_count(&merge);
	append_all(&merge);
	*ret_merged = merge.merged;
	*ret_nr_merged = merge.nr_merged;
	return 0;
}

bool merged_stack_runs_executor(const struct merged_frame *merged, uint32_t nr_merged,
				const struct native_frame *natives)
{
	for (uint32_t i = nr_merged; i-- > 0 && merged[i].kind != MERGED_PYTHON;)
		if (merged[i].kind == MERGED_NATIVE && natives[merged[i].index].is_executor)
			return true;
	return false;
}
