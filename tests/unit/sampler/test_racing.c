/* SPDX-License-Identifier: MIT */
#include "sampler/racing/racing.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "tests/support/fake_objects.h"
#include "tests/support/fake_stack.h"

enum { CHUNK_BYTES = 16384, WORDS = 20 };

/* A fake interpreter with one thread, whose stack may change while it is read. */
struct stage {
	struct fake_python py;
	struct fake_stack stack;
	remote_addr f, g; /* code objects with frames of WORDS */
	remote_addr long_one;
	struct code_cache codes;
	struct racing racing;
	struct frame_list list;
	struct thread_list threads;
	enum sample_loss loss; /* reason of the last walk */
	uint64_t tick;
};

static void stage_init(struct stage *stage, uint32_t minor)
{
	const struct fake_code f = {.name = "f", .frame_words = WORDS, .first_traceable = 1};
	const struct fake_code g = {.name = "g", .frame_words = WORDS, .first_traceable = 1};
	const struct fake_code long_one = {.name = "l", .frame_words = WORDS + 2};

	*stage = (struct stage){.tick = 0};
	fake_python_init(&stage->py, minor);
	stage->f = fake_python_code(&stage->py, &f);
	stage->g = fake_python_code(&stage->py, &g);
	stage->long_one = fake_python_code(&stage->py, &long_one);
	fake_stack_init(&stage->stack, &stage->py, 1000, CHUNK_BYTES);
	code_cache_init(&stage->codes, &stage->py.fake.memory, &stage->py.build);
}

static void stage_done(struct stage *stage)
{
	racing_done(&stage->racing);
	frame_list_done(&stage->list);
	thread_list_done(&stage->threads);
	code_cache_done(&stage->codes);
	fake_python_done(&stage->py);
}

static remote_addr call(struct stage *stage, remote_addr code)
{
	return fake_stack_call(&stage->stack, code, WORDS);
}

static int walk(struct stage *stage)
{
	const struct code_clock clock = fake_python_clock(&stage->py, ++stage->tick);

	if (!stage->threads.nr_threads)
		cr_assert(zero(int,
			       thread_list_read(&stage->py.fake.memory, &stage->py.build,
						stage->py.runtime_addr, false, &stage->threads)));
	return racing_walk(&stage->racing, &stage->codes, &clock, stage->threads.threads,
			   &stage->list, &stage->loss);
}

/* Expect exactly the first nr frames of the stack as it was built. */
static void expect_frames(struct stage *stage, size_t nr, const char *name)
{
	cr_expect(zero(int, walk(stage)), "%s, 3.%u", name, stage->py.minor);
	cr_expect(eq(sz, stage->list.nr_frames, nr), "%s, 3.%u", name, stage->py.minor);
	for (size_t i = 0; i < nr && i < stage->list.nr_frames; i++)
		cr_expect(eq(u64, stage->list.frames[i].addr, stage->stack.expected[i]),
			  "%s, 3.%u: frame %zu", name, stage->py.minor, i);
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

Test(racing, supports_builds_of_3_11_and_later_with_a_gil)
{
	static const struct {
		uint32_t minor;
		bool is_supported;
	} cases[] = {
		{6, false},
		{10, false},
		{11, true},
		{12, true},
		{13, true},
		{15, true},
		{FAKE_MAIN, true},
		{FAKE_FREE_THREADED + 13, false},
		{FAKE_FREE_THREADED + 15, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fake_python py;

		fake_python_init(&py, cases[i].minor);
		cr_expect(eq(int, racing_supports(&py.build), cases[i].is_supported), "case %zu",
			  i);
		fake_python_done(&py);
	}
}

/* Stacks as they were built. */

static void build_empty(struct stage *stage)
{
	(void)stage;
}

static void build_plain(struct stage *stage)
{
	call(stage, stage->f);
	call(stage, stage->g);
	call(stage, stage->g);
}

/* Before 3.14 the frame that called into C counts as executing. */
static void build_callback(struct stage *stage)
{
	call(stage, stage->f);
	fake_stack_call_c(&stage->stack);
	call(stage, stage->g);
	fake_stack_call_c(&stage->stack);
	call(stage, stage->f);
}

static void build_chunks(struct stage *stage)
{
	call(stage, stage->f);
	fake_stack_new_chunk(&stage->stack, CHUNK_BYTES);
	call(stage, stage->g);
	call(stage, stage->f);
	fake_stack_new_chunk(&stage->stack, 2 * CHUNK_BYTES);
	call(stage, stage->g);
}

static const struct {
	const char *name;
	void (*build)(struct stage *stage);
	size_t nr_chunks;
} stacks[] = {
	{"empty", build_empty, 1},
	{"plain", build_plain, 1},
	{"called back from C", build_callback, 1},
	{"in chunks", build_chunks, 3},
};

enum { NR_STACKS = sizeof(stacks) / sizeof(stacks[0]) };

static void expect_stack(uint32_t minor, size_t i)
{
	struct stage stage;
	uint64_t nr_calls;

	stage_init(&stage, minor);
	stacks[i].build(&stage);
	fake_stack_finish(&stage.stack);
	expect_frames(&stage, stage.stack.nr_expected, stacks[i].name);
	/*
	 * Known code is not read again. Reads: the state; it and the chunk; two for each further
	 * chunk.
	 */
	nr_calls = stage.py.fake.nr_calls;
	stage.tick--;
	expect_frames(&stage, stage.stack.nr_expected, stacks[i].name);
	cr_expect(eq(u64, stage.py.fake.nr_calls - nr_calls, 2 * stacks[i].nr_chunks), "%s, 3.%u",
		  stacks[i].name, minor);
	stage_done(&stage);
}

Test(racing, finds_frames_of_the_data_stack)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++)
		for (size_t i = 0; i < NR_STACKS && fake_stack_minors[v] < FAKE_FREE_THREADED; i++)
			expect_stack(fake_stack_minors[v], i);
}

