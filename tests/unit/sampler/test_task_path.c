/* SPDX-License-Identifier: MIT */
#include "sampler/task_path.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

enum { NR_FRAMES = 4 };

/* Frames are (function, line); a function is an index into functions. */
static const struct {
	const char *name;
	uint32_t nr_outer, nr_inner;
	int32_t outer[NR_FRAMES][2], inner[NR_FRAMES][2];
	uint32_t nr_same;
} samples[] = {
	{"the first", 1, 2, {{0, 0}}, {{1, 1}, {2, 1}}, 0},
	{"the same", 1, 2, {{0, 0}}, {{1, 1}, {2, 1}}, 3},
	{"the same, divided elsewhere", 0, 3, {{0}}, {{0, 0}, {1, 1}, {2, 1}}, 3},
	{"another line", 1, 2, {{0, 0}}, {{1, 2}, {2, 1}}, 1},
	{"another task", 1, 2, {{3, 0}}, {{1, 2}, {2, 1}}, 0},
	{"fewer", 1, 1, {{3, 0}}, {{1, 2}}, 2},
	{"more", 2, 2, {{3, 0}, {1, 2}}, {{2, 1}, {2, 2}}, 2},
	{"none", 0, 0, {{0}}, {{0}}, 0},
	{"after none", 0, 1, {{0}}, {{3, 0}}, 0},
};

static const struct function functions[NR_FRAMES];

static void fill(struct frame *frames, const int32_t given[NR_FRAMES][2])
{
	for (int i = 0; i < NR_FRAMES; i++)
		frames[i] = (struct frame){&functions[given[i][0]], given[i][1]};
}

Test(task_path, emitted_frames_know_what_stays)
{
	struct emitted_frames emitted = {0};

	for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
		const uint32_t nr_outer = samples[i].nr_outer, nr_inner = samples[i].nr_inner;
		struct frame outer[NR_FRAMES], inner[NR_FRAMES];
		uint32_t nr_same;

		fill(outer, samples[i].outer);
		fill(inner, samples[i].inner);
		cr_assert(zero(int, emitted_frames_replace(&emitted, outer, nr_outer, inner,
							   nr_inner, &nr_same)));
		cr_expect(eq(u32, nr_same, samples[i].nr_same), "%s", samples[i].name);
		cr_assert(eq(u32, emitted.nr, nr_outer + nr_inner), "%s", samples[i].name);
		for (uint32_t j = 0; j < emitted.nr; j++) {
			const struct frame *wanted =
				j < nr_outer ? &outer[j] : &inner[j - nr_outer];

			cr_expect(emitted.frames[j].function == wanted->function);
			cr_expect(eq(i32, emitted.frames[j].line, wanted->line));
		}
	}
	emitted_frames_done(&emitted);
}
