/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/frames/frame_list.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"

enum { FIRST_MAX_FRAMES = 64 };

void frame_list_done(struct frame_list *list)
{
	if (!list)
		return;
	free(list->frames);
	free(list->steps);
	*list = (struct frame_list){0};
}

/* From the frame at that index on the list is no longer that of the last walk. */
static void list_change(struct frame_list *list, uint32_t index)
{
	list->changed = true;
	if (list->nr_unchanged > index)
		list->nr_unchanged = index;
}

static bool frames_equal(const struct walked_frame *a, const struct walked_frame *b)
{
	return a->addr == b->addr && a->code == b->code && a->code_nr_loads == b->code_nr_loads &&
	       a->executable == b->executable && a->instr_ptr == b->instr_ptr &&
	       a->hidden == b->hidden;
}

int frame_list_append(struct frame_list *list, const struct walked_frame *frame)
{
	struct walked_frame *frames;

	if (list->nr_frames >= MAX_FRAMES)
		return -E2BIG;
	frames = array_reserve(list->frames, list->nr_frames + 1, &list->max_frames,
			       sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	list->frames = frames;
	if (!list->changed && list->nr_frames < list->nr_known &&
	    frames_equal(&list->frames[list->nr_frames], frame))
		list->nr_unchanged = list->nr_frames + 1;
	else
		list_change(list, list->nr_frames);
	list->frames[list->nr_frames] = *frame;
	list->frames[list->nr_frames].nr_begun =
		(list->nr_frames ? list->frames[list->nr_frames - 1].nr_begun : 0) + !frame->hidden;
	list->nr_frames++;
	if (list->nr_known < list->nr_frames)
		list->nr_known = list->nr_frames;
	return 0;
}

void frame_list_fit(struct frame_list *list, uint32_t nr_frames)
{
	uint32_t max_frames = nr_frames < FIRST_MAX_FRAMES / 2 ? FIRST_MAX_FRAMES : nr_frames * 2;
	struct walked_frame *frames;

	/* A walk over shims alone, or one that was given up, has steps but no frames. */
	if (list->max_steps / 4 >= max_frames) {
		free(list->steps);
		list->steps = NULL;
		list->nr_steps = list->max_steps = 0;
	}
	if (list->nr_frames > max_frames || list->max_frames / 4 < max_frames)
		return;
	frames = realloc(list->frames, max_frames * sizeof(*frames));
	if (!frames)
		return;
	list->frames = frames;
	list->max_frames = max_frames;
	if (list->nr_known > max_frames)
		list->nr_known = max_frames;
}

void frame_list_use_codes(const struct frame_list *list)
{
	for (uint32_t i = 0; i < list->nr_known; i++)
		if (list->frames[i].code)
			list->frames[i].code->in_use = true;
}

void frame_list_begin(struct frame_list *list, uint32_t nr_kept)
{
	list->nr_frames = nr_kept;
	list->nr_unchanged = nr_kept;
	list->changed = false;
}

void frame_list_reverse(struct frame_list *list)
{
	for (uint32_t i = 0, j = list->nr_frames; i + 1 < j; i++) {
		struct walked_frame swapped = list->frames[i];

		list->frames[i] = list->frames[--j];
		list->frames[j] = swapped;
	}
}

uint32_t frame_list_find(const struct frame_list *list, remote_addr addr, uint32_t max_frames)
{
	uint32_t least = list->nr_frames > max_frames ? list->nr_frames - max_frames : 0;

	for (uint32_t i = list->nr_frames; i > least; i--)
		if (list->frames[i - 1].addr == addr)
			return i;
	return 0;
}

int frame_list_add_step(struct frame_list *list, remote_addr addr, const struct frame_words *words)
{
	struct frame_step *steps =
		array_reserve(list->steps, list->nr_steps + 1, &list->max_steps, sizeof(*steps));

	if (!steps)
		return -ENOMEM;
	list->steps = steps;
	steps[list->nr_steps++] = (struct frame_step){.addr = addr, .words = *words};
	return 0;
}
