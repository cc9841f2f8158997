/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/frames/frames.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "tests/support/fake_objects.h"
#include "tests/support/fake_stack.h"
#include "tests/support/random.h"
#include "tests/support/reported_object.h"

enum { CHUNK_BYTES = 16384, WORDS = 20 };

/* A fake interpreter with one thread, and the walk of its stack. */
struct stage {
	struct fake_python py;
	struct fake_stack stack;
	remote_addr f, g, h; /* code objects with frames of WORDS */
	remote_addr gen;     /* a generator's code */
	struct code_cache codes;
	struct frame_list list;
	enum sample_loss loss; /* reason of the last walk */
	uint64_t tick;
};

static remote_addr make_code(struct fake_python *py, const char *name)
{
	return fake_python_code(
		py, &(struct fake_code){.name = name, .frame_words = WORDS, .first_traceable = 1});
}

static void stage_init(struct stage *stage, uint32_t minor, uint64_t chunk_bytes)
{
	*stage = (struct stage){.tick = 0};
	fake_python_init(&stage->py, minor);
	stage->f = make_code(&stage->py, "f");
	stage->g = make_code(&stage->py, "g");
	stage->h = make_code(&stage->py, "h");
	stage->gen = make_code(&stage->py, "gen");
	fake_stack_init(&stage->stack, &stage->py, 1000, chunk_bytes);
	code_cache_init(&stage->codes, &stage->py.fake.memory, &stage->py.build);
}

static void stage_done(struct stage *stage)
{
	frame_list_done(&stage->list);
	code_cache_done(&stage->codes);
	fake_python_done(&stage->py);
}

static remote_addr call(struct stage *stage, remote_addr code)
{
	return fake_stack_call(&stage->stack, code, WORDS);
}

static struct stack_ends ends_of(struct stage *stage)
{
	const remote_addr thread_addr = stage->stack.thread_addr;
	uint8_t state[THREAD_STATE_MAX_BYTES];

	cr_assert(zero(int, remote_memory_read(&stage->py.fake.memory, thread_addr, state,
					       thread_head_bytes(&stage->py.build.offsets))));
	return stack_ends_read(&stage->py.fake.memory, &stage->py.build, thread_addr, state);
}

static int walk_kept(struct stage *stage, struct kept_frames *kept)
{
	const struct code_clock clock = fake_python_clock(&stage->py, ++stage->tick);
	const struct stack_ends ends = ends_of(stage);

	return frames_walk(&stage->codes, &clock, &ends, kept, &stage->list, &stage->loss);
}

static int walk(struct stage *stage)
{
	return walk_kept(stage, NULL);
}

static void check_list(const struct stage *stage, const char *name)
{
	const struct frame_list *list = &stage->list;
	const struct fake_stack *stack = &stage->stack;
	size_t nr = 0;

	for (uint32_t i = 0; i < list->nr_frames; i++) {
		if (!frame_visible(list, i))
			continue;
		if (nr < stack->nr_expected)
			cr_expect(eq(u64, list->frames[i].addr, stack->expected[nr]),
				  "%s, 3.%u: frame %zu", name, stage->py.minor, nr);
		nr++;
		cr_expect(eq(uint, list->frames[i].nr_begun, nr));
	}
	cr_expect(eq(sz, nr, stack->nr_expected), "%s, 3.%u", name, stage->py.minor);
}

static void expect_walk(struct stage *stage, const char *name)
{
	cr_expect(zero(int, walk(stage)), "%s, 3.%u", name, stage->py.minor);
	check_list(stage, name);
}

static void expect_lost(struct stage *stage, enum sample_loss loss, const char *name)
{
	cr_expect(eq(int, walk(stage), -EBADMSG), "%s, 3.%u", name, stage->py.minor);
	cr_expect(eq(int, stage->loss, loss), "%s, 3.%u", name, stage->py.minor);
}

static void set_word(struct stage *stage, remote_addr addr, uint32_t offset, uint64_t value)
{
	fake_memory_write_u64(&stage->py.fake, addr + offset, value);
}

static uint64_t get_word(struct stage *stage, remote_addr addr, uint32_t offset)
{
	uint64_t value;

	cr_assert(zero(int, remote_memory_read_u64(&stage->py.fake.memory, addr + offset, &value)));
	return value;
}

static void set_previous(struct stage *stage, remote_addr frame, remote_addr previous)
{
	set_word(stage, frame, stage->py.build.offsets.frame.previous, previous);
}

/* Stacks of all kinds, as they were built. */

static void build_plain(struct stage *stage)
{
	call(stage, stage->f);
	call(stage, stage->g);
	call(stage, stage->f);
	call(stage, stage->h);
}

static void build_empty(struct stage *stage)
{
	stage->stack.previous_addr = fake_python_base(&stage->py, stage->stack.thread_addr);
}