/* A generator's time counts for its caller. */
Test(racing, omits_generators)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;

		if (fake_stack_minors[v] >= FAKE_FREE_THREADED)
			continue;
		stage_init(&stage, fake_stack_minors[v]);
		call(&stage, stage.f);
		(void)fake_stack_resume(&stage.stack, stage.g);
		fake_stack_finish(&stage.stack);
		expect_frames(&stage, 1, "innermost");
		stage.stack.expected[1] = call(&stage, stage.g);
		fake_stack_finish(&stage.stack);
		expect_frames(&stage, 2, "in between");
		stage_done(&stage);
	}
}

/* The frames are popped after the thread state was read. */
Test(racing, omits_popped_frames)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;
		remote_addr caller, middle, leaf;

		if (fake_stack_minors[v] >= FAKE_FREE_THREADED)
			continue;
		stage_init(&stage, fake_stack_minors[v]);
		caller = call(&stage, stage.f);
		middle = call(&stage, stage.g);
		leaf = call(&stage, stage.g);
		fake_stack_finish(&stage.stack);
		fake_stack_pop(&stage.stack, leaf, middle);
		expect_frames(&stage, 2, "one");
		fake_stack_pop(&stage.stack, middle, caller);
		expect_frames(&stage, 1, "two");
		stage_done(&stage);
	}
}

/* Frames above one that has not begun are left over from an earlier call. */
Test(racing, omits_frames_above_a_new_one)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;
		struct fake_frame begins = {.unit = 0, .stacktop = FAKE_SUSPENDED};

		if (fake_stack_minors[v] >= FAKE_FREE_THREADED)
			continue;
		stage_init(&stage, fake_stack_minors[v]);
		begins.previous = call(&stage, stage.f);
		begins.executable = stage.g;
		call(&stage, stage.g);
		call(&stage, stage.g);
		fake_stack_finish(&stage.stack);
		fake_python_frame(&stage.py, stage.stack.expected[1], &begins);
		expect_frames(&stage, 2, "called");
		cr_expect(stage.list.frames[1].is_new, "3.%u", stage.py.minor);
		stage_done(&stage);
	}
}

/* Changes to the thread between the two reads of its state. */

static void push(struct stage *stage)
{
	call(stage, stage->g);
	fake_stack_finish(&stage->stack);
}

static void push_much(struct stage *stage)
{
	for (int i = 0; i < 16; i++)
		push(stage);
}

static void push_chunk(struct stage *stage)
{
	fake_stack_new_chunk(&stage->stack, CHUNK_BYTES);
	push(stage);
}

static void put_garbage(struct stage *stage)
{
	set_word(stage, stage->stack.caller_addr, stage->py.build.offsets.frame.executable,
		 stage->py.none_addr);
}

/* Replace the last frame by one of other code, which needs more room. */
static void put_longer(struct stage *stage)
{
	const struct fake_frame frame = {
		.executable = stage->long_one, .unit = 1, .stacktop = FAKE_EXECUTING};

	fake_python_frame(&stage->py, stage->stack.caller_addr, &frame);
}

static void put_owner(struct stage *stage)
{
	fake_memory_write_u8(&stage->py.fake,
			     stage->stack.caller_addr + stage->py.build.offsets.frame.owner,
			     OWNED_BY_GENERATOR);
}

