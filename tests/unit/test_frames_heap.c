/* SPDX-License-Identifier: MIT */
/* Stacks of frames that are objects, 3.6 to 3.10, by both walkers. */
#include "sampler/python/frames.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "sampler/snapshot.h"
#include "tests/support/fake_python.h"

enum { FIRST_MINOR = 6, LAST_MINOR = 10, MAX_DEPTH = 8, NR_TICKS = 3 };

/* One fake interpreter with a thread whose frames call each other, outermost first. */
struct stage {
	struct fake_python py;
	remote_addr thread_addr;
	remote_addr codes[MAX_DEPTH]; /* of functions called f0, f1, … */
	remote_addr frames[MAX_DEPTH];
	uint32_t nr_frames;
	struct snapshot snapshot;
	struct code_cache cache;
	struct frame_list list;
	struct frame_walk walk; /* the last one */
	uint32_t nr_late;	/* of the last tick */
};

static void set_frame(struct stage *stage, uint32_t i, remote_addr back, bool suspended)
{
	fake_python_frame_object(&stage->py, stage->frames[i],
				 &(struct fake_frame_object){.code = stage->codes[i],
							     .back = back,
							     .unit = (int32_t)i,
							     .suspended = suspended});
}

static void set_current(struct stage *stage, remote_addr addr)
{
	fake_memory_write_u64(&stage->py.fake,
			      stage->thread_addr + stage->py.build.offsets.thread.current_frame,
			      addr);
}

/* Let the i-th frame be the innermost, called by the one before, and so on. */
static void set_depth(struct stage *stage, uint32_t nr_frames)
{
	stage->nr_frames = nr_frames;
	for (uint32_t i = 0; i < nr_frames; i++)
		set_frame(stage, i, i ? stage->frames[i - 1] : 0, false);
	set_current(stage, nr_frames ? stage->frames[nr_frames - 1] : 0);
}

static void stage_init(struct stage *stage, uint32_t minor, uint32_t nr_frames)
{
	*stage = (struct stage){0};
	fake_python_init(&stage->py, minor);
	stage->thread_addr = fake_python_thread(&stage->py, 7);
	for (uint32_t i = 0; i < MAX_DEPTH; i++) {
		const char name[] = {'f', (char)('0' + i), '\0'};

		stage->codes[i] = fake_python_code(
			&stage->py, &(struct fake_code){.name = name, .first_line = 10 * (i + 1)});
		stage->frames[i] =
			fake_python_alloc(&stage->py, frame_head_bytes(&stage->py.build.offsets));
	}
	set_depth(stage, nr_frames);
	code_cache_init(&stage->cache, &stage->py.fake.memory, &stage->py.build);
	cr_assert(zero(int, snapshot_init(&stage->snapshot, &stage->py.fake.memory,
					  &stage->py.build, stage->py.runtime_addr)));
	cr_assert(zero(int, snapshot_refresh(&stage->snapshot)));
}

static void stage_done(struct stage *stage)
{
	frame_list_done(&stage->list);
	code_cache_done(&stage->cache);
	snapshot_done(&stage->snapshot);
	fake_python_done(&stage->py);
}

/* Copy the thread; frames that are known already have been copied twice then. */
static void take(struct stage *stage)
{
	cr_assert(zero(int, snapshot_take(&stage->snapshot)));
	cr_assert(stage->snapshot.threads[0]->copied);
}

static int walk_copy(struct stage *stage)
{
	stage->walk = (struct frame_walk){
		.build = &stage->py.build,
		.codes = &stage->cache,
		.clock = &stage->snapshot.interpreters[0].clock,
		.copy = &stage->snapshot.threads[0]->stack,
		.list = &stage->list,
	};
	return frames_walk_heap(&stage->walk);
}

static int learn(struct stage *stage)
{
	return stack_copy_learn(&stage->snapshot.threads[0]->stack, stage->snapshot.memory,
				&stage->py.build.offsets, false);
}

