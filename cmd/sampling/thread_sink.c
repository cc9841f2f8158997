/* SPDX-License-Identifier: MIT */
#include "cmd/sampling/thread_sink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/profile/label.h"
#include "procmem/array.h"

/* Judge a thread by its present name. */
static void judge(const struct thread_sink *sink, struct thread_sink_row *row,
		  const struct sample_thread *thread)
{
	row->tid = thread->tid;
	memcpy(row->name, thread->name, sizeof(row->name));
	row->passes = name_filter_passes(&sink->filter, thread->name, thread->tid);
}

/* Find the row of a thread, or begin it. NULL: out of memory. */
static struct thread_sink_row *row_get(struct thread_sink *sink, const struct sample_thread *thread)
{
	const uint32_t nr = sink->nr;
	struct thread_sink_row *rows, *row;

	if (thread->slot == UINT32_MAX)
		return NULL;
	rows = array_reserve(sink->rows, thread->slot + 1, &sink->nr, sizeof(*rows));
	if (!rows)
		return NULL;
	memset(rows + nr, 0, (sink->nr - nr) * sizeof(*rows));
	sink->rows = rows;
	row = &rows[thread->slot];
	if (!row->is_used || row->id != thread->id) {
		*row = (struct thread_sink_row){.is_used = true, .id = thread->id};
		judge(sink, row, thread);
	}
	return row;
}

static int pass_sample(struct sample_sink *base, const struct sample *sample)
{
	struct thread_sink *sink = (struct thread_sink *)base;
	struct thread_sink_row *row = row_get(sink, sample->thread);
	struct sample passed = *sample;

	if (!row)
		return -ENOMEM;
	/* The next sink did not see the sample to which this refers. */
	if (row->was_dropped)
		passed.nr_unchanged = 0;
	row->was_dropped = !row->passes;
	return row->passes ? sink->next->ops->sample(sink->next, &passed) : 0;
}

static void pass_renamed(struct sample_sink *base, const struct sample_thread *thread)
{
	struct thread_sink *sink = (struct thread_sink *)base;
	struct thread_sink_row *row = row_get(sink, thread);

	if (row)
		judge(sink, row, thread);
	if (sink->next->ops->renamed)
		sink->next->ops->renamed(sink->next, thread);
}

static int pass_tick(struct sample_sink *base, uint64_t now_ns)
{
	struct sample_sink *next = ((struct thread_sink *)base)->next;

	return next->ops->tick ? next->ops->tick(next, now_ns) : 0;
}

void thread_sink_init(struct thread_sink *sink, const struct name_filter *filter,
		      struct sample_sink *next)
{
	static const struct sample_sink_ops ops = {
		.sample = pass_sample,
		.renamed = pass_renamed,
		.tick = pass_tick,
	};

	*sink = (struct thread_sink){.sink.ops = &ops, .filter = *filter, .next = next};
}

void thread_sink_done(struct thread_sink *sink)
{
	free(sink->rows);
	*sink = (struct thread_sink){.nr = 0};
}

void thread_sink_append_names(const struct thread_sink *sink, size_t max_bytes, struct text *text)
{
	const size_t begin = text->length;
	uint32_t nr_left = 0;

	for (uint32_t i = 0; i < sink->nr; i++) {
		const struct thread_sink_row *row = &sink->rows[i];

		if (!row->is_used)
			continue;
		if (text->length - begin >= max_bytes) {
			nr_left++;
			continue;
		}
		text_puts(text, text->length > begin ? ", " : "");
		label_append_escaped(text, row->name, strnlen(row->name, sizeof(row->name)),
				     LABEL_DISPLAY);
		if (row->tid)
			text_printf(text, " (%d)", row->tid);
	}
	if (nr_left)
		text_printf(text, " and %" PRIu32 " more", nr_left);
}
