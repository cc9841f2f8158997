/* SPDX-License-Identifier: MIT */
#include "sampler/python/page_border.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "sampler/python/frames.h"
#include "sampler/snapshot.h"
#include "tests/support/fake_stack.h"

/* So many frames are below: what the last of them calls begins 32 bytes before a page border. */
enum { NR_BELOW = 21, WORDS = 24, CHUNK_BYTES = 16384, BORDER_BYTES = 4096 };

/* More than it takes until a border is known; the unit that returns, and another one. */
enum { LONG = 140, RETURN_UNIT = 6, UNIT = 3 };

/*
 * A function that calls a and b in turn, one of which calls another one. a and b have a
 * local; c and d are the same without.
 */
struct stage {
	struct fake_python py;
	struct fake_stack stack;
	remote_addr below, a, b, c, d, inner;
	remote_addr frame, caller; /* across the border, and below it */
	struct snapshot snapshot;
	struct code_cache codes;
	struct frame_list list;
	bool trimmed;
	/* Of the next read: what happens between the pieces. */
	void (*meanwhile)(struct stage *stage);
	size_t piece; /* the second one */
};

static remote_addr make_code(struct fake_python *py, const char *name, uint32_t nr_locals)
{
	remote_addr addr = fake_python_code(py, &(struct fake_code){.name = name,
								    .frame_words = WORDS,
								    .first_traceable = 1,
								    .return_unit = RETURN_UNIT});

	fake_memory_write_u32(&py->fake, addr + py->build.offsets.code.nlocalsplus, nr_locals);
	return addr;
}

static void before_range(struct fake_memory *fake, size_t range_index)
{
	struct stage *stage = fake->context;

	if (range_index == stage->piece && stage->meanwhile)
		stage->meanwhile(stage);
}

static void stage_init(struct stage *stage, uint32_t minor)
{
	*stage = (struct stage){0};
	fake_python_init(&stage->py, minor);
	stage->below = make_code(&stage->py, "below", 1);
	stage->a = make_code(&stage->py, "a", 1);
	stage->b = make_code(&stage->py, "b", 1);
	stage->c = make_code(&stage->py, "c", 0);
	stage->d = make_code(&stage->py, "d", 0);
	stage->inner = make_code(&stage->py, "inner", 1);
	fake_stack_init(&stage->stack, &stage->py, 1000, 0);
	stage->py.free_addr = (stage->py.free_addr | (BORDER_BYTES - 1)) + 1;
	stage->stack.chunk_addr = fake_python_chunk(&stage->py, 0, CHUNK_BYTES);
	stage->stack.next_addr =
		stage->stack.chunk_addr + stage->py.build.offsets.chunk.data + sizeof(uint64_t);
	for (int i = 0; i < NR_BELOW; i++)
		stage->caller = fake_stack_call(&stage->stack, stage->below, WORDS);
	stage->frame = stage->stack.next_addr;
	code_cache_init(&stage->codes, &stage->py.fake.memory, &stage->py.build);
	cr_assert(zero(int, snapshot_init(&stage->snapshot, &stage->py.fake.memory,
					  &stage->py.build, stage->py.runtime_addr)));
	cr_assert(zero(int, snapshot_refresh(&stage->snapshot)));
	stage->py.fake.before_range = before_range;
	stage->py.fake.context = stage;
}

static void stage_done(struct stage *stage)
{
	frame_list_done(&stage->list);
	code_cache_done(&stage->codes);
	snapshot_done(&stage->snapshot);
	fake_python_done(&stage->py);
}

static void set_word(struct stage *stage, remote_addr frame, uint32_t offset, uint64_t value)
{
	fake_memory_write_u64(&stage->py.fake, frame + offset, value);
}

static void set_executable(struct stage *stage, uint64_t code)
{
	set_word(stage, stage->frame, stage->py.build.offsets.frame.executable, code);
}