/* One tick, as the sampler takes it: copied again with the frames that were not known. */
static int tick(struct stage *stage)
{
	int err, learn_err;

	stage->nr_late = 0;
	do {
		take(stage);
		err = walk_copy(stage);
		stage->nr_late += stage->walk.nr_late;
	} while (!err && stage->walk.nr_late);
	learn_err = learn(stage);
	return err ? err : learn_err;
}

static int walk_exact(struct stage *stage)
{
	return frames_walk_exact(&stage->cache, &stage->snapshot.interpreters[0].clock,
				 stage->nr_frames ? stage->frames[stage->nr_frames - 1] : 0, 0,
				 &stage->list);
}

/* The list is what set_depth() made, with the line of each frame's instruction. */
static void expect_stack(struct stage *stage)
{
	cr_assert(eq(uint, stage->list.nr_frames, stage->nr_frames), "3.%u", stage->py.minor);
	for (uint32_t i = 0; i < stage->nr_frames; i++) {
		const struct walked_frame *frame = &stage->list.frames[i];

		cr_expect(eq(u64, frame->addr, stage->frames[i]), "3.%u", stage->py.minor);
		cr_expect(eq(chr, frame->code->function->qualname[1], (char)('0' + i)));
		cr_expect(eq(int, code_line(&stage->cache, frame->code, frame->instr_ptr),
			     (int)(10 * (i + 1) + i)),
			  "3.%u, frame %u", stage->py.minor, i);
		cr_expect(frame_visible(&stage->list, i));
	}
}

Test(frames_heap, both_walkers_see_the_stack)
{
	for (uint32_t minor = FIRST_MINOR; minor <= LAST_MINOR; minor++)
		for (uint32_t nr_frames = 0; nr_frames <= MAX_DEPTH; nr_frames++) {
			struct stage stage;

			stage_init(&stage, minor, nr_frames);
			for (uint32_t i = 0; i < NR_TICKS; i++) {
				cr_assert(zero(int, tick(&stage)), "3.%u", minor);
				expect_stack(&stage);
				cr_expect(eq(uint, stage.nr_late, i ? 0 : nr_frames),
					  "frames are copied where they were");
				cr_expect(not(stage.walk.trimmed));
			}
			cr_assert(zero(int, walk_exact(&stage)));
			expect_stack(&stage);
			stage_done(&stage);
		}
}

Test(frames_heap, depth_changes_from_tick_to_tick)
{
	static const uint32_t depths[] = {3, 5, 4, 8, 1, 0, 8, 2};
	struct stage stage;

	stage_init(&stage, LAST_MINOR, 1);
	for (size_t i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
		set_depth(&stage, depths[i]);
		cr_assert(zero(int, tick(&stage)));
		expect_stack(&stage);
	}
	stage_done(&stage);
}

/* Frames that call others come first, so that a frame and its caller are of one moment. */
Test(frames_heap, deepest_callers_are_copied_first)
{
	static const uint32_t depths[] = {3, 6, 4, 2};
	struct stage stage;

	stage_init(&stage, LAST_MINOR, 1);
	for (size_t i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
		const struct stack_copy *copy;

		set_depth(&stage, depths[i]);
		cr_assert(zero(int, tick(&stage)));
		copy = &stage.snapshot.threads[0]->stack;
		for (size_t k = 1; k < copy->nr_links; k++) {
			const struct link_copy *before = &copy->links[copy->link_order[k - 1]];
			const struct link_copy *link = &copy->links[copy->link_order[k]];

			cr_expect(before->twice >= link->twice);
			if (before->twice == link->twice)
				cr_expect(lt(uint, link->depth, before->depth));
		}
	}
	stage_done(&stage);
}