static void shorten(struct stage *stage)
{
	set_word(stage, stage->stack.thread_addr, stage->py.build.offsets.thread.datastack_top,
		 stage->stack.chunk_addr + stage->py.build.offsets.chunk.data + 16);
}

static void end_thread(struct stage *stage)
{
	set_word(stage, stage->stack.thread_addr, stage->py.build.offsets.thread.thread_id, 4711);
}

static const struct {
	const char *name;
	void (*change)(struct stage *stage);
	int err;
	size_t nr_frames; /* if err is 0 */
} changes[] = {
	{"a call", push, 0, 3},
	{"more than is copied", push_much, -EBADMSG, 0},
	{"another chunk", push_chunk, -EBADMSG, 0},
	{"no code", put_garbage, -EBADMSG, 0},
	{"a longer frame", put_longer, -EBADMSG, 0},
	{"a frame of the heap", put_owner, -EBADMSG, 0},
	{"half a frame", shorten, -EBADMSG, 0},
	{"another thread", end_thread, -ENOENT, 0},
};

enum { NR_CHANGES = sizeof(changes) / sizeof(changes[0]) };

/* A change made before the second read of everything. */
struct change {
	struct stage *stage;
	void (*change)(struct stage *stage);
	uint32_t nr_reads;
};

static void before_range(struct fake_memory *fake, size_t range_index)
{
	struct change *change = fake->context;

	if (range_index == 0 && ++change->nr_reads == 2)
		change->change(change->stage);
}

static void expect_change(uint32_t minor, size_t i)
{
	struct stage stage;
	struct change change = {&stage, changes[i].change, 0};

	stage_init(&stage, minor);
	call(&stage, stage.f);
	call(&stage, stage.f);
	fake_stack_finish(&stage.stack);
	cr_assert(zero(int, walk(&stage)));
	stage.py.fake.context = &change;
	stage.py.fake.before_range = before_range;
	cr_expect(eq(int, walk(&stage), changes[i].err), "%s, 3.%u", changes[i].name, minor);
	if (changes[i].err == -EBADMSG)
		cr_expect(eq(int, stage.loss, LOSS_MOVED), "%s, 3.%u", changes[i].name, minor);
	if (!changes[i].err)
		cr_expect(eq(uint, stage.list.nr_frames, changes[i].nr_frames), "%s, 3.%u",
			  changes[i].name, minor);
	stage.py.fake.before_range = NULL;
	stage_done(&stage);
}

Test(racing, drops_inconsistent_stacks)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++)
		for (size_t i = 0; i < NR_CHANGES && fake_stack_minors[v] < FAKE_FREE_THREADED; i++)
			expect_change(fake_stack_minors[v], i);
}

Test(racing, long_and_cyclic_chunks_are_bounded)
{
	struct stage stage;
	remote_addr chunk_addr;
	uint64_t nr_calls;

	stage_init(&stage, 14);
	call(&stage, stage.f);
	chunk_addr = stage.stack.chunk_addr;
	fake_stack_new_chunk(&stage.stack, CHUNK_BYTES);
	call(&stage, stage.g);
	fake_stack_finish(&stage.stack);
	expect_frames(&stage, 2, "as it was");
	set_word(&stage, chunk_addr, stage.py.build.offsets.chunk.top, UINT64_MAX / 8);
	expect_lost(&stage, LOSS_TOO_DEEP, "a long chunk");
	set_word(&stage, chunk_addr, stage.py.build.offsets.chunk.previous, chunk_addr);
	set_word(&stage, chunk_addr, stage.py.build.offsets.chunk.top, 0);
	nr_calls = stage.py.fake.nr_calls;
	expect_lost(&stage, LOSS_TOO_DEEP, "a circle");
	cr_expect(lt(u64, stage.py.fake.nr_calls - nr_calls, 1000));
	set_word(&stage, chunk_addr, stage.py.build.offsets.chunk.previous, 16);
	expect_lost(&stage, LOSS_MOVED, "a chunk that is not there");
	set_word(&stage, stage.stack.thread_addr, stage.py.build.offsets.thread.datastack_top,
		 stage.stack.chunk_addr + RACING_MAX_BYTES);
	expect_lost(&stage, LOSS_TOO_DEEP, "a long newest chunk");
	set_word(&stage, stage.stack.thread_addr, stage.py.build.offsets.thread.datastack_top, 8);
	expect_lost(&stage, LOSS_MOVED, "a chunk that ends before it begins");
	set_word(&stage, stage.stack.thread_addr, stage.py.build.offsets.thread.datastack_chunk, 0);
	expect_frames(&stage, 0, "a thread without a chunk");
	stage_done(&stage);
}
