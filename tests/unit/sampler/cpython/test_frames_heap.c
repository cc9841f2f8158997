/* SPDX-License-Identifier: MIT */
/* Stacks of frame objects, 3.6 to 3.10. */
#include "sampler/cpython/frames/frames.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "tests/support/fake_python.h"

enum { FIRST_MINOR = 6, LAST_MINOR = 10, MAX_DEPTH = 8 };

/* A fake interpreter with one thread whose frames call each other, outermost first. */
struct stage {
	struct fake_python py;
	remote_addr thread_addr;
	remote_addr codes[MAX_DEPTH]; /* functions f0, f1, … */
	remote_addr frames[MAX_DEPTH];
	uint32_t nr_frames;
	struct code_cache cache;
	struct frame_list list;
	enum sample_loss loss; /* reason of the last walk */
	uint64_t tick;
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

/* Make frame nr_frames - 1 the innermost, called by the one before it, and so on. */
static void set_depth(struct stage *stage, uint32_t nr_frames)
{
	stage->nr_frames = nr_frames;
	for (uint32_t i = 0; i < nr_frames; i++)
		set_frame(stage, i, i ? stage->frames[i - 1] : 0, false);
	set_current(stage, nr_frames ? stage->frames[nr_frames - 1] : 0);
}

static void stage_init(struct stage *stage, uint32_t minor, uint32_t nr_frames)
{
	*stage = (struct stage){.tick = 0};
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
}

static void stage_done(struct stage *stage)
{
	frame_list_done(&stage->list);
	code_cache_done(&stage->cache);
	fake_python_done(&stage->py);
}

static int walk(struct stage *stage)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;
	const struct code_clock clock = fake_python_clock(&stage->py, ++stage->tick);
	uint8_t state[THREAD_STATE_MAX_BYTES];
	struct stack_ends ends;

	cr_assert(zero(int, remote_memory_read(&stage->py.fake.memory, stage->thread_addr, state,
					       thread_head_bytes(offsets))));
	ends = stack_ends_read(&stage->py.fake.memory, &stage->py.build, stage->thread_addr, state);
	return frames_walk(&stage->cache, &clock, &ends, NULL, &stage->list, &stage->loss);
}

/* Expect the stack made by set_depth(), with the line of each frame's instruction. */
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

Test(frames_heap, walks_the_stack)
{
	for (uint32_t minor = FIRST_MINOR; minor <= LAST_MINOR; minor++)
		for (uint32_t nr_frames = 0; nr_frames <= MAX_DEPTH; nr_frames++) {
			struct stage stage;

			stage_init(&stage, minor, nr_frames);
			for (uint32_t i = 0; i < 2; i++) {
				cr_assert(zero(int, walk(&stage)), "3.%u", minor);
				expect_stack(&stage);
				cr_expect(eq(uint, stage.list.nr_unchanged, i ? nr_frames : 0));
			}
			stage_done(&stage);
		}
}

Test(frames_heap, each_walk_reads_the_depth_again)
{
	static const uint32_t depths[] = {3, 5, 4, 8, 1, 0, 8, 2};
	struct stage stage;

	stage_init(&stage, LAST_MINOR, 1);
	for (size_t i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
		set_depth(&stage, depths[i]);
		cr_assert(zero(int, walk(&stage)));
		expect_stack(&stage);
	}
	stage_done(&stage);
}

/* A frame that has not begun is shown on the first line of its function. */
Test(frames_heap, frame_that_has_not_begun_is_on_its_first_line)
{
	for (uint32_t minor = FIRST_MINOR; minor <= LAST_MINOR; minor++) {
		struct stage stage;
		const struct walked_frame *frame;

		stage_init(&stage, minor, 2);
		fake_python_frame_object(&stage.py, stage.frames[1],
					 &(struct fake_frame_object){.code = stage.codes[1],
								     .back = stage.frames[0],
								     .unit = -1});
		cr_assert(zero(int, walk(&stage)));
		cr_assert(eq(uint, stage.list.nr_frames, 2));
		frame = &stage.list.frames[1];
		cr_expect(eq(int, code_line(&stage.cache, frame->code, frame->instr_ptr), 20));
		stage_done(&stage);
	}
}

static void expect_lost(struct stage *stage, const char *name)
{
	cr_expect(eq(int, walk(stage), -EBADMSG), "%s, 3.%u", name, stage->py.minor);
	cr_expect(eq(int, stage->loss, LOSS_UNFINISHED), "%s, 3.%u", name, stage->py.minor);
}