/* A frame that has not begun is there, on the first line of its function. */
Test(frames_heap, frame_that_has_not_begun)
{
	for (uint32_t minor = FIRST_MINOR; minor <= LAST_MINOR; minor++) {
		struct stage stage;
		const struct walked_frame *frame;

		stage_init(&stage, minor, 2);
		fake_python_frame_object(&stage.py, stage.frames[1],
					 &(struct fake_frame_object){.code = stage.codes[1],
								     .back = stage.frames[0],
								     .unit = -1});
		cr_assert(zero(int, tick(&stage)));
		cr_assert(eq(uint, stage.list.nr_frames, 2));
		frame = &stage.list.frames[1];
		cr_expect(eq(int, code_line(&stage.cache, frame->code, frame->instr_ptr), 20));
		stage_done(&stage);
	}
}

/* The stack without what lies above its first nr_frames frames. */
static void expect_trimmed(struct stage *stage, uint32_t nr_frames)
{
	cr_expect(stage->walk.trimmed, "3.%u", stage->py.minor);
	stage->nr_frames = nr_frames;
	expect_stack(stage);
}

/* Suspended before its copy was taken, a generator has no caller; the last one is known. */
Test(frames_heap, generator_that_is_suspended_keeps_its_caller)
{
	for (uint32_t minor = FIRST_MINOR; minor <= LAST_MINOR; minor++) {
		struct stage stage;

		stage_init(&stage, minor, 4);
		set_frame(&stage, 2, 0, true);
		cr_expect(eq(int, tick(&stage), -EBADMSG), "nobody knows who called it");
		cr_expect(eq(int, stage.walk.loss, LOSS_LINK));
		cr_expect(eq(int, walk_exact(&stage), -EAGAIN));
		set_depth(&stage, 4);
		cr_assert(zero(int, tick(&stage)));
		set_frame(&stage, 2, 0, true);
		cr_assert(zero(int, tick(&stage)));
		expect_stack(&stage);
		cr_expect(not(stage.walk.trimmed));
		/* The memory of another function's generator. */
		stage.codes[2] = stage.codes[5];
		set_frame(&stage, 2, 0, true);
		set_frame(&stage, 3, stage.frames[2], true);
		cr_assert(zero(int, tick(&stage)));
		expect_trimmed(&stage, 2);
		stage_done(&stage);
	}
}

/* Returned before its copy was taken, a frame is believed if it names whom it named before. */
Test(frames_heap, frame_that_returned_meanwhile)
{
	struct stage stage;

	stage_init(&stage, LAST_MINOR, 4);
	cr_assert(zero(int, tick(&stage)));
	take(&stage);
	set_frame(&stage, 3, stage.frames[2], true);
	cr_assert(zero(int, walk_copy(&stage)));
	expect_stack(&stage);
	cr_expect(not(stage.walk.trimmed));
	stage_done(&stage);
}

/* The words of a frame as they were before the thread state was copied. */
static void set_before(struct stage *stage, uint32_t i, remote_addr code, remote_addr back)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;
	struct link_copy *link =
		stack_copy_find_link(&stage->snapshot.threads[0]->stack, stage->frames[i]);

	cr_assert(ne(ptr, link, NULL));
	cr_assert(link->again_valid);
	memcpy(link->again + offsets->frame.executable, &code, sizeof(code));
	memcpy(link->again + offsets->frame.previous, &back, sizeof(back));
}

/*
 * A caller that was another one before the thread state was copied may not have been it
 * at that time: what it called is left out, with it.
 */
Test(frames_heap, caller_that_changes_is_left_out)
{
	struct stage stage;

	stage_init(&stage, LAST_MINOR, 5);
	cr_assert(zero(int, tick(&stage)));
	take(&stage);
	cr_assert(zero(int, walk_copy(&stage)));
	expect_stack(&stage);
	cr_expect(not(stage.walk.trimmed));
	set_before(&stage, 3, stage.codes[6], stage.frames[2]);
	cr_assert(zero(int, walk_copy(&stage)));
	expect_trimmed(&stage, 3);
	set_before(&stage, 1, stage.codes[1], stage.frames[2]);
	cr_assert(zero(int, walk_copy(&stage)));
	expect_trimmed(&stage, 1);
	stage_done(&stage);
}