static void build_chunks(struct stage *stage)
{
	call(stage, stage->f);
	call(stage, stage->g);
	fake_stack_new_chunk(&stage->stack, CHUNK_BYTES);
	call(stage, stage->h);
	call(stage, stage->g);
	fake_stack_new_chunk(&stage->stack, 2 * CHUNK_BYTES);
	call(stage, stage->f);
}

static void build_shim(struct stage *stage)
{
	call(stage, stage->f);
	fake_stack_call_c(&stage->stack);
	call(stage, stage->g);
	call(stage, stage->h);
	fake_stack_call_c(&stage->stack);
	call(stage, stage->f);
}

/* C has called the loop, which has no frame yet. */
static void build_shim_on_top(struct stage *stage)
{
	call(stage, stage->f);
	fake_stack_call_c(&stage->stack);
}

static void build_generators(struct stage *stage)
{
	call(stage, stage->f);
	fake_stack_resume(&stage->stack, stage->gen);
	call(stage, stage->g);
	fake_stack_call_c(&stage->stack);
	fake_stack_resume(&stage->stack, stage->gen);
	fake_stack_resume(&stage->stack, stage->gen);
	call(stage, stage->h);
	fake_stack_resume(&stage->stack, stage->gen);
}

static void build_generator_alone(struct stage *stage)
{
	fake_stack_resume(&stage->stack, stage->gen);
}

/* A generator's frame is shown even before its first traceable instruction. */
static void build_generator_that_begins(struct stage *stage)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;

	call(stage, stage->f);
	set_word(stage, fake_stack_resume(&stage->stack, stage->gen), offsets->frame.instr_ptr,
		 stage->gen + offsets->code.code_adaptive);
	call(stage, stage->g);
}

/*
 * Frames of an extension, of each owner, inside the stack and innermost. They run a code object
 * or another object.
 */
static void build_linked(struct stage *stage)
{
	const remote_addr frame = fake_object(&stage->py, "mod.Frame", NULL, 0);

	call(stage, stage->f);
	for (uint8_t owner = 0; owner < 4; owner++) {
		fake_stack_link(&stage->stack, frame, owner);
		fake_stack_link(&stage->stack, stage->h, owner);
		fake_stack_call_c(&stage->stack);
		call(stage, stage->g);
	}
	fake_stack_link(&stage->stack, stage->h, OWNED_BY_THREAD);
	fake_stack_link(&stage->stack, frame, FAKE_SHIM_OWNER);
}

/* Only frames of an extension, then the same with others above. */
static void build_linked_alone(struct stage *stage)
{
	build_empty(stage);
	fake_stack_link(&stage->stack, fake_object(&stage->py, "mod.Frame", NULL, 0),
			OWNED_BY_THREAD);
}

static void build_linked_below(struct stage *stage)
{
	build_linked_alone(stage);
	fake_stack_call_c(&stage->stack);
	call(stage, stage->f);
	fake_stack_resume(&stage->stack, stage->gen);
}

/* A frame without an instruction pointer has not begun. */
static void build_linked_not_begun(struct stage *stage)
{
	call(stage, stage->f);
	set_word(stage, fake_stack_link(&stage->stack, stage->h, OWNED_BY_THREAD),
		 stage->py.build.offsets.frame.instr_ptr, 0);
	stage->stack.nr_expected--;
	fake_stack_call_c(&stage->stack);
	call(stage, stage->g);
}

/* A frame with an entry frame's owner may have an executable that does not exist. */
static void build_linked_no_object(struct stage *stage)
{
	call(stage, stage->f);
	fake_stack_link(&stage->stack, 0x123450, FAKE_SHIM_OWNER);
	stage->stack.nr_expected--;
	fake_stack_call_c(&stage->stack);
	call(stage, stage->g);
}

/* A frame that runs None is not shown, whatever its owner. */
static void build_no_frame(struct stage *stage)
{
	call(stage, stage->f);
	call(stage, stage->py.none_addr);
	stage->stack.nr_expected--;
	call(stage, stage->g);
}

/* g's locals are being destroyed: __del__ is called, and its frame's link skips g. */
static void build_dying(struct stage *stage)
{
	remote_addr f = call(stage, stage->f);

	call(stage, stage->g);
	stage->stack.nr_expected--;
	stage->stack.previous_addr = f;
	fake_stack_call_c(&stage->stack);
	call(stage, stage->h);
}

/* Begin to destroy the locals of a frame. */
static void clear(struct stage *stage, remote_addr frame)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;

	if (offsets->frame.stackpointer != OFFSET_ABSENT)
		set_word(stage, frame, offsets->frame.stackpointer,
			 frame + offsets->frame.localsplus);
	else
		fake_memory_write_u32(&stage->py.fake, frame + offsets->frame.stacktop, 0);
}