/* Where the frame across the border stands. */
static void stand(struct stage *stage, remote_addr code, uint32_t unit)
{
	set_word(stage, stage->frame, stage->py.build.offsets.frame.instr_ptr,
		 code + stage->py.build.offsets.code.code_adaptive + 2ull * unit);
}

/* Whether its locals are being destroyed. */
static void clear(struct stage *stage, bool cleared)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;

	if (offsets->frame.stackpointer != OFFSET_ABSENT)
		set_word(stage, stage->frame, offsets->frame.stackpointer,
			 stage->frame + offsets->frame.localsplus + (cleared ? 0 : 8));
}

/* Have a function run at the border. */
static void run(struct stage *stage, remote_addr code)
{
	const struct fake_frame frame = {
		.executable = code, .previous = stage->caller, .unit = UNIT};

	fake_python_frame(&stage->py, stage->frame, &frame);
	clear(stage, false);
	fake_python_set_stack(&stage->py, stage->stack.thread_addr, stage->stack.chunk_addr,
			      stage->frame + 8ull * WORDS, stage->frame);
}

static const struct chunk_copy *copied(const struct stage *stage)
{
	return &stage->snapshot.threads[0]->stack.chunks[0];
}

/* The first ones learn where the chunk and the shim at the bottom are. */
static int try_tick(struct stage *stage)
{
	struct stack_copy *stack = &stage->snapshot.threads[0]->stack;
	struct frame_walk walk = {
		.build = &stage->py.build,
		.codes = &stage->codes,
		.clock = &stage->snapshot.interpreters[0].clock,
		.copy = stack,
		.list = &stage->list,
	};

	int err;

	cr_assert(zero(int, snapshot_take(&stage->snapshot)));
	err = frames_walk_up(&walk);
	if (err == -EAGAIN)
		cr_assert(zero(int, stack_copy_add_link(stack, stage->snapshot.memory,
							&stage->py.build.offsets,
							walk.wanted_link_addr)));
	stage->trimmed = walk.trimmed;
	cr_assert(zero(int, stack_copy_learn(stack, stage->snapshot.memory,
					     &stage->py.build.offsets, false)));
	return err;
}

static void tick(struct stage *stage)
{
	cr_assert(zero(int, try_tick(stage)));
}

static void learn(struct stage *stage)
{
	for (int i = 0; i < 16; i++) {
		run(stage, stage->a);
		(void)try_tick(stage);
	}
}

/* Run two functions in turn. */
static void alternate(struct stage *stage, remote_addr first, remote_addr second, int nr_ticks)
{
	for (int i = 0; i < nr_ticks; i++) {
		run(stage, i % 2 ? second : first);
		tick(stage);
	}
}

/* Until the border is known; all four functions have been seen. */
static void settle(struct stage *stage)
{
	alternate(stage, stage->c, stage->d, LONG);
	alternate(stage, stage->a, stage->b, LONG);
	cr_assert(eq(sz, copied(stage)->border_bytes, BORDER_BYTES));
	for (size_t i = 0; i < stage->snapshot.nr_ranges; i++)
		if (stage->snapshot.ranges[i].addr == stage->stack.chunk_addr)
			stage->piece = i;
	cr_assert(eq(u64, stage->snapshot.ranges[stage->piece - 1].addr,
		     stage->stack.chunk_addr + BORDER_BYTES));
}

static remote_addr innermost(const struct stage *stage)
{
	return stage->list.frames[stage->list.nr_frames - 1].executable;
}

/* ---- what was there at the instant of the first piece, and what happens until the other --- */

static void run_a(struct stage *stage)
{
	run(stage, stage->a);
}

static void run_c(struct stage *stage)
{
	run(stage, stage->c);
}

static void a_cleared(struct stage *stage)
{
	run(stage, stage->a);
	clear(stage, true);
}

static void c_returns(struct stage *stage)
{
	run(stage, stage->c);
	stand(stage, stage->c, RETURN_UNIT);
}

/* Left by an exception: nothing behind the border tells of it. */
static void c_gone(struct stage *stage)
{
	run(stage, stage->c);
	set_executable(stage, 0);
}