/* A frame that is free names the next free one, which is nobody's caller. */
Test(frames_heap, free_frame_leads_to_what_is_known_to_be_there)
{
	struct stage stage;

	stage_init(&stage, LAST_MINOR, 4);
	cr_assert(zero(int, tick(&stage)));
	set_frame(&stage, 6, 0, true);
	set_frame(&stage, 3, stage.frames[6], true);
	take(&stage);
	cr_assert(zero(int, walk_copy(&stage)));
	expect_trimmed(&stage, 3);
	stage_done(&stage);
}

/* After so many ticks a caller is taken for one that stays; it and leaves are copied once. */
Test(frames_heap, callers_that_stay_are_copied_once)
{
	struct stage stage;
	const struct stack_copy *copy;

	stage_init(&stage, LAST_MINOR, 4);
	for (int i = 0; i < 100; i++) {
		/* One frame's caller changes all the time. */
		set_frame(&stage, 2, stage.frames[i % 2], false);
		cr_assert(zero(int, tick(&stage)));
		cr_assert(eq(uint, stage.list.nr_frames, i % 2 ? 4 : 3));
	}
	copy = &stage.snapshot.threads[0]->stack;
	for (size_t i = 0; i < copy->nr_links; i++)
		cr_expect(eq(int, copy->links[i].twice, copy->links[i].addr == stage.frames[2]));
	stage_done(&stage);
}

/* What is no frame loses the stack, whatever is wrong with it. */
Test(frames_heap, damage_is_told)
{
	struct stage stage;

	stage_init(&stage, LAST_MINOR, 4);
	set_frame(&stage, 0, stage.frames[2], false);
	cr_expect(eq(int, tick(&stage), -EBADMSG), "a circle");
	cr_expect(eq(int, walk_exact(&stage), -E2BIG));
	set_frame(&stage, 0, 0x123456, false);
	cr_expect(eq(int, tick(&stage), -EBADMSG), "not mapped");
	cr_expect(eq(int, stage.walk.loss, LOSS_LINK));
	set_depth(&stage, 4);
	stage.codes[1] = stage.py.none_addr;
	set_depth(&stage, 4);
	cr_expect(eq(int, tick(&stage), -EBADMSG), "no code object");
	cr_expect(eq(int, stage.walk.loss, LOSS_CODE));
	stage_done(&stage);
}

/* An instruction outside of the code. */
Test(frames_heap, instruction_outside_is_no_frame)
{
	static const int32_t units[] = {8, 1000, INT32_MAX / 2, -2};

	for (uint32_t minor = FIRST_MINOR; minor <= LAST_MINOR; minor++)
		for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
			struct stage stage;

			stage_init(&stage, minor, 2);
			fake_memory_write_u32(&stage.py.fake,
					      stage.frames[1] + stage.py.build.offsets.frame.lasti,
					      (uint32_t)units[i] * 2);
			cr_expect(eq(int, tick(&stage), -EBADMSG), "3.%u, %d", minor, units[i]);
			cr_expect(eq(int, stage.walk.loss, LOSS_CODE));
			stage_done(&stage);
		}
}

/* Where nothing counts code objects, a new one proves only frames copied after it was read. */
Test(frames_heap, code_that_is_new_asks_for_another_copy)
{
	struct stage stage;

	stage_init(&stage, LAST_MINOR, 2);
	take(&stage);
	cr_assert(zero(int, walk_copy(&stage)));
	cr_expect(stage.walk.has_new_code);
	take(&stage);
	cr_assert(zero(int, walk_copy(&stage)));
	cr_expect(not(stage.walk.has_new_code));
	stage_done(&stage);
}