static void build_cleared(struct stage *stage)
{
	call(stage, stage->f);
	clear(stage, call(stage, stage->g));
	stage->stack.nr_expected--;
}

static void build_called_by_cleared(struct stage *stage)
{
	remote_addr g;

	call(stage, stage->f);
	g = call(stage, stage->g);
	stage->stack.nr_expected--;
	call(stage, stage->h);
	clear(stage, g);
}

/* Call g with a frame that has not begun: its instruction is before the first traceable one. */
static void call_incomplete(struct stage *stage)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;

	set_word(stage, call(stage, stage->g), offsets->frame.instr_ptr,
		 stage->g + offsets->code.code_adaptive);
	stage->stack.nr_expected--;
}

static void build_incomplete_leaf(struct stage *stage)
{
	call(stage, stage->f);
	call_incomplete(stage);
}

/* Like the frame of 3.13's __init__ shim, which only cleans up and is not shown. */
static void build_incomplete_inside(struct stage *stage)
{
	build_incomplete_leaf(stage);
	call(stage, stage->h);
}

/* Popped frames are not on the path, even if their code object is gone. */
static void build_popped(struct stage *stage)
{
	build_plain(stage);
	for (size_t i = 3; i > 1; i--)
		fake_stack_pop(&stage->stack, stage->stack.expected[i],
			       stage->stack.expected[i - 1]);
	fake_python_code_free(&stage->py, stage->h);
}

/* Sets of versions, as bit masks. */
enum {
	NEVER = 0,
	IN_11 = 1,
	IN_12 = 2,
	IN_13_AND_14 = 4,
	FROM_15 = 8,
	FROM_12_TO_14 = IN_12 | IN_13_AND_14,
	ALWAYS = IN_11 | FROM_12_TO_14 | FROM_15,
};

static bool is_in(const struct stage *stage, unsigned int versions)
{
	const uint32_t minor = stage->py.minor % FAKE_FREE_THREADED;

	return versions & (minor == 11	 ? IN_11
			   : minor == 12 ? IN_12
			   : minor >= 15 ? FROM_15
					 : IN_13_AND_14);
}

Test(frames, every_kind_of_stack_is_walked)
{
	static const struct {
		char name[32];
		void (*build)(struct stage *stage);
		uint64_t chunk_bytes;
		unsigned int lost; /* versions in which the stack does not end properly */
	} cases[] = {
		{"plain", build_plain, CHUNK_BYTES, NEVER},
		{"no frame", build_empty, CHUNK_BYTES, NEVER},
		{"no frame, no chunk", build_empty, 0, NEVER},
		{"chunks", build_chunks, CHUNK_BYTES, NEVER},
		{"shims", build_shim, CHUNK_BYTES, NEVER},
		{"shim on top", build_shim_on_top, CHUNK_BYTES, NEVER},
		{"generators", build_generators, CHUNK_BYTES, NEVER},
		{"generator alone", build_generator_alone, CHUNK_BYTES, NEVER},
		{"generator alone, no chunk", build_generator_alone, 0, NEVER},
		{"generator that begins", build_generator_that_begins, CHUNK_BYTES, NEVER},
		{"linked", build_linked, CHUNK_BYTES, NEVER},
		{"linked below", build_linked_below, CHUNK_BYTES, FROM_12_TO_14},
		{"linked alone", build_linked_alone, CHUNK_BYTES, FROM_12_TO_14},
		{"linked alone, no chunk", build_linked_alone, 0, FROM_12_TO_14},
		{"linked, not begun", build_linked_not_begun, CHUNK_BYTES, NEVER},
		{"linked, no object", build_linked_no_object, CHUNK_BYTES, IN_11},
		{"no frame", build_no_frame, CHUNK_BYTES, NEVER},
		{"dying", build_dying, CHUNK_BYTES, NEVER},
		{"cleared", build_cleared, CHUNK_BYTES, NEVER},
		{"called by cleared", build_called_by_cleared, CHUNK_BYTES, NEVER},
		{"incomplete leaf", build_incomplete_leaf, CHUNK_BYTES, NEVER},
		{"incomplete inside", build_incomplete_inside, CHUNK_BYTES, NEVER},
		{"popped", build_popped, CHUNK_BYTES, NEVER},
	};

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			struct stage stage;

			stage_init(&stage, fake_stack_minors[v], cases[i].chunk_bytes);
			cases[i].build(&stage);
			fake_stack_finish(&stage.stack);
			/* The second walk uses what the first one learned. */
			for (int n = 0; n < 2; n++) {
				if (is_in(&stage, cases[i].lost)) {
					expect_lost(&stage, LOSS_UNFINISHED, cases[i].name);
					continue;
				}
				expect_walk(&stage, cases[i].name);
				cr_expect(eq(uint, stage.list.nr_unchanged,
					     n ? stage.list.nr_frames : 0),
					  "%s, 3.%u", cases[i].name, stage.py.minor);
			}
			stage_done(&stage);
		}
}