static void c_gone_again(struct stage *stage)
{
	c_gone(stage);
	tick(stage);
}

static void run_inner(struct stage *stage)
{
	const struct fake_frame frame = {
		.executable = stage->inner, .previous = stage->frame, .unit = UNIT};

	run(stage, stage->c);
	fake_python_frame(&stage->py, stage->frame + 8ull * WORDS, &frame);
	set_executable(stage, 0);
	tick(stage);
}

static void run_unknown(struct stage *stage)
{
	run(stage, stage->a);
	stand(stage, stage->below, UNIT);
}

static void pop(struct stage *stage)
{
	set_executable(stage, 0);
}

static void call_b(struct stage *stage)
{
	set_executable(stage, stage->b);
}

static void change_caller(struct stage *stage)
{
	set_word(stage, stage->caller, stage->py.build.offsets.frame.executable, stage->inner);
	set_word(stage, stage->caller, stage->py.build.offsets.frame.instr_ptr,
		 stage->inner + stage->py.build.offsets.code.code_adaptive + 2ull * UNIT);
}

static void call_by_other(struct stage *stage)
{
	set_word(stage, stage->frame, stage->py.build.offsets.frame.previous,
		 stage->caller - 8ull * WORDS);
}

static remote_addr is_a(const struct stage *stage)
{
	return stage->a;
}

static remote_addr is_c(const struct stage *stage)
{
	return stage->c;
}

static remote_addr is_caller(const struct stage *stage)
{
	return stage->below;
}

static remote_addr is_inner(const struct stage *stage)
{
	return stage->inner;
}

Test(page_border, judges)
{
	static const struct {
		char name[32];
		void (*before)(struct stage *stage);
		void (*meanwhile)(struct stage *stage);
		remote_addr (*innermost)(const struct stage *stage);
		uint32_t nr_frames;
		bool trimmed;
	} cases[] = {
		{"nothing", run_a, NULL, is_a, NR_BELOW + 1, false},
		{"it returns", run_a, pop, is_a, NR_BELOW + 1, false},
		{"another is called", run_a, call_b, is_a, NR_BELOW + 1, false},
		{"locals were destroyed", a_cleared, call_b, is_caller, NR_BELOW, false},
		{"no locals, it returns", run_c, pop, is_c, NR_BELOW + 1, false},
		{"no locals, another", run_c, call_b, is_c, NR_BELOW + 1, false},
		{"no locals, has returned", c_returns, call_b, is_caller, NR_BELOW, false},
		{"left by an exception", c_gone_again, NULL, is_caller, NR_BELOW, false},
		{"calls another", run_inner, NULL, is_inner, NR_BELOW + 2, false},
		{"an instruction of no code", run_unknown, pop, is_caller, NR_BELOW, true},
		{"the caller changes", run_a, change_caller, is_inner, NR_BELOW, true},
		{"called by another one", run_a, call_by_other, is_caller, NR_BELOW, true},
	};

	for (uint32_t minor = 14; minor <= 15; minor++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			struct stage stage;

			stage_init(&stage, minor);
			learn(&stage);
			settle(&stage);
			cases[i].before(&stage);
			stage.meanwhile = cases[i].meanwhile;
			tick(&stage);
			cr_expect(eq(sz, copied(&stage)->border_bytes, BORDER_BYTES));
			cr_expect(eq(u64, innermost(&stage), cases[i].innermost(&stage)),
				  "3.%u, %s", minor, cases[i].name);
			cr_expect(eq(u32, stage.list.nr_frames, cases[i].nr_frames), "3.%u, %s",
				  minor, cases[i].name);
			cr_expect(eq(int, stage.trimmed, cases[i].trimmed), "3.%u, %s", minor,
				  cases[i].name);
			stage_done(&stage);
		}
	}
}

