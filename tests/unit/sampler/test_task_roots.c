/* SPDX-License-Identifier: MIT */
#include "sampler/task_roots.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "sampler/sampler_state.h"

/* What comes out of the sink. */
struct outlet {
	struct sample_sink sink; /* must be first */
	struct sample last;
};

static int keep(struct sample_sink *sink, const struct sample *sample)
{
	((struct outlet *)sink)->last = *sample;
	return 0;
}

static const struct sample_sink_ops keeping = {.sample = keep};

Test(task_roots, nothing_stays_after_a_sample_that_says_so)
{
	static const struct function function;
	static const struct frame frames[] = {{&function, 1}, {&function, 2}};
	/* The frames stay; what a sample says of that, and what comes out. */
	static const struct {
		uint32_t nr_given, nr_wanted;
	} rows[] = {{0, 0}, {0, 0}, {1, 2}, {2, 2}, {0, 0}};
	static struct sampler sampler = {.snapshot.nr_slots = 1};
	const struct snapshot_thread thread = {.slot = 0};
	struct outlet outlet = {.sink.ops = &keeping};
	struct task_roots *roots;
	struct sample_sink *sink;

	cr_assert(zero(int, task_roots_create(&sampler, &roots)));
	sink = task_roots_sink(roots, &thread, &outlet.sink);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct sample sample = {
			.frames = frames,
			.nr_frames = 2,
			.nr_unchanged = rows[i].nr_given,
		};

		cr_assert(zero(int, sink->ops->sample(sink, &sample)));
		cr_expect(eq(u32, outlet.last.nr_frames, 2));
		cr_expect(eq(u32, outlet.last.nr_unchanged, rows[i].nr_wanted));
	}
	task_roots_destroy(roots);
}
