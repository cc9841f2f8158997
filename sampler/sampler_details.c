/* SPDX-License-Identifier: MIT */
/* What careful looks tell of each frame of a stack beside its function and line. */
#include <errno.h>
#include <stdlib.h>

#include "procmem/cleanup.h"
#include "sampler/sampler_state.h"

static const struct frame_detail unknown = {.column = -1, .end_line = -1, .end_column = -1};

/*
 * Say of the frame at index of the list whether the loop was called for it. Before 3.11 it is
 * for each; in 3.11 the frame says so; since then a frame that is its caller's lies on the C
 * stack (_PyInterpreterFrame entry_frame of _PyEval_EvalFrameDefault(), Python/ceval.c), and
 * is not in the list.
 */
static void tell_entry(const struct code_cache *codes, const struct frame_list *list,
		       uint32_t index, struct frame_detail *detail)
{
	const struct py_offsets *offsets = &codes->build->offsets;
	const struct walked_frame *walked = &list->frames[index];
	uint8_t is_entry;

	if (codes->build->traits.frames_on_heap) {
		detail->is_entry = true;
	} else if (offsets->frame.is_entry != OFFSET_ABSENT) {
		detail->is_entry =
			!remote_memory_read(codes->memory, walked->addr + offsets->frame.is_entry,
					    &is_entry, sizeof(is_entry)) &&
			is_entry;
	} else if (!index || walked->previous != list->frames[index - 1].addr) {
		detail->is_entry = true;
		detail->entry_addr = walked->previous;
	}
}

struct frame_detail frame_detail_of(const struct code_cache *codes,
				    const struct walked_frame *walked)
{
	const struct linetable_position position =
		code_position(codes, walked->code, walked->instr_ptr);

	return (struct frame_detail){
		.column = position.column,
		.end_line = position.end_line,
		.end_column = position.end_column,
	};
}

/* Fill the detail of one frame. 0, or an error of variable_reader_read(). */
static int fill_one(const struct detail_sink *self, const struct walked_frame *walked,
		    struct frame_detail *detail)
{
	*detail = frame_detail_of(self->codes, walked);
	tell_entry(self->codes, self->list, (uint32_t)(walked - self->list->frames), detail);
	return self->variables ? variable_reader_read(self->variables, walked, detail) : 0;
}

/* One for each frame of the sample: those of the list that people see, and the collector's. */
static int fill(const struct detail_sink *self, const struct sample *sample,
		struct frame_detail *details)
{
	const struct frame_list *list = self->list;
	uint32_t listed = 0;
	int err = 0;

	for (uint32_t i = 0; i < sample->nr_frames; i++) {
		details[i] = unknown;
		if (sample->frames[i].function->kind == FUNCTION_COLLECTOR)
			continue;
		while (listed < list->nr_frames && !frame_visible(list, listed))
			listed++;
		if (!err && listed < list->nr_frames)
			err = fill_one(self, &list->frames[listed++], &details[i]);
	}
	return err;
}

static int add_details(struct sample_sink *sink, const struct sample *sample)
{
	const struct detail_sink *self = (const struct detail_sink *)sink;
	cleanup_free struct frame_detail *details = NULL;
	struct sample detailed = *sample;
	int err;

	details = reallocarray(NULL, sample->nr_frames + 1ull, sizeof(*details));
	if (!details)
		return -ENOMEM;
	err = fill(self, sample, details);
	detailed.details = details;
	if (!err)
		err = self->next->ops->sample(self->next, &detailed);
	for (uint32_t i = 0; i < sample->nr_frames; i++)
		frame_detail_free_variables(&details[i]);
	return err;
}

void detail_sink_init(struct detail_sink *sink, const struct code_cache *codes,
		      const struct frame_list *list, struct variable_reader *variables,
		      struct sample_sink *next)
{
	static const struct sample_sink_ops ops = {.sample = add_details};

	*sink = (struct detail_sink){
		.sink.ops = &ops,
		.codes = codes,
		.list = list,
		.variables = variables,
		.next = next,
	};
}
