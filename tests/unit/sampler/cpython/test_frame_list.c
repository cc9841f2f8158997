/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/frames/frames.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/* A walk that finds nr frames. */
static void walk(struct frame_list *list, uint32_t nr)
{
	frame_list_begin(list, 0);
	for (uint64_t i = 0; i < nr; i++) {
		const struct walked_frame frame = {.addr = i + 1};

		cr_assert(zero(int, frame_list_append(list, &frame)));
	}
}

Test(frame_list, frees_the_memory_of_deep_stacks)
{
	static const struct {
		uint32_t depth; /* of the deepest stack */
		uint32_t now;	/* of the last stack */
		uint32_t fit;	/* argument of frame_list_fit() */
		bool gives_back;
	} cases[] = {
		{100000, 10, 10, true},	    {100000, 10, 5000, true},
		{100000, 10, 90000, false}, {100000, 90000, 90000, false},
		{100000, 90000, 10, false}, {60, 1, 1, false},
		{100000, 0, 0, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct frame_list list = {0};
		uint32_t before;

		walk(&list, cases[i].depth);
		walk(&list, cases[i].now);
		before = list.max_frames;
		frame_list_fit(&list, cases[i].fit);
		cr_expect(ge(u32, list.max_frames, cases[i].now), "case %zu", i);
		cr_expect(ge(u32, list.max_frames, list.nr_known), "case %zu", i);
		cr_expect(eq(int, list.max_frames < before, cases[i].gives_back), "case %zu", i);
		if (cases[i].gives_back)
			cr_expect(le(u32, list.max_frames, 2 * cases[i].fit + 64), "case %zu", i);
		cr_expect(eq(u32, list.nr_frames, cases[i].now));
		/* Its frames are still recognized as unchanged. */
		walk(&list, cases[i].now);
		cr_expect(eq(u32, list.nr_unchanged, cases[i].now), "case %zu", i);
		walk(&list, cases[i].depth);
		cr_expect(eq(u32, list.nr_frames, cases[i].depth));
		frame_list_done(&list);
	}
}
