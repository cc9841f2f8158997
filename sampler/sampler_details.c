/* SPDX-License-Identifier: MIT */
/* What a dump tells of each frame of a stack beside its function and line. */
#include <errno.h>
#include <stdlib.h>

#include "procmem/cleanup.h"
#include "sampler/python/loop_entries.h"
#include "sampler/sampler_state.h"

static const struct frame_detail unknown = {.column = -1, .end_line = -1, .end_column = -1};

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
		    const struct loop_entry *entry, struct frame_detail *detail)
{
	*detail = frame_detail_of(self->codes, walked);
	detail->is_entry = entry->is_entry;
	detail->entry_addr = entry->c_addr;
	return self->variables ? variable_reader_read(self->variables, walked, detail) : 0;
}

/*
 * The next frame of the list that people see, from *listed on, and the call of the loop that it
 * is the first to be seen of, if there is one. NULL: that was all.
 */
static const struct walked_frame *next_visible(const struct frame_list *list,
					       const struct loop_entry *entries, uint32_t *listed,
					       struct loop_entry *ret_entry)
{
	*ret_entry = (struct loop_entry){.is_entry = false};
	while (*listed < list->nr_frames) {
		const uint32_t index = (*listed)++;

		if (entries[index].is_entry)
			*ret_entry = entries[index];
		if (frame_visible(list, index))
			return &list->frames[index];
	}
	return NULL;
}

/* One for each frame of the sample: those of the list that people see, and the collector's. */
static int fill(const struct detail_sink *self, const struct sample *sample,
		const struct loop_entry *entries, struct frame_detail *details)
{
	uint32_t listed = 0;
	int err = 0;

	for (uint32_t i = 0; i < sample->nr_frames; i++) {
		const struct walked_frame *walked;
		struct loop_entry entry;

		details[i] = unknown;
		if (err || sample->frames[i].function->kind == FUNCTION_COLLECTOR)
			continue;
		walked = next_visible(self->list, entries, &listed, &entry);
		if (walked)
			err = fill_one(self, walked, &entry, &details[i]);
	}
	return err;
}

static int add_details(struct sample_sink *sink, const struct sample *sample)
{
	const struct detail_sink *self = (const struct detail_sink *)sink;
	cleanup_free struct loop_entry *read = NULL;
	cleanup_free struct frame_detail *details = NULL;
	const struct loop_entry *entries = self->entries;
	struct sample detailed = *sample;
	int err = 0;

	if (!entries) {
		err = loop_entries_read(self->codes, self->thread_addr, self->list, !sample->error,
					&read);
		entries = read;
	}
	if (err)
		return err;
	details = reallocarray(NULL, sample->nr_frames + 1ull, sizeof(*details));
	if (!details)
		return -ENOMEM;
	err = fill(self, sample, entries, details);
	detailed.details = details;
	if (!err)
		err = self->next->ops->sample(self->next, &detailed);
	for (uint32_t i = 0; i < sample->nr_frames; i++)
		frame_detail_free_variables(&details[i]);
	return err;
}

void detail_sink_init(struct detail_sink *sink, const struct code_cache *codes,
		      remote_addr thread_addr, const struct frame_list *list,
		      struct variable_reader *variables, struct sample_sink *next)
{
	static const struct sample_sink_ops ops = {.sample = add_details};

	*sink = (struct detail_sink){
		.sink.ops = &ops,
		.codes = codes,
		.thread_addr = thread_addr,
		.list = list,
		.variables = variables,
		.next = next,
	};
}