/* Where a stack must end. */

/* Set the thread's innermost _PyCFrame. */
static void set_cframe(struct stage *stage, remote_addr cframe_addr)
{
	set_word(stage, stage->stack.thread_addr, stage->py.build.offsets.thread.cframe,
		 cframe_addr);
}

static remote_addr get_cframe(struct stage *stage)
{
	return get_word(stage, stage->stack.thread_addr, stage->py.build.offsets.thread.cframe);
}

/* The loop was called: the thread has the new _PyCFrame, which still has the old frame. */
static void end_one_loop_more(struct stage *stage)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;
	const remote_addr outer_addr = get_cframe(stage);
	const remote_addr inner_addr = fake_python_alloc(&stage->py, 24);

	set_word(stage, inner_addr, offsets->cframe.previous, outer_addr);
	set_word(stage, inner_addr, offsets->cframe.current_frame,
		 get_word(stage, outer_addr, offsets->cframe.current_frame));
	set_cframe(stage, inner_addr);
}

/* The loop was left: its frame is still the current one. */
static void end_one_loop_less(struct stage *stage)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;
	const remote_addr inner_addr = get_cframe(stage);
	const remote_addr outer_addr = get_word(stage, inner_addr, offsets->cframe.previous);

	set_word(stage, outer_addr, offsets->cframe.current_frame,
		 get_word(stage, inner_addr, offsets->cframe.current_frame));
	set_cframe(stage, outer_addr);
}

static void end_no_frame_in_a_loop(struct stage *stage)
{
	set_word(stage, get_cframe(stage), stage->py.build.offsets.cframe.current_frame, 0);
}

static void end_loops_nowhere(struct stage *stage)
{
	set_word(stage, get_cframe(stage), stage->py.build.offsets.cframe.previous, 0x10);
}

static void end_loops_without_the_thread(struct stage *stage)
{
	set_word(stage, get_cframe(stage), stage->py.build.offsets.cframe.previous, 0);
}

static void end_loops_in_a_circle(struct stage *stage)
{
	set_word(stage, get_cframe(stage), stage->py.build.offsets.cframe.previous,
		 get_cframe(stage));
}

static void end_cframe_unreadable(struct stage *stage)
{
	set_cframe(stage, 0x10);
}

/* As for a generator between the two stores of a yield. */
static void end_after_frame(struct stage *stage)
{
	set_previous(stage, stage->stack.expected[0], 0);
}

static void end_after_inner_frame(struct stage *stage)
{
	set_previous(stage, stage->stack.expected[2], 0);
}

/* After the entry frame there is no base frame. */
static void end_after_shim(struct stage *stage)
{
	const remote_addr shim_addr =
		get_word(stage, stage->stack.expected[0], stage->py.build.offsets.frame.previous);

	set_previous(stage, shim_addr, 0);
}

static void end_after_no_entry(struct stage *stage)
{
	fake_memory_write_u8(&stage->py.fake,
			     stage->stack.expected[0] + stage->py.build.offsets.frame.is_entry, 0);
}

static void end_nowhere(struct stage *stage)
{
	set_previous(stage, stage->stack.expected[1], 0x123456);
}

static void end_at_an_odd_address(struct stage *stage)
{
	set_previous(stage, stage->stack.expected[1], UINT64_MAX - 7);
}

static void end_in_a_circle(struct stage *stage)
{
	set_previous(stage, stage->stack.expected[0], stage->stack.expected[2]);
}

static void end_at_itself(struct stage *stage)
{
	set_previous(stage, stage->stack.expected[1], stage->stack.expected[1]);
}

Test(frames, stack_with_a_wrong_end_is_lost)
{
	static const struct {
		char name[32];
		void (*change)(struct stage *stage);
		unsigned int versions, lost;
	} cases[] = {
		{"after the outermost frame", end_after_frame, ALWAYS, FROM_12_TO_14 | FROM_15},
		{"after an inner frame", end_after_inner_frame, ALWAYS, ALWAYS},
		{"after the entry frame", end_after_shim, FROM_12_TO_14 | FROM_15, FROM_15},
		{"not after an entry", end_after_no_entry, IN_11, IN_11},
		{"one loop more", end_one_loop_more, IN_11 | IN_12, ALWAYS},
		{"one loop less", end_one_loop_less, IN_11 | IN_12, ALWAYS},
		{"no frame in a loop", end_no_frame_in_a_loop, IN_11 | IN_12, ALWAYS},
		{"loops in unmapped memory", end_loops_nowhere, IN_11 | IN_12, ALWAYS},
		{"loops of no thread", end_loops_without_the_thread, IN_11 | IN_12, ALWAYS},
		{"loops in a circle", end_loops_in_a_circle, IN_11 | IN_12, ALWAYS},
		{"no _PyCFrame", end_cframe_unreadable, IN_11 | IN_12, ALWAYS},
		{"nowhere", end_nowhere, ALWAYS, ALWAYS},
		{"at an odd address", end_at_an_odd_address, ALWAYS, ALWAYS},
		{"in a circle", end_in_a_circle, ALWAYS, ALWAYS},
		{"in a circle of one", end_at_itself, ALWAYS, ALWAYS},
	};

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			struct stage stage;

			stage_init(&stage, fake_stack_minors[v], CHUNK_BYTES);
			if (is_in(&stage, cases[i].versions)) {
				build_plain(&stage);
				fake_stack_finish(&stage.stack);
				expect_walk(&stage, cases[i].name);
				cases[i].change(&stage);
				if (is_in(&stage, cases[i].lost))
					expect_lost(&stage, LOSS_UNFINISHED, cases[i].name);
				else
					expect_walk(&stage, cases[i].name);
			}
			stage_done(&stage);
		}
}