/* A suspended generator has no caller, so its caller is unknown. */
Test(frames_heap, suspended_generator_loses_the_stack)
{
	for (uint32_t minor = FIRST_MINOR; minor <= LAST_MINOR; minor++)
		for (uint32_t i = 0; i < 4; i++) {
			struct stage stage;

			stage_init(&stage, minor, 4);
			cr_assert(zero(int, walk(&stage)));
			set_frame(&stage, i, 0, true);
			expect_lost(&stage, "suspended");
			set_depth(&stage, 4);
			cr_assert(zero(int, walk(&stage)));
			expect_stack(&stage);
			stage_done(&stage);
		}
}

/* A generator that still has a caller is shown: it is about to run or has just returned. */
Test(frames_heap, frame_that_does_not_run_may_have_a_caller)
{
	for (uint32_t minor = FIRST_MINOR; minor <= LAST_MINOR; minor++) {
		struct stage stage;

		stage_init(&stage, minor, 4);
		set_frame(&stage, 3, stage.frames[2], true);
		cr_assert(zero(int, walk(&stage)), "3.%u", minor);
		expect_stack(&stage);
		stage_done(&stage);
	}
}

/* Frames below the anchor are not read. */
Test(frames_heap, frames_below_the_anchor_are_kept)
{
	struct kept_frames kept;
	struct stage stage;
	struct stack_ends ends;

	stage_init(&stage, LAST_MINOR, 4);
	cr_assert(zero(int, walk(&stage)));
	const struct code_clock clock = fake_python_clock(&stage.py, ++stage.tick);

	set_depth(&stage, 6);
	set_frame(&stage, 1, 0x123456, false);
	kept = (struct kept_frames){.anchor_addr = stage.frames[2], .nr = 2};
	ends = (struct stack_ends){.current_frame_addr = stage.frames[5]};
	cr_expect(zero(int,
		       frames_walk(&stage.cache, &clock, &ends, &kept, &stage.list, &stage.loss)));
	expect_stack(&stage);
	cr_expect(eq(u64, kept.anchor_addr, stage.frames[2]));
	stage_done(&stage);
}

/* Whatever is wrong with a frame, the stack is lost. */
Test(frames_heap, damaged_frames_lose_the_stack)
{
	for (uint32_t minor = FIRST_MINOR; minor <= LAST_MINOR; minor++) {
		struct stage stage;

		stage_init(&stage, minor, 4);
		set_frame(&stage, 0, stage.frames[2], false);
		expect_lost(&stage, "a circle");
		set_frame(&stage, 3, stage.frames[3], false);
		expect_lost(&stage, "itself");
		set_depth(&stage, 4);
		set_frame(&stage, 0, 0x123456, false);
		expect_lost(&stage, "not mapped");
		set_depth(&stage, 4);
		set_current(&stage, 0x10);
		expect_lost(&stage, "no current frame");
		stage.codes[1] = stage.py.none_addr;
		set_depth(&stage, 4);
		expect_lost(&stage, "no code object");
		stage_done(&stage);
	}
}

/* An instruction outside the code. */
Test(frames_heap, instruction_outside_the_code_is_no_frame)
{
	static const int32_t units[] = {8, 1000, INT32_MAX / 2, -2};

	for (uint32_t minor = FIRST_MINOR; minor <= LAST_MINOR; minor++)
		for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
			struct stage stage;

			stage_init(&stage, minor, 2);
			fake_memory_write_u32(&stage.py.fake,
					      stage.frames[1] + stage.py.build.offsets.frame.lasti,
					      (uint32_t)units[i] * 2);
			expect_lost(&stage, "outside");
			stage_done(&stage);
		}
}

/* A frame without code is just being made. */
Test(frames_heap, frame_without_code_is_omitted)
{
	for (uint32_t minor = FIRST_MINOR; minor <= LAST_MINOR; minor++) {
		struct stage stage;

		stage_init(&stage, minor, 3);
		fake_memory_write_u64(&stage.py.fake,
				      stage.frames[2] + stage.py.build.offsets.frame.executable, 0);
		cr_expect(zero(int, walk(&stage)), "3.%u", minor);
		stage.nr_frames = 2;
		expect_stack(&stage);
		stage_done(&stage);
	}
}