/* What was told from a copy in two pieces is looked at again, whatever its bytes say. */
Test(page_border, same_bytes)
{
	struct stage stage;

	stage_init(&stage, 15);
	learn(&stage);
	settle(&stage);
	c_gone(&stage);
	tick(&stage);
	cr_expect(eq(u64, innermost(&stage), stage.c));
	for (int i = 0; i < LONG; i++) {
		tick(&stage);
		cr_expect(eq(u32, stage.list.nr_frames, NR_BELOW), "%d", i);
	}
	stage_done(&stage);
}

/* ---- when a copy is taken in two pieces ------------------------------------------------ */

static void run_one(struct stage *stage)
{
	for (int i = 0; i < LONG; i++) {
		run(stage, stage->a);
		tick(stage);
	}
}

static void run_callers(struct stage *stage)
{
	for (int i = 0; i < LONG; i++) {
		set_word(stage, stage->caller, stage->py.build.offsets.frame.executable,
			 i % 2 ? stage->below : stage->inner);
		set_word(stage, stage->caller, stage->py.build.offsets.frame.instr_ptr,
			 (i % 2 ? stage->below : stage->inner) +
				 stage->py.build.offsets.code.code_adaptive + 2ull * UNIT);
		run(stage, i % 3 ? stage->a : stage->b);
		tick(stage);
	}
}

/* The frame below the caller stands now here, now there. */
static void run_callers_caller(struct stage *stage)
{
	for (int i = 0; i < LONG; i++) {
		set_word(stage, stage->caller - 8ull * WORDS,
			 stage->py.build.offsets.frame.instr_ptr,
			 stage->below + stage->py.build.offsets.code.code_adaptive +
				 2ull * (uint32_t)(UNIT + i % 2));
		run(stage, i % 3 ? stage->a : stage->b);
		tick(stage);
	}
}

static void run_both(struct stage *stage)
{
	alternate(stage, stage->a, stage->b, LONG);
}

static void run_briefly(struct stage *stage)
{
	alternate(stage, stage->a, stage->b, 32);
}

/* A generator was seen to run, which may call what lies at the border. */
static void run_generator(struct stage *stage)
{
	struct stack_copy *stack = &stage->snapshot.threads[0]->stack;
	const remote_addr gen = fake_stack_resume(&stage->stack, stage->inner);

	for (int i = 0; i < LONG; i++) {
		run(stage, i % 2 ? stage->a : stage->b);
		if (!stack_copy_find_link(stack, gen))
			cr_assert(zero(int, stack_copy_add_link(stack, stage->snapshot.memory,
								&stage->py.build.offsets, gen)));
		tick(stage);
	}
}

Test(page_border, is_chosen)
{
	static const struct {
		char name[32];
		uint32_t minor;
		void (*run)(struct stage *stage);
		size_t border_bytes;
	} cases[] = {
		{"two in turn", 14, run_both, BORDER_BYTES},
		{"two in turn", 15, run_both, BORDER_BYTES},
		{"not for long yet", 15, run_briefly, 0},
		{"one and the same", 15, run_one, 0},
		{"callers in turn", 15, run_callers, 0},
		{"the caller's caller changes", 15, run_callers_caller, 0},
		{"a generator", 15, run_generator, 0},
		{"popped frames stay", 13, run_both, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct stage stage;

		stage_init(&stage, cases[i].minor);
		learn(&stage);
		cases[i].run(&stage);
		cr_expect(eq(sz, copied(&stage)->border_bytes, cases[i].border_bytes), "3.%u, %s",
			  cases[i].minor, cases[i].name);
		stage_done(&stage);
	}
}

/*
 * In a copy of one piece what tells that locals are being destroyed is of another page, copied
 * later, than the executable.
 */
Test(page_border, one_piece)
{
	struct stage stage;

	stage_init(&stage, 15);
	learn(&stage);
	run(&stage, stage.a);
	clear(&stage, true);
	tick(&stage);
	tick(&stage);
	cr_expect(zero(sz, copied(&stage)->border_bytes));
	cr_expect(eq(u64, innermost(&stage), stage.a));
	stage_done(&stage);
}