/* Between the two stores of a yield a generator's frame has no caller. */
Test(frames, stack_of_a_suspended_generator_is_lost)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;

		stage_init(&stage, fake_stack_minors[v], CHUNK_BYTES);
		build_generators(&stage);
		fake_stack_finish(&stage.stack);
		expect_walk(&stage, "before");
		set_previous(&stage, stage.stack.expected[1], 0);
		expect_lost(&stage, LOSS_UNFINISHED, "suspended");
		set_previous(&stage, stage.stack.expected[1], stage.stack.expected[0]);
		expect_walk(&stage, "resumed");
		stage_done(&stage);
	}
}

/* The frame is current already, but `previous` is that of an earlier frame in its place. */
Test(frames, frame_that_is_not_linked_yet_is_lost)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;

		stage_init(&stage, fake_stack_minors[v], CHUNK_BYTES);
		build_plain(&stage);
		call_incomplete(&stage);
		fake_stack_finish(&stage.stack);
		expect_walk(&stage, "linked");
		set_previous(&stage, stage.stack.expected[4], stage.stack.expected[2]);
		expect_lost(&stage, LOSS_UNFINISHED, "not yet linked");
		stage_done(&stage);
	}
}

/* This rule is for frames on the data stack. The first one of a chunk has no frame before it. */
Test(frames, frame_that_begins_a_chunk_is_linked)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;

		stage_init(&stage, fake_stack_minors[v], CHUNK_BYTES);
		call_incomplete(&stage);
		fake_stack_finish(&stage.stack);
		expect_walk(&stage, "first of the thread");
		stage_done(&stage);
		stage_init(&stage, fake_stack_minors[v], CHUNK_BYTES);
		call(&stage, stage.f);
		fake_stack_new_chunk(&stage.stack, CHUNK_BYTES);
		call_incomplete(&stage);
		fake_stack_finish(&stage.stack);
		expect_walk(&stage, "first of a chunk");
		stage_done(&stage);
	}
}

Test(frames, memory_errors_are_forwarded)
{
	static const int errors[] = {-ESRCH, -EPERM};

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++)
		for (size_t i = 0; i < 2; i++) {
			struct stage stage;
			struct stack_ends ends;

			stage_init(&stage, fake_stack_minors[v], CHUNK_BYTES);
			build_plain(&stage);
			fake_stack_finish(&stage.stack);
			ends = ends_of(&stage);
			const struct code_clock clock = fake_python_clock(&stage.py, 1);

			stage.py.fake.error = errors[i];
			cr_expect(eq(int,
				     frames_walk(&stage.codes, &clock, &ends, NULL, &stage.list,
						 &stage.loss),
				     errors[i]));
			ends.current_err = errors[i];
			stage.py.fake.error = 0;
			cr_expect(eq(int,
				     frames_walk(&stage.codes, &clock, &ends, NULL, &stage.list,
						 &stage.loss),
				     errors[i]));
			stage_done(&stage);
		}
}

/* Consecutive walks. */

/* Each walk reads again what a frame runs and where it is. */
Test(frames, each_walk_reads_frames_again)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;
		remote_addr g;

		stage_init(&stage, fake_stack_minors[v], CHUNK_BYTES);
		const struct py_offsets *offsets = &stage.py.build.offsets;

		call(&stage, stage.f);
		g = call(&stage, stage.g);
		fake_stack_finish(&stage.stack);
		expect_walk(&stage, "before");
		set_word(&stage, g, offsets->frame.instr_ptr,
			 get_word(&stage, g, offsets->frame.instr_ptr) + 2);
		expect_walk(&stage, "one instruction on");
		cr_expect(eq(uint, stage.list.nr_unchanged, 1));
		clear(&stage, g);
		stage.stack.nr_expected = 1;
		expect_walk(&stage, "cleared");
		cr_expect(eq(uint, stage.list.nr_unchanged, 1));
		stage.stack.next_addr = g;
		stage.stack.previous_addr = stage.stack.expected[0];
		call(&stage, stage.h);
		if (offsets->frame.stackpointer != OFFSET_ABSENT)
			set_word(&stage, g, offsets->frame.stackpointer,
				 g + offsets->frame.localsplus + 8);
		fake_stack_finish(&stage.stack);
		expect_walk(&stage, "another one called");
		cr_expect(eq(str, (char *)stage.list.frames[1].code->function->qualname,
			     (char *)"h"));
		stage_done(&stage);
	}
}

