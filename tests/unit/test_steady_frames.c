/* SPDX-License-Identifier: MIT */
#include "sampler/steady_frames.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

enum { NR_FRAMES = 3, TID = 7 };

/* Three frames, as a look finds them. */
struct looks {
	struct steady_frames steady;
	struct walked_frame frames[NR_FRAMES];
};

static void look(struct looks *looks, pid_t tid, uint32_t nr_frames, unsigned int nr_looks)
{
	const struct frame_list list = {.frames = looks->frames, .nr_frames = nr_frames};

	for (unsigned int i = 0; i < nr_looks; i++)
		cr_assert(zero(int, steady_frames_look(&looks->steady, tid, &list)));
}

static void looks_init(struct looks *looks)
{
	*looks = (struct looks){.steady = {.tid = 0}};
	for (uint32_t i = 0; i < NR_FRAMES; i++)
		looks->frames[i] = (struct walked_frame){
			.addr = 100 * i, .previous = 100 * i - 100, .executable = 5};
}

/* How many frames are steady; they are the outer ones. */
static uint32_t nr_steady(const struct looks *looks)
{
	uint32_t nr = 0;

	while (steady_frames_has(&looks->steady, nr))
		nr++;
	for (uint32_t i = nr; i < 2 * NR_FRAMES; i++)
		cr_expect(not(steady_frames_has(&looks->steady, i)));
	return nr;
}

Test(steady_frames, found_so_often)
{
	struct looks looks;

	looks_init(&looks);
	cr_expect(zero(u32, nr_steady(&looks)));
	look(&looks, TID, NR_FRAMES, STEADY_FRAMES_LOOKS - 1);
	cr_expect(zero(u32, nr_steady(&looks)));
	look(&looks, TID, NR_FRAMES, 1);
	cr_expect(eq(u32, nr_steady(&looks), NR_FRAMES));
	look(&looks, TID, NR_FRAMES, 3);
	cr_expect(eq(u32, nr_steady(&looks), NR_FRAMES));
	steady_frames_done(&looks.steady);
	steady_frames_done(NULL);
}

/* What is within a frame that has changed is another one, too. */
Test(steady_frames, changes)
{
	for (uint32_t changed = 0; changed < NR_FRAMES; changed++)
		for (unsigned int what = 0; what < 3; what++) {
			struct looks looks;

			looks_init(&looks);
			look(&looks, TID, NR_FRAMES, STEADY_FRAMES_LOOKS);
			looks.frames[changed].addr += what == 0;
			looks.frames[changed].previous += what == 1;
			looks.frames[changed].executable += what == 2;
			look(&looks, TID, NR_FRAMES, 1);
			cr_expect(eq(u32, nr_steady(&looks), changed));
			look(&looks, TID, NR_FRAMES, STEADY_FRAMES_LOOKS - 2);
			cr_expect(eq(u32, nr_steady(&looks), changed));
			look(&looks, TID, NR_FRAMES, 1);
			cr_expect(eq(u32, nr_steady(&looks), NR_FRAMES));
			steady_frames_done(&looks.steady);
		}
}

/* A frame that was not there once has to be found so often again; another thread has its own. */
Test(steady_frames, gone_and_others)
{
	struct looks looks;

	looks_init(&looks);
	look(&looks, TID, NR_FRAMES, STEADY_FRAMES_LOOKS);
	look(&looks, TID, NR_FRAMES - 1, 1);
	cr_expect(eq(u32, nr_steady(&looks), NR_FRAMES - 1));
	look(&looks, TID, NR_FRAMES, 1);
	cr_expect(eq(u32, nr_steady(&looks), NR_FRAMES - 1));
	look(&looks, TID + 1, NR_FRAMES, 1);
	cr_expect(zero(u32, nr_steady(&looks)));
	steady_frames_done(&looks.steady);
}
