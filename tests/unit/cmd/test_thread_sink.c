/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "cmd/sampling/thread_sink.h"

struct kept {
	struct sample_sink sink;
	uint32_t nr, nr_unchanged; /* samples, and that of the last one */
};

static int keep(struct sample_sink *base, const struct sample *sample)
{
	struct kept *kept = (struct kept *)base;

	kept->nr++;
	kept->nr_unchanged = sample->nr_unchanged;
	return 0;
}

static uint32_t send(struct thread_sink *sink, const struct sample_thread *thread)
{
	const struct sample sample = {.thread = thread, .nr_unchanged = 5};
	struct kept *kept = (struct kept *)sink->next;
	const uint32_t nr = kept->nr;

	cr_assert(eq(int, sink->sink.ops->sample(&sink->sink, &sample), 0));
	return kept->nr - nr;
}

/* Names count when they are known, and the next sink relies on nothing that it has not seen. */
Test(thread_sink, names_count_once_they_are_known)
{
	static const struct sample_sink_ops ops = {.sample = keep};
	static const char *const patterns[] = {"worker-*", "8"};
	struct kept kept = {.sink.ops = &ops};
	struct sample_thread thread = {.id = 0, .slot = 3, .tid = 7, .name = "python"};
	const struct sample_thread by_id = {.id = 1, .slot = 0, .tid = 8, .name = "python"};
	struct thread_sink sink;
	struct text names = {0};

	thread_sink_init(&sink, &(struct name_filter){patterns, 2}, &kept.sink);
	cr_expect(eq(u32, send(&sink, &thread), 0));
	cr_expect(eq(u32, send(&sink, &by_id), 1));
	cr_expect(eq(u32, kept.nr_unchanged, 5));
	strcpy(thread.name, "worker-1");
	sink.sink.ops->renamed(&sink.sink, &thread);
	cr_expect(eq(u32, send(&sink, &thread), 1));
	cr_expect(eq(u32, kept.nr_unchanged, 0), "the sample before was dropped");
	cr_expect(eq(u32, send(&sink, &thread), 1));
	cr_expect(eq(u32, kept.nr_unchanged, 5));
	thread_sink_append_names(&sink, 1000, &names);
	cr_expect(eq(str, (char *)text_string(&names), (char *)"python (8), worker-1 (7)"));
	text_clear(&names);
	thread_sink_append_names(&sink, 1, &names);
	cr_expect(eq(str, (char *)text_string(&names), (char *)"python (8) and 1 more"));
	/* Another thread has taken the slot. */
	thread = (struct sample_thread){.id = 2, .slot = 3, .tid = 9, .name = "other"};
	cr_expect(eq(u32, send(&sink, &thread), 0));
	cr_expect(eq(u32, send(&sink, &by_id), 1));
	text_done(&names);
	thread_sink_done(&sink);
}