/* Frames below the anchor are not read. */
Test(frames, frames_below_the_anchor_are_kept)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;
		struct kept_frames kept;
		uint32_t anchored;

		stage_init(&stage, fake_stack_minors[v], CHUNK_BYTES);
		build_generators(&stage);
		fake_stack_finish(&stage.stack);
		expect_walk(&stage, "all");
		anchored = frame_list_find(&stage.list, stage.stack.expected[2]) - 1;
		cr_assert(eq(uint, anchored, 2));
		set_previous(&stage, stage.stack.expected[1], 0x123456);
		call(&stage, stage.h);
		fake_stack_finish(&stage.stack);
		kept = (struct kept_frames){.anchor_addr = stage.stack.expected[2], .nr = anchored};
		cr_expect(zero(int, walk_kept(&stage, &kept)), "3.%u", stage.py.minor);
		check_list(&stage, "kept");
		cr_expect(eq(u64, kept.anchor_addr, stage.stack.expected[2]));
		cr_expect(eq(uint, stage.list.nr_unchanged, stage.list.nr_frames - 1));
		/* The anchor is on no path, so everything is walked. */
		set_previous(&stage, stage.stack.expected[1], stage.stack.expected[0]);
		fake_stack_finish(&stage.stack);
		kept = (struct kept_frames){.anchor_addr = stage.py.none_addr, .nr = 3};
		cr_expect(zero(int, walk_kept(&stage, &kept)), "3.%u", stage.py.minor);
		check_list(&stage, "not met");
		cr_expect(zero(u64, kept.anchor_addr));
		cr_expect(zero(uint, kept.nr));
		/* The innermost frame is the anchor. */
		kept = (struct kept_frames){
			.anchor_addr = stage.stack.expected[stage.stack.nr_expected - 1],
			.nr = stage.list.nr_frames - 1};
		cr_expect(zero(int, walk_kept(&stage, &kept)), "3.%u", stage.py.minor);
		check_list(&stage, "innermost");
		cr_expect(eq(uint, stage.list.nr_unchanged, stage.list.nr_frames));
		/* The frame executes another instruction. */
		set_word(&stage, kept.anchor_addr, stage.py.build.offsets.frame.instr_ptr,
			 fake_python_bytecode(&stage.py, stage.h) + 4);
		cr_expect(zero(int, walk_kept(&stage, &kept)), "3.%u", stage.py.minor);
		check_list(&stage, "it continues");
		cr_expect(eq(uint, stage.list.nr_unchanged, kept.nr));
		stage_done(&stage);
	}
}

/* What frames run. */

/* Another code object and frame in the place of the old ones. */
Test(frames, replaced_code_object_has_the_new_name)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;
		const struct code *code;

		stage_init(&stage, fake_stack_minors[v], CHUNK_BYTES);
		call(&stage, stage.f);
		call(&stage, stage.g);
		fake_stack_finish(&stage.stack);
		expect_walk(&stage, "before");
		code = stage.list.frames[1].code;
		cr_expect(eq(str, (char *)code->function->qualname, (char *)"g"));
		fake_python_code_free(&stage.py, stage.g);
		fake_python_code_at(&stage.py, stage.g,
				    &(struct fake_code){.name = "other",
							.frame_words = WORDS,
							.first_traceable = 1});
		set_word(&stage, stage.stack.expected[1], stage.py.build.offsets.frame.instr_ptr,
			 fake_python_bytecode(&stage.py, stage.g) + 2);
		expect_walk(&stage, "after");
		cr_expect(eq(ptr, (void *)stage.list.frames[1].code, (void *)code));
		cr_expect(eq(str, (char *)code->function->qualname, (char *)"other"));
		cr_expect(eq(uint, stage.list.nr_unchanged, 1), "3.%u", stage.py.minor);
		stage_done(&stage);
	}
}

/* Steps of an earlier walk: an object in the place of another one is not named. */

static void report_steps(struct stage *stage, remote_addr changed_addr)
{
	static struct reported_object object;
	const struct code_clock clock = {.tick = stage->tick, .frames_are_older = true};
	struct frame_list *list = &stage->list;

	for (uint32_t i = 0; i < list->nr_steps; i++) {
		struct frame_words *words = &list->steps[i].words;
		struct code_clock now = fake_python_clock(&stage->py, stage->tick);
		struct code *code;

		words->identity = 0;
		if (code_cache_get(&stage->codes, words->executable, &now, &code) != 0)
			continue;
		reported_object_read(&object, &stage->py, words->executable, 1,
				     REPORTED_TEXT_BYTES);
		cr_assert(zero(int,
			       code_cache_add_reported(&stage->codes, &object.reported, &clock)));
		words->identity = words->executable == changed_addr ? 2 : 1;
	}
}

static int walk_steps(struct stage *stage)
{
	struct code_clock clock = fake_python_clock(&stage->py, ++stage->tick);
	const struct stack_ends ends = ends_of(stage);

	clock.frames_are_older = true;
	return frames_walk_steps(&stage->codes, &clock, &ends, &stage->list, &stage->loss);
}

Test(frames, recorded_walk_is_accepted)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;

		stage_init(&stage, fake_stack_minors[v], CHUNK_BYTES);
		build_generators(&stage);
		fake_stack_finish(&stage.stack);
		expect_walk(&stage, "walked");
		report_steps(&stage, 0);
		cr_expect(zero(int, walk_steps(&stage)), "3.%u", stage.py.minor);
		check_list(&stage, "recorded");
		cr_expect(eq(uint, stage.list.nr_unchanged, stage.list.nr_frames));
		report_steps(&stage, stage.f);
		cr_expect(eq(int, walk_steps(&stage), -EBADMSG), "3.%u", stage.py.minor);
		cr_expect(eq(int, stage.loss, LOSS_CODE), "3.%u", stage.py.minor);
		/* A walk that ends too early is unfinished. */
		expect_walk(&stage, "walked again");
		report_steps(&stage, 0);
		stage.list.nr_steps--;
		stage.list.steps[stage.list.nr_steps - 1].words.previous = 0;
		cr_expect(eq(int, walk_steps(&stage), -EBADMSG), "3.%u", stage.py.minor);
		cr_expect(eq(int, stage.loss, LOSS_UNFINISHED), "3.%u", stage.py.minor);
		stage_done(&stage);
	}
}

/* The code object of a live frame is gone, whether it was known or not. */
Test(frames, frame_without_a_code_object_loses_the_stack)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++)
		for (size_t i = 0; i < 3; i++) {
			struct stage stage;

			stage_init(&stage, fake_stack_minors[v], CHUNK_BYTES);
			call(&stage, stage.f);
			call(&stage, stage.g);
			call(&stage, stage.h);
			fake_stack_finish(&stage.stack);
			if (i > 0)
				expect_walk(&stage, "before");
			fake_python_code_free(&stage.py, i == 2 ? stage.g : stage.h);
			make_code(&stage.py, "other");
			expect_lost(&stage, LOSS_UNFINISHED, "gone");
			stage_done(&stage);
		}
}

static void set_executable(struct stage *stage, remote_addr frame, uint64_t executable)
{
	set_word(stage, frame, stage->py.build.offsets.frame.executable, executable);
}

Test(frames, invalid_executable_or_instruction_loses_the_stack)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;

		stage_init(&stage, fake_stack_minors[v], CHUNK_BYTES);
		const struct py_offsets *offsets = &stage.py.build.offsets;

		build_plain(&stage);
		fake_stack_finish(&stage.stack);
		set_executable(&stage, stage.stack.expected[1], 0x123456);
		expect_lost(&stage, LOSS_UNFINISHED, "not mapped");
		set_executable(&stage, stage.stack.expected[1], stage.g);
		expect_walk(&stage, "as it was");
		for (uint64_t far = 16; far < 1 << 20; far *= 16) {
			set_word(&stage, stage.stack.expected[1], offsets->frame.instr_ptr,
				 fake_python_bytecode(&stage.py, stage.g) + far);
			expect_lost(&stage, LOSS_UNFINISHED, "an instruction outside");
		}
		stage_done(&stage);
	}
}

/* Tag bits of a reference are not part of the address. */
Test(frames, executables_are_tagged_from_3_14_on)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;

		stage_init(&stage, fake_stack_minors[v], CHUNK_BYTES);
		build_plain(&stage);
		fake_stack_finish(&stage.stack);
		set_executable(&stage, stage.stack.expected[1], stage.g | 1);
		expect_walk(&stage, "tagged");
		stage_done(&stage);
	}
}

Test(frames, full_code_cache_loses_the_stack)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;

		stage_init(&stage, fake_stack_minors[v], CHUNK_BYTES);
		build_plain(&stage);
		fake_stack_finish(&stage.stack);
		stage.codes.table_bytes = CODE_TABLES_MAX_BYTES;
		expect_lost(&stage, LOSS_CODE, "full");
		stage.codes.table_bytes = 0;
		expect_walk(&stage, "room");
		stage_done(&stage);
	}
}

/* A stack of the maximum depth, and one deeper. */
Test(frames, stack_beyond_the_depth_limit_is_refused)
{
	static const uint32_t minors[] = {11, 15};

	for (size_t v = 0; v < 2; v++) {
		struct stage stage;
		remote_addr frames_addr;

		stage_init(&stage, minors[v], CHUNK_BYTES);
		const uint32_t previous = stage.py.build.offsets.frame.previous;
		const uint32_t size = stage.py.build.offsets.frame.size;
		const remote_addr outermost = call(&stage, stage.f);
		uint8_t *bytes, *last;

		fake_stack_finish(&stage.stack);
		frames_addr = stage.py.free_addr;
		bytes = fake_memory_map(&stage.py.fake, frames_addr, (size_t)MAX_FRAMES * size);
		fake_python_frame(&stage.py, frames_addr,
				  &(struct fake_frame){.executable = stage.g,
						       .previous = outermost,
						       .unit = 1,
						       .stacktop = FAKE_EXECUTING});
		for (uint32_t i = 1; i < MAX_FRAMES; i++) {
			const uint64_t caller_addr = frames_addr + (uint64_t)(i - 1) * size;

			last = bytes + (size_t)i * size;
			memcpy(last, bytes, size);
			memcpy(last + previous, &caller_addr, sizeof(caller_addr));
		}
		for (uint32_t more = 0; more < 2; more++) {
			const uint32_t nr = MAX_FRAMES - 1 + more;
			const uint32_t at = stage.py.build.offsets.thread.current_frame;
			const remote_addr current_addr = frames_addr + (uint64_t)(nr - 1) * size;

			if (minors[v] == 11)
				set_word(&stage, get_cframe(&stage),
					 stage.py.build.offsets.cframe.current_frame, current_addr);
			else
				set_word(&stage, stage.stack.thread_addr, at, current_addr);
			if (more) {
				expect_lost(&stage, LOSS_TOO_DEEP, "one more");
				continue;
			}
			cr_expect(zero(int, walk(&stage)), "3.%u", minors[v]);
			cr_expect(eq(uint, stage.list.nr_frames, MAX_FRAMES));
		}
		stage_done(&stage);
	}
}

/* Random damage. */

/* Overwrite up to eight bytes of a random piece. Returns their address and old value. */
static void corrupt(struct fake_memory *fake, uint64_t *random, remote_addr *ret_addr,
		    uint64_t *ret_saved)
{
	const struct fake_segment *to, *from;

	do {
		to = &fake->segments[random_next(random) % fake->nr_segments];
	} while (to->size_bytes < 16);
	from = &fake->segments[random_next(random) % fake->nr_segments];
	size_t used = to->size_bytes < 1024 ? to->size_bytes : 1024;
	size_t offset = random_next(random) % (used / 8) * 8;
	uint64_t value = random_next(random);

	if (value % 4 == 0)
		value = from->addr;
	else if (value % 4 == 1)
		value = from->addr + value / 4 % from->size_bytes;
	else if (value % 4 == 2)
		value = value / 4 % 300;
	*ret_addr = to->addr + offset;
	memcpy(ret_saved, to->bytes + offset, 8);
	memcpy(to->bytes + offset, &value, 8);
}

Test(frames, corrupted_frames_end_in_a_result_or_a_loss)
{
	enum { NR_CORRUPTIONS = 10000, AT_ONCE = 3 };
	uint64_t random = 0x9e3779b97f4a7c15u;

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;

		stage_init(&stage, fake_stack_minors[v], 1024);
		build_generators(&stage);
		fake_stack_new_chunk(&stage.stack, 1024);
		build_linked(&stage);
		fake_stack_finish(&stage.stack);
		for (int i = 0; i < NR_CORRUPTIONS / NR_FAKE_STACK_MINORS; i++) {
			remote_addr addrs[AT_ONCE];
			uint64_t saved[AT_ONCE];
			int err;

			for (size_t k = 0; k < AT_ONCE; k++)
				corrupt(&stage.py.fake, &random, &addrs[k], &saved[k]);
			err = walk(&stage);
			cr_expect(err == 0 || (err == -EBADMSG && stage.loss != LOSS_MOVED));
			for (size_t k = AT_ONCE; k > 0; k--)
				set_word(&stage, addrs[k - 1], 0, saved[k - 1]);
		}
		/* Discard everything learned during the damage. */
		stage.py.generation += 2;
		stage.codes.nr_hidden_executables = 0;
		fake_python_code_free(&stage.py, make_code(&stage.py, "gone"));
		expect_walk(&stage, "restored");
		stage_done(&stage);
	}
}
