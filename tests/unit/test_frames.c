/* SPDX-License-Identifier: MIT */
#include "sampler/python/frames.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "sampler/snapshot.h"
#include "tests/support/fake_objects.h"
#include "tests/support/fake_stack.h"

enum { CHUNK_BYTES = 16384, WORDS = 20, MAX_TRIES = 64, RETURN_UNIT = 6 };

/* One fake interpreter with a thread, and both walkers on it. */
struct stage {
	struct fake_python py;
	struct fake_stack stack;
	remote_addr f, g, h; /* code objects, WORDS a frame; they return at RETURN_UNIT */
	remote_addr gen;     /* a generator's */
	struct snapshot snapshot;
	struct code_cache codes;
	struct frame_list list;
	struct frame_list exact;
};

static remote_addr make_code(struct fake_python *py, const char *name)
{
	return fake_python_code(py, &(struct fake_code){.name = name,
							.frame_words = WORDS,
							.nr_units = 8,
							.first_traceable = 1,
							.return_unit = RETURN_UNIT});
}

static void stage_init(struct stage *stage, uint32_t minor, uint64_t chunk_bytes)
{
	*stage = (struct stage){0};
	fake_python_init(&stage->py, minor);
	stage->f = make_code(&stage->py, "f");
	stage->g = make_code(&stage->py, "g");
	stage->h = make_code(&stage->py, "h");
	stage->gen = make_code(&stage->py, "gen");
	fake_stack_init(&stage->stack, &stage->py, 1000, chunk_bytes);
	code_cache_init(&stage->codes, &stage->py.fake.memory, &stage->py.build);
	cr_assert(zero(int, snapshot_init(&stage->snapshot, &stage->py.fake.memory,
					  &stage->py.build, stage->py.runtime_addr)));
}

static void stage_done(struct stage *stage)
{
	frame_list_done(&stage->list);
	frame_list_done(&stage->exact);
	code_cache_done(&stage->codes);
	snapshot_done(&stage->snapshot);
	fake_python_done(&stage->py);
}

static remote_addr call(struct stage *stage, remote_addr code)
{
	return fake_stack_call(&stage->stack, code, WORDS);
}

/* The walk over the copy; links that are asked for are copied, and counted. */
static int walk_copy(struct stage *stage, enum sample_loss *ret_loss, int *ret_nr_added)
{
	struct snapshot_thread *thread = stage->snapshot.threads[0];
	struct frame_walk walk = {
		.build = &stage->py.build,
		.codes = &stage->codes,
		.clock = &stage->snapshot.interpreters[0].clock,
		.copy = &thread->stack,
		.list = &stage->list,
	};
	int err = -EAGAIN;

	*ret_nr_added = 0;
	for (int i = 0; i < MAX_TRIES && err == -EAGAIN; i++) {
		err = frames_walk_up(&walk);
		if (err != -EAGAIN)
			break;
		if (stack_copy_add_link(&thread->stack, stage->snapshot.memory,
					&stage->py.build.offsets, walk.wanted_link_addr) != 0)
			return -E2BIG;
		++*ret_nr_added;
	}
	*ret_loss = walk.loss;
	return err;
}

/* One tick, as the sampler takes it. */
static int tick(struct stage *stage, enum sample_loss *ret_loss, int *ret_nr_added)
{
	int learn_err, err = snapshot_take(&stage->snapshot);

	if (err || !stage->snapshot.nr_threads)
		return err ? err : -ENOENT;
	err = walk_copy(stage, ret_loss, ret_nr_added);
	learn_err = stack_copy_learn(&stage->snapshot.threads[0]->stack, stage->snapshot.memory,
				     &stage->py.build.offsets, err && *ret_loss == LOSS_GREW);
	return learn_err ? learn_err : err;
}

/* Ticks until nothing new was learnt at one: chunks, the current frame (3.11), links. */
static int walk_up(struct stage *stage, enum sample_loss *ret_loss)
{
	enum { NR_TICKS_TO_LEARN = 3, MAX_TICKS = 8 };
	int nr_added = 0;
	int err = 0;

	if (stage->snapshot.stale)
		err = snapshot_refresh(&stage->snapshot);
	for (int i = 0; i < MAX_TICKS && (i < NR_TICKS_TO_LEARN || nr_added); i++) {
		if (!err || err == -EBADMSG)
			err = tick(stage, ret_loss, &nr_added);
	}
	return err;
}

static int walk_exact(struct stage *stage)
{
	const struct stack_copy *copy = &stage->snapshot.threads[0]->stack;

	return frames_walk_exact(&stage->codes, &stage->snapshot.interpreters[0].clock,
				 copy->current_frame_addr, copy->base_frame_addr, &stage->exact);
}

static void check_list(const struct frame_list *list, const struct fake_stack *stack,
		       const char *name, uint32_t minor, const char *walker)
{
	size_t nr = 0;

	for (uint32_t i = 0; i < list->nr_frames; i++) {
		if (!frame_visible(list, i))
			continue;
		if (nr < stack->nr_expected)
			cr_expect(eq(u64, list->frames[i].addr, stack->expected[nr]),
				  "%s, 3.%u, %s: frame %zu", name, minor, walker, nr);
		nr++;
	}
	cr_expect(eq(sz, nr, stack->nr_expected), "%s, 3.%u, %s", name, minor, walker);
}

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

static void build_spare_chunk(struct stage *stage)
{
	build_chunks(stage);
	fake_stack_pop(&stage->stack, stage->stack.expected[4], stage->stack.expected[3], stage->f,
		       RETURN_UNIT);
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

static void build_generator_inside(struct stage *stage)
{
	call(stage, stage->f);
	fake_stack_resume(&stage->stack, stage->gen);
	call(stage, stage->g);
	fake_stack_call_c(&stage->stack);
	fake_stack_resume(&stage->stack, stage->gen);
	fake_stack_resume(&stage->stack, stage->gen);
	call(stage, stage->h);
}

static void build_generator_on_top(struct stage *stage)
{
	call(stage, stage->f);
	call(stage, stage->g);
	fake_stack_resume(&stage->stack, stage->gen);
}

static void build_generator_from_c_on_top(struct stage *stage)
{
	call(stage, stage->f);
	fake_stack_call_c(&stage->stack);
	fake_stack_resume(&stage->stack, stage->gen);
}

static void build_generators_on_top(struct stage *stage)
{
	call(stage, stage->f);
	for (int i = 0; i < 6; i++) {
		if (i == 3)
			fake_stack_call_c(&stage->stack);
		fake_stack_resume(&stage->stack, stage->gen);
	}
}

static void build_generator_alone(struct stage *stage)
{
	fake_stack_resume(&stage->stack, stage->gen);
}

/* Frames of an extension that run a code object and anything, of each owner, inside and on top. */
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
	fake_stack_link(&stage->stack, stage->h, FAKE_OWNED_BY_THREAD);
	fake_stack_link(&stage->stack, frame, FAKE_SHIM);
}

/* The same between a thread's first frame and the bottom, and with generators. */
static void build_linked_below(struct stage *stage)
{
	const remote_addr frame = fake_object(&stage->py, "mod.Frame", NULL, 0);

	stage->stack.previous_addr = fake_python_base(&stage->py, stage->stack.thread_addr);
	fake_stack_link(&stage->stack, frame, FAKE_OWNED_BY_THREAD);
	fake_stack_call_c(&stage->stack);
	call(stage, stage->f);
	fake_stack_link(&stage->stack, frame, FAKE_OWNED_BY_THREAD);
	fake_stack_call_c(&stage->stack);
	fake_stack_resume(&stage->stack, stage->gen);
	call(stage, stage->g);
	fake_stack_resume(&stage->stack, stage->gen);
	fake_stack_link(&stage->stack, frame, FAKE_OWNED_BY_THREAD);
}

static void build_linked_alone(struct stage *stage)
{
	stage->stack.previous_addr = fake_python_base(&stage->py, stage->stack.thread_addr);
	fake_stack_link(&stage->stack, fake_object(&stage->py, "mod.Frame", NULL, 0),
			FAKE_OWNED_BY_THREAD);
}

/* g's locals are destroyed: __del__ is called, and its links jump over g to f. */
static void build_dying(struct stage *stage)
{
	remote_addr f = call(stage, stage->f);

	call(stage, stage->g);
	stage->stack.nr_expected--;
	stage->stack.previous_addr = f;
	fake_stack_call_c(&stage->stack);
	call(stage, stage->h);
}

/* Begin to destroy the locals of g, which f, the current frame by now, has called. */
static void clear(struct stage *stage, remote_addr g)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;

	if (offsets->frame.stackpointer != OFFSET_ABSENT)
		fake_memory_write_u64(&stage->py.fake, g + offsets->frame.stackpointer,
				      g + offsets->frame.localsplus);
	else
		fake_memory_write_u32(&stage->py.fake, g + offsets->frame.stacktop, 0);
	stage->stack.nr_expected = 1;
	stage->stack.previous_addr = stage->stack.expected[0];
}

static void build_cleared(struct stage *stage)
{
	call(stage, stage->f);
	clear(stage, call(stage, stage->g));
}

/* h is what was there before, or came later than the copy of g. */
static void build_called_by_cleared(struct stage *stage)
{
	remote_addr g;

	call(stage, stage->f);
	g = call(stage, stage->g);
	call(stage, stage->h);
	clear(stage, g);
}

/* Being called, and not begun: its instruction is before the first traceable one. */
static void make_incomplete(struct stage *stage, remote_addr frame, remote_addr code)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;

	fake_memory_write_u64(&stage->py.fake, frame + offsets->frame.instr_ptr,
			      code + offsets->code.code_adaptive);
}

static void build_incomplete_leaf(struct stage *stage)
{
	call(stage, stage->f);
	make_incomplete(stage, call(stage, stage->g), stage->g);
	stage->stack.nr_expected--;
}

/* As the frame of 3.13's __init__ shim, which runs only cleanup and is not shown. */
static void build_incomplete_inside(struct stage *stage)
{
	call(stage, stage->f);
	make_incomplete(stage, call(stage, stage->g), stage->g);
	stage->stack.nr_expected--;
	call(stage, stage->h);
}

static void build_popped(struct stage *stage)
{
	build_plain(stage);
	for (size_t i = 3; i > 1; i--)
		fake_stack_pop(&stage->stack, stage->stack.expected[i],
			       stage->stack.expected[i - 1], i == 3 ? stage->h : stage->f,
			       RETURN_UNIT);
}

/*
 * The frame has returned, and the caller is the current one, but executes not yet;
 * the data stack still reaches over both.
 */
static void build_returning(struct stage *stage)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;
	remote_addr caller, top_addr;

	build_plain(stage);
	caller = stage->stack.expected[2];
	top_addr = stage->stack.next_addr;
	fake_stack_pop(&stage->stack, stage->stack.expected[3], caller, stage->h, RETURN_UNIT);
	stage->stack.next_addr = top_addr;
	if (offsets->frame.stacktop != OFFSET_ABSENT)
		fake_memory_write_u32(&stage->py.fake, caller + offsets->frame.stacktop,
				      FAKE_SUSPENDED);
}

/* g was called by a generator that still runs, and has returned. */
static void build_popped_above_generator(struct stage *stage)
{
	call(stage, stage->f);
	remote_addr gen = fake_stack_resume(&stage->stack, stage->gen);
	remote_addr g = call(stage, stage->g);
	fake_stack_pop(&stage->stack, g, gen, stage->g, RETURN_UNIT);
}

/* The same, and g's code object is gone: what it left must not hide the generator. */
static void build_freed_above_generator(struct stage *stage)
{
	build_popped_above_generator(stage);
	fake_python_code_free(&stage->py, stage->g);
}

/*
 * The same while the next function is being called from the generator: its
 * executable and links are written, its instruction is still what was there.
 */
static void build_called_above_generator(struct stage *stage)
{
	remote_addr next;

	build_popped_above_generator(stage);
	next = stage->stack.next_addr;
	fake_python_frame(&stage->py, next,
			  &(struct fake_frame){.executable = stage->h,
					       .previous = stage->stack.previous_addr,
					       .unit = 1000});
}

static const struct {
	char name[32];
	void (*build)(struct stage *stage);
	uint64_t chunk_bytes;
	/* 3.11 has no shims: a generator that hangs on nothing looks suspended. */
	bool needs_shims;
} scenarios[] = {
	{"plain", build_plain, CHUNK_BYTES, false},
	{"no frame", build_empty, CHUNK_BYTES, false},
	{"no frame, no chunk", build_empty, 0, false},
	{"chunks", build_chunks, CHUNK_BYTES, false},
	{"spare chunk", build_spare_chunk, CHUNK_BYTES, false},
	{"shims", build_shim, CHUNK_BYTES, false},
	{"generators inside", build_generator_inside, CHUNK_BYTES, false},
	{"generator on top", build_generator_on_top, CHUNK_BYTES, false},
	{"generator from C on top", build_generator_from_c_on_top, CHUNK_BYTES, false},
	{"generators on top", build_generators_on_top, CHUNK_BYTES, false},
	{"generator alone", build_generator_alone, CHUNK_BYTES, true},
	{"generator alone, no chunk", build_generator_alone, 0, true},
	{"linked", build_linked, CHUNK_BYTES, true},
	{"linked below", build_linked_below, CHUNK_BYTES, false},
	{"linked alone", build_linked_alone, CHUNK_BYTES, false},
	{"linked alone, no chunk", build_linked_alone, 0, false},
	{"dying", build_dying, CHUNK_BYTES, false},
	{"cleared", build_cleared, CHUNK_BYTES, false},
	{"called by cleared", build_called_by_cleared, CHUNK_BYTES, false},
	{"incomplete leaf", build_incomplete_leaf, CHUNK_BYTES, false},
	{"incomplete inside", build_incomplete_inside, CHUNK_BYTES, false},
	{"popped", build_popped, CHUNK_BYTES, false},
	{"returning", build_returning, CHUNK_BYTES, false},
	{"popped above generator", build_popped_above_generator, CHUNK_BYTES, false},
	{"freed above generator", build_freed_above_generator, CHUNK_BYTES, false},
	{"called above generator", build_called_above_generator, CHUNK_BYTES, false},
};

enum { NR_SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

Test(frames, both_walkers_see_the_stack_that_was_built)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		for (size_t i = 0; i < NR_SCENARIOS; i++) {
			uint32_t minor = fake_python_minors[v];
			enum sample_loss loss = LOSS_LINK;
			struct stage stage;

			if (scenarios[i].needs_shims && minor == 11)
				continue;
			stage_init(&stage, minor, scenarios[i].chunk_bytes);
			scenarios[i].build(&stage);
			fake_stack_finish(&stage.stack);
			cr_expect(zero(int, walk_up(&stage, &loss)), "%s, 3.%u", scenarios[i].name,
				  minor);
			check_list(&stage.list, &stage.stack, scenarios[i].name, minor, "up");
			cr_expect(zero(int, walk_exact(&stage)), "%s, 3.%u", scenarios[i].name,
				  minor);
			check_list(&stage.exact, &stage.stack, scenarios[i].name, minor, "exact");
			stage_done(&stage);
		}
	}
}

/* A frame that was there at the last tick is looked at again, and so is the next at its place. */
Test(frames, frame_that_is_cleared_between_two_ticks_is_left_out)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		enum sample_loss loss = LOSS_LINK;
		int nr_added;
		struct stage stage;
		remote_addr g;

		stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
		call(&stage, stage.f);
		g = call(&stage, stage.g);
		fake_stack_finish(&stage.stack);
		cr_expect(zero(int, walk_up(&stage, &loss)));
		check_list(&stage.list, &stage.stack, "before", fake_python_minors[v], "up");
		clear(&stage, g);
		cr_expect(zero(int, tick(&stage, &loss, &nr_added)));
		check_list(&stage.list, &stage.stack, "cleared", fake_python_minors[v], "up");
		stage.stack.next_addr = g;
		call(&stage, stage.g);
		fake_stack_finish(&stage.stack);
		if (stage.py.build.offsets.frame.stackpointer != OFFSET_ABSENT)
			fake_memory_write_u64(&stage.py.fake,
					      g + stage.py.build.offsets.frame.stackpointer,
					      g + stage.py.build.offsets.frame.localsplus + 8);
		cr_expect(zero(int, tick(&stage, &loss, &nr_added)));
		check_list(&stage.list, &stage.stack, "called again", fake_python_minors[v], "up");
		stage_done(&stage);
	}
}

/* The copy is taken of a stack that grows afterwards, past the window that was learnt. */
Test(frames, stack_beyond_the_copied_window_is_counted_as_grown)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		enum sample_loss loss = LOSS_LINK;
		struct stage stage;
		int nr_added;

		stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
		build_plain(&stage);
		fake_stack_finish(&stage.stack);
		cr_assert(zero(int, walk_up(&stage, &loss)));
		/* Two epochs forget that all of the chunk was wanted at first. */
		for (int i = 0; i < 2048; i++) {
			cr_assert(zero(int, snapshot_take(&stage.snapshot)));
			cr_assert(zero(int, stack_copy_learn(&stage.snapshot.threads[0]->stack,
							     stage.snapshot.memory,
							     &stage.py.build.offsets, false)));
		}
		for (int i = 0; i < 20; i++)
			call(&stage, stage.f);
		fake_stack_finish(&stage.stack);
		cr_expect(eq(int, tick(&stage, &loss, &nr_added), -EBADMSG));
		cr_expect(eq(int, loss, LOSS_GREW));
		cr_expect(zero(int, tick(&stage, &loss, &nr_added)));
		check_list(&stage.list, &stage.stack, "grown", fake_python_minors[v], "up");
		stage_done(&stage);
	}
}

/* Three chunks, the second and third of which are full but for the frames that they hold. */
static void build_three_chunks(struct stage *stage, remote_addr ret_chunks[3])
{
	ret_chunks[0] = stage->stack.chunk_addr;
	call(stage, stage->f);
	call(stage, stage->g);
	for (int i = 1; i < 3; i++) {
		fake_stack_new_chunk(&stage->stack, CHUNK_BYTES);
		ret_chunks[i] = stage->stack.chunk_addr;
		call(stage, stage->f);
		call(stage, stage->h);
	}
	fake_stack_finish(&stage->stack);
}

/* Both of the newer chunks are popped, and taken again the other way round. */
Test(frames, chunks_in_another_order_are_walked_at_once)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		enum sample_loss loss = LOSS_LINK;
		remote_addr chunks[3];
		struct stage stage;
		int nr_added;

		stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
		struct fake_memory *fake = &stage.py.fake;
		const struct py_offsets *offsets = &stage.py.build.offsets;
		build_three_chunks(&stage, chunks);
		cr_assert(zero(int, walk_up(&stage, &loss)));
		check_list(&stage.list, &stage.stack, "three", fake_python_minors[v], "up");

		fake_memory_write_u64(fake, chunks[2] + offsets->chunk.previous, chunks[0]);
		fake_memory_write_u64(fake, chunks[2] + offsets->chunk.top, 2 * WORDS);
		fake_memory_write_u64(fake, chunks[1] + offsets->chunk.previous, chunks[2]);
		fake_memory_write_u64(fake, chunks[1] + offsets->chunk.top, 0);
		stage.stack.chunk_addr = chunks[0];
		stage.stack.nr_expected = 2;
		stage.stack.previous_addr = stage.stack.caller_addr = stage.stack.expected[1];
		for (int i = 2; i > 0; i--) {
			stage.stack.chunk_addr = chunks[i];
			stage.stack.next_addr = chunks[i] + offsets->chunk.data;
			call(&stage, stage.g);
			call(&stage, stage.h);
		}
		fake_stack_finish(&stage.stack);
		cr_expect(zero(int, tick(&stage, &loss, &nr_added)), "loss %d", (int)loss);
		check_list(&stage.list, &stage.stack, "swapped", fake_python_minors[v], "up");
		stage_done(&stage);
	}
}

/* The frame below a chunk was another function's behind its copy than in its own chunk's. */
Test(frames, chunk_above_another_frame_is_left_out)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		enum sample_loss loss = LOSS_LINK;
		remote_addr chunks[3];
		struct stage stage;

		stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
		build_three_chunks(&stage, chunks);
		fake_stack_finish(&stage.stack);
		cr_assert(zero(int, walk_up(&stage, &loss)));
		for (int changed = 0; changed < 2; changed++) {
			struct stack_copy *copy = &stage.snapshot.threads[0]->stack;
			int nr_added;

			/* It was popped once: only then its border is copied again. */
			copy->chunks[2].spare_tick = copy->tick;
			cr_assert(zero(int, snapshot_take(&stage.snapshot)));
			cr_assert(copy->chunks[2].below_valid);
			cr_assert(eq(u64, copy->chunks[2].below_addr, stage.stack.expected[3]));
			cr_assert(
				eq(u64, copy->chunks[2].below_executable & ~(uint64_t)3, stage.h));
			if (changed) {
				copy->chunks[2].below_executable = stage.g;
				stage.list.walked.tick = 0; /* as if its bytes had changed */
				stage.stack.nr_expected = 4;
			}
			cr_expect(zero(int, walk_copy(&stage, &loss, &nr_added)));
			check_list(&stage.list, &stage.stack, "border", fake_python_minors[v],
				   "up");
		}
		stage_done(&stage);
	}
}

/* A chunk that names no other and holds no frame is the oldest only if it was found to be. */
Test(frames, popped_chunk_is_no_stack_without_frames)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		enum sample_loss loss = LOSS_LINK;
		struct stage stage;
		int nr_added;

		stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
		fake_stack_finish(&stage.stack);
		cr_expect(zero(int, walk_up(&stage, &loss)));
		cr_expect(zero(u32, stage.list.nr_frames));
		stage.stack.next_addr += 8 * WORDS;
		fake_stack_finish(&stage.stack);
		cr_expect(eq(int, tick(&stage, &loss, &nr_added), -EBADMSG));
		cr_expect(eq(int, loss, LOSS_CHUNK));
		stage.snapshot.threads[0]->stack.root_chunk_addr = stage.stack.chunk_addr;
		cr_expect(zero(int, tick(&stage, &loss, &nr_added)));
		stage_done(&stage);
	}
}

static void set_previous(struct stage *stage, remote_addr frame, remote_addr previous)
{
	fake_memory_write_u64(&stage->py.fake, frame + stage->py.build.offsets.frame.previous,
			      previous);
}

/* Never a frame above the break: what is shown must be a stack that was built. */
static void check_is_prefix(const struct stage *stage, uint32_t minor)
{
	size_t nr = 0;

	for (uint32_t i = 0; i < stage->list.nr_frames; i++)
		if (frame_visible(&stage->list, i) && nr < stage->stack.nr_expected)
			cr_expect(eq(u64, stage->list.frames[i].addr, stage->stack.expected[nr++]),
				  "3.%u", minor);
}

Test(frames, broken_links_never_join_what_does_not_belong_together)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		const remote_addr wrong[] = {8, 0x123456, UINT64_MAX - 7, 0x5700000001};

		for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
			enum sample_loss loss = LOSS_LINK;
			struct stage stage;

			stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
			build_plain(&stage);
			set_previous(&stage, stage.stack.expected[2], wrong[i]);
			fake_stack_finish(&stage.stack);
			if (walk_up(&stage, &loss) == 0)
				check_is_prefix(&stage, fake_python_minors[v]);
			cr_expect(ne(int, walk_exact(&stage), 0));
			stage_done(&stage);
		}
	}
}

/*
 * The chunks show a function called by a generator, which was suspended before and after
 * they were copied: it names nobody then, but it is known who drives it.
 */
Test(frames, generator_suspended_meanwhile_keeps_its_driver)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		enum sample_loss loss = LOSS_LINK;
		struct stage stage;

		stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
		build_generator_inside(&stage);
		fake_stack_finish(&stage.stack);
		cr_assert(zero(int, walk_up(&stage, &loss)));
		set_previous(&stage, stage.stack.expected[1], 0);
		set_previous(&stage, stage.stack.expected[4], 0);
		cr_assert(zero(int, walk_up(&stage, &loss)));
		check_list(&stage.list, &stage.stack, "suspended", fake_python_minors[v], "up");
		stage_done(&stage);
	}
}

/* Let the frame hold a generator's object, or 0, as the only word of its stack. */
static void hold(struct stage *stage, remote_addr frame, remote_addr generator)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;
	remote_addr stack_addr = frame + offsets->frame.localsplus + 8; /* behind one local */
	remote_addr object_addr = generator ? generator - offsets->generator.iframe : 0;

	fake_memory_write_u64(&stage->py.fake, stack_addr, object_addr);
	if (offsets->frame.stackpointer != OFFSET_ABSENT)
		fake_memory_write_u64(&stage->py.fake, frame + offsets->frame.stackpointer,
				      stack_addr + sizeof(uint64_t));
}

/*
 * Two frames drive a generator in turn, and a moment later its words name the other one, which
 * is not there yet, or not any more: the one that holds it drives it. It calls g, or is on top.
 */
Test(frames, generator_is_driven_by_the_frame_that_holds_it)
{
	for (size_t v = 0; v < 2 * NR_FAKE_PYTHONS; v++) {
		uint32_t minor = fake_python_minors[v / 2];
		enum sample_loss loss = LOSS_LINK;
		struct stage stage;

		stage_init(&stage, minor, CHUNK_BYTES);
		if (stage.py.build.offsets.frame.stackpointer == OFFSET_ABSENT) {
			stage_done(&stage);
			continue;
		}
		remote_addr f = call(&stage, stage.f);

		fake_stack_call_c(&stage.stack);
		remote_addr gen = fake_stack_resume(&stage.stack, stage.gen);

		if (v % 2)
			call(&stage, stage.g);
		fake_stack_finish(&stage.stack);
		cr_assert(zero(int, walk_up(&stage, &loss)));
		set_previous(&stage, gen, stage.stack.next_addr);
		hold(&stage, f, gen);
		cr_assert(zero(int, walk_up(&stage, &loss)));
		check_list(&stage.list, &stage.stack, "held", minor, "up");
		hold(&stage, f, 0);
		cr_assert(zero(int, walk_up(&stage, &loss)));
		cr_expect(eq(u32, stage.list.nr_frames, 1), "3.%u", minor);
		stage_done(&stage);
	}
}

/* f drives a generator through C and holds it. Returns f; *ret_generator. */
static remote_addr drive_generator(struct stage *stage, remote_addr *ret_generator)
{
	remote_addr f = call(stage, stage->f);

	fake_stack_call_c(&stage->stack);
	*ret_generator = fake_stack_resume(&stage->stack, stage->gen);
	hold(stage, f, *ret_generator);
	return f;
}

/* What is known of generators whose two copies differ so many times of a hundred. */
static void turn_over(struct stage *stage, uint8_t nr_differing)
{
	struct stack_copy *stack = &stage->snapshot.threads[0]->stack;

	for (size_t i = 0; i < stack->nr_links; i++) {
		stack->links[i].nr_pairs = 100;
		stack->links[i].nr_differing = nr_differing;
	}
}

/*
 * Two generators that take turns within a microsecond may both have run for the frame
 * when they were copied, also where the copying is in step with them and their copies do not
 * differ. The one that the frame held in the chunks' copy is on top; if it held none, neither
 * of fast ones is.
 */
Test(frames, generator_on_top_is_the_one_that_is_held)
{
	for (size_t v = 0; v < 2 * NR_FAKE_PYTHONS; v++) {
		const uint32_t minor = fake_python_minors[v / 2];
		const uint8_t nr_differing = v % 2 ? 50 : 0;
		enum sample_loss loss = LOSS_LINK;
		struct stage stage;

		stage_init(&stage, minor, CHUNK_BYTES);
		remote_addr f = call(&stage, stage.f);
		remote_addr gens[2];

		for (size_t i = 0; i < 2; i++) {
			fake_stack_call_c(&stage.stack);
			gens[i] = fake_stack_resume(&stage.stack, stage.gen);
			fake_stack_finish(&stage.stack);
			hold(&stage, f, gens[i]);
			cr_assert(zero(int, walk_up(&stage, &loss)));
			turn_over(&stage, nr_differing);
			cr_assert(zero(int, walk_up(&stage, &loss)));
			stage.stack.previous_addr = f;
			stage.stack.caller_addr = f;
		}
		for (size_t i = 0; i < (nr_differing ? 4 : 3); i++) {
			hold(&stage, f, i == 3 ? 0 : gens[i % 2]);
			turn_over(&stage, nr_differing);
			cr_assert(zero(int, walk_up(&stage, &loss)));
			cr_assert(eq(u32, stage.list.nr_frames, i == 3 ? 1 : 2), "3.%u, turn %zu",
				  minor, i);
			cr_expect(eq(u64, stage.list.frames[stage.list.nr_frames - 1].addr,
				     i == 3 ? f : gens[i % 2]),
				  "3.%u, turn %zu", minor, i);
		}
		stage_done(&stage);
	}
}

/*
 * A generator that no copy shows running, although the chunks show a function that it called:
 * it ran for the frame if that holds it. If it does not, but did, it ran for another one.
 */
Test(frames, generator_that_is_not_held_any_more_is_left_out)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		enum sample_loss loss = LOSS_LINK;
		struct stage stage;
		remote_addr f, gen;

		stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
		f = drive_generator(&stage, &gen);
		call(&stage, stage.g);
		fake_stack_finish(&stage.stack);
		cr_assert(zero(int, walk_up(&stage, &loss)));
		set_previous(&stage, gen, 0);
		cr_assert(zero(int, walk_up(&stage, &loss)));
		cr_expect(eq(u32, stage.list.nr_frames, 3), "3.%u", fake_python_minors[v]);
		hold(&stage, f, 0);
		cr_assert(zero(int, walk_up(&stage, &loss)));
		cr_expect(eq(u32, stage.list.nr_frames, 1), "3.%u", fake_python_minors[v]);
		stage_done(&stage);
	}
}

/*
 * Where generators of several functions take turns fast, two copies are equal by chance: the one
 * on top may be the wrong one even if its caller holds it, and is left out.
 */
Test(frames, generator_on_top_in_memory_that_turns_over_fast_is_left_out)
{
	for (size_t v = 0; v < 2 * NR_FAKE_PYTHONS; v++) {
		bool fast = v % 2;
		enum sample_loss loss = LOSS_LINK;
		struct stage stage;
		remote_addr gen;
		int nr_added;

		stage_init(&stage, fake_python_minors[v / 2], CHUNK_BYTES);
		(void)drive_generator(&stage, &gen);
		fake_stack_finish(&stage.stack);
		cr_assert(zero(int, walk_up(&stage, &loss)));
		cr_assert(zero(int, snapshot_take(&stage.snapshot)));
		struct link_copy *link =
			stack_copy_find_link(&stage.snapshot.threads[0]->stack, gen);

		cr_assert(ne(ptr, link, NULL));
		link->reused = true;
		link->nr_pairs = 100;
		link->nr_differing = fast ? 13 : 12;
		cr_assert(zero(int, walk_copy(&stage, &loss, &nr_added)));
		cr_expect(eq(u32, stage.list.nr_frames, fast ? 1 : 2), "3.%u, fast: %d",
			  fake_python_minors[v / 2], fast);
		stage_done(&stage);
	}
}

/* A slow one that ran at both copies ran in between, whoever holds it (a zip does). */
Test(frames, slow_generator_is_believed_whoever_holds_it)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		enum sample_loss loss = LOSS_LINK;
		struct stage stage;

		stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
		remote_addr f = call(&stage, stage.f);

		fake_stack_call_c(&stage.stack);
		remote_addr other = fake_stack_resume(&stage.stack, stage.gen);

		fake_stack_finish(&stage.stack);
		cr_assert(zero(int, walk_up(&stage, &loss)));
		set_previous(&stage, other, 0);
		stage.stack.previous_addr = f;
		stage.stack.caller_addr = f;
		stage.stack.nr_expected--;
		fake_stack_call_c(&stage.stack);
		fake_stack_resume(&stage.stack, stage.gen);
		fake_stack_finish(&stage.stack);
		hold(&stage, f, other);
		cr_assert(zero(int, walk_up(&stage, &loss)));
		check_list(&stage.list, &stage.stack, "zip", fake_python_minors[v], "up");
		stage_done(&stage);
	}
}

/*
 * The frame of an extension stays where it was when it is not linked any more. Only what is
 * the same before and after the chunks' copy and behind all else, and below it, is part of the
 * stack; one that is being made is not.
 */
Test(frames, linked_frame_that_may_not_be_the_one_is_left_out)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		for (size_t i = 0; i < 6; i++) {
			enum sample_loss loss;
			struct stage stage;
			int nr_added;

			stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
			remote_addr frames[] = {fake_object(&stage.py, "mod.A", NULL, 0),
						fake_object(&stage.py, "mod.B", NULL, 0)};

			call(&stage, stage.f);
			fake_stack_link(&stage.stack, frames[0], FAKE_OWNED_BY_THREAD);
			fake_stack_call_c(&stage.stack);
			call(&stage, stage.g);
			fake_stack_finish(&stage.stack);
			cr_assert(zero(int, walk_up(&stage, &loss)));
			cr_assert(eq(u32, stage.list.nr_frames, 3));
			cr_assert(zero(int, snapshot_take(&stage.snapshot)));
			struct stack_copy *copy = &stage.snapshot.threads[0]->stack;
			struct link_copy *link =
				stack_copy_find_link(copy, stage.stack.expected[1]);
			const uint32_t at = stage.py.build.offsets.frame.executable;

			cr_assert(link && link->again_valid && link->below_valid);
			if (i == 0)
				memcpy(link->bytes + at, &frames[1], 8);
			else if (i == 1)
				memcpy(link->again + at, &frames[1], 8);
			else if (i == 2)
				link->below_executable = stage.h;
			else if (i == 3)
				link->above_executable = stage.h;
			else if (i == 4)
				memcpy(link->last + at, &frames[1], 8);
			else
				memset(link->bytes + at, 0, 8);
			cr_assert(zero(int, walk_copy(&stage, &loss, &nr_added)));
			cr_expect(eq(u32, stage.list.nr_frames, 1), "3.%u, %zu",
				  fake_python_minors[v], i);
			stage_done(&stage);
		}
	}
}

/* Two frames of an extension that each name the other one; and one that names itself. */
Test(frames, linked_frames_in_a_circle_end)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		for (size_t i = 0; i < 2; i++) {
			enum sample_loss loss;
			struct stage stage;

			stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
			remote_addr frame = fake_object(&stage.py, "mod.Frame", NULL, 0);

			call(&stage, stage.f);
			remote_addr first =
				fake_stack_link(&stage.stack, frame, FAKE_OWNED_BY_THREAD);
			remote_addr second =
				fake_stack_link(&stage.stack, frame, FAKE_OWNED_BY_THREAD);

			set_previous(&stage, first, i ? first : second);
			fake_stack_finish(&stage.stack);
			if (walk_up(&stage, &loss) == 0)
				cr_expect(le(uint, stage.list.nr_frames, 1));
			cr_expect(ne(int, walk_exact(&stage), 0));
			stage_done(&stage);
		}
	}
}

Test(frames, cycles_end)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		enum sample_loss loss = LOSS_LINK;
		struct stage stage;

		/* Two generators that each say the other one resumed it, and h on top. */
		stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
		call(&stage, stage.f);
		remote_addr first = fake_stack_resume(&stage.stack, stage.gen);
		remote_addr second = fake_stack_resume(&stage.stack, stage.gen);
		call(&stage, stage.h);
		set_previous(&stage, first, second);
		fake_stack_finish(&stage.stack);
		if (walk_up(&stage, &loss) == 0)
			cr_expect(le(uint, stage.list.nr_frames, 1));
		cr_expect(ne(int, walk_exact(&stage), 0));
		stage_done(&stage);
	}
}

Test(frames, object_that_is_no_code_ends_the_stack_or_loses_it)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		struct stage stage;
		enum sample_loss loss = LOSS_LINK;

		stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
		call(&stage, stage.f);
		call(&stage, stage.py.none_addr);
		call(&stage, stage.g);
		fake_stack_finish(&stage.stack);
		if (walk_up(&stage, &loss) == 0)
			check_is_prefix(&stage, fake_python_minors[v]);
		cr_expect(le(uint, stage.list.nr_frames, 1));
		/* By its links, a frame that runs None is one that is not shown. */
		cr_expect(zero(int, walk_exact(&stage)));
		cr_expect(eq(u32, stage.exact.nr_frames, 2));
		stage_done(&stage);
	}
}

/* The code object of a frame that was popped has been replaced. */
Test(frames, code_of_a_popped_frame_that_is_gone_loses_nothing)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		struct stage stage;
		enum sample_loss loss;

		stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
		call(&stage, stage.f);
		call(&stage, stage.g);
		call(&stage, stage.h);
		fake_stack_pop(&stage.stack, stage.stack.expected[2], stage.stack.expected[1],
			       stage.h, RETURN_UNIT);
		fake_stack_finish(&stage.stack);
		fake_python_code_free(&stage.py, stage.h);
		fake_python_code_at(&stage.py, stage.h, &(struct fake_code){.name = "new"});
		cr_expect(zero(int, walk_up(&stage, &loss)), "3.%u", fake_python_minors[v]);
		check_is_prefix(&stage, fake_python_minors[v]);
		cr_expect(eq(uint, stage.list.nr_frames, 2));
		/* It was not even asked for: there is nothing that it could prove. */
		cr_expect(zero(ptr, addr_map_get(&stage.codes.codes, stage.h)));
		stage_done(&stage);
	}
}

/* Drop the code object of a live frame, and make another somewhere. */
static void drop_code(struct stage *stage, remote_addr code)
{
	fake_python_code_free(&stage->py, code);
	make_code(&stage->py, "other");
}

/* The code object of a live frame is gone behind the copy: met here first, or known before. */
Test(frames, code_of_a_live_frame_that_is_gone_loses_the_stack)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		for (size_t i = 0; i < 3; i++) {
			struct stage stage;
			enum sample_loss loss = LOSS_LINK;

			stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
			call(&stage, stage.f);
			if (i == 2)
				fake_stack_call_c(&stage.stack);
			call(&stage, stage.g);
			call(&stage, stage.h);
			fake_stack_finish(&stage.stack);
			if (i > 0)
				cr_assert(zero(int, walk_up(&stage, &loss)));
			drop_code(&stage, i == 2 ? stage.g : stage.h);
			cr_expect(eq(int, walk_up(&stage, &loss), -EBADMSG), "3.%u, %zu",
				  fake_python_minors[v], i);
			cr_expect(eq(int, loss, LOSS_CODE), "3.%u, %zu", fake_python_minors[v], i);
			stage_done(&stage);
		}
	}
}

/* What was popped above a frame that is inside of a generator names it as well. */
Test(frames, code_of_a_popped_frame_above_one_in_a_call_loses_nothing)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		struct stage stage;
		enum sample_loss loss;

		stage_init(&stage, fake_python_minors[v], CHUNK_BYTES);
		call(&stage, stage.f);
		call(&stage, stage.h);
		fake_stack_pop(&stage.stack, stage.stack.expected[1], stage.stack.expected[0],
			       stage.h, RETURN_UNIT);
		fake_stack_resume(&stage.stack, stage.gen);
		fake_stack_finish(&stage.stack);
		drop_code(&stage, stage.h);
		cr_expect(zero(int, walk_up(&stage, &loss)), "3.%u", fake_python_minors[v]);
		check_list(&stage.list, &stage.stack, "popped", fake_python_minors[v], "up");
		stage_done(&stage);
	}
}

/* Links take of the same as chunks, and give it back when they are forgotten. */
Test(frames, links_are_bounded_with_the_chunks)
{
	struct stage stage;
	enum sample_loss loss = LOSS_LINK;
	int nr_added = 0;
	struct copy_budget *budget = &stage.snapshot.budget;

	stage_init(&stage, 14, CHUNK_BYTES);
	build_generator_inside(&stage);
	fake_stack_finish(&stage.stack);
	cr_assert(zero(int, walk_up(&stage, &loss)));
	struct stack_copy *copy = &stage.snapshot.threads[0]->stack;
	cr_assert(lt(sz, 2, copy->nr_links));
	budget->max_bytes = budget->used_bytes;
	cr_expect(eq(int,
		     stack_copy_add_link(copy, stage.snapshot.memory, &stage.py.build.offsets,
					 stage.py.none_addr),
		     -E2BIG));
	cr_expect(zero(int, tick(&stage, &loss, &nr_added)));

	/* The stack is empty again, and nothing uses them. */
	size_t link_bytes = copy->nr_links * sizeof(*copy->links);
	size_t used_bytes = budget->used_bytes;
	fake_python_set_stack(&stage.py, stage.stack.thread_addr, stage.stack.chunk_addr, 0,
			      fake_python_base(&stage.py, stage.stack.thread_addr));
	fake_memory_write_u64(&stage.py.fake,
			      stage.stack.expected[0] + stage.py.build.offsets.frame.executable, 0);
	for (int i = 0; i < 80; i++)
		(void)tick(&stage, &loss, &nr_added);
	cr_expect(zero(sz, copy->nr_links));
	cr_expect(le(sz, budget->used_bytes, used_bytes - link_bytes));
	stage_done(&stage);
}

/*
 * Thousands of generators, each resumed by the one that is kept before it: to follow them
 * from each would take a thousand million steps.
 */
Test(frames, maze_of_links_is_given_up)
{
	enum { NR_GENERATORS = 2000 };
	struct stage stage;
	enum sample_loss loss = LOSS_CODE;
	remote_addr previous;
	int nr_added;

	stage_init(&stage, 15, CHUNK_BYTES);
	previous = call(&stage, stage.f);
	fake_stack_finish(&stage.stack);
	cr_assert(zero(int, walk_up(&stage, &loss)));
	struct stack_copy *copy = &stage.snapshot.threads[0]->stack;
	for (int i = 0; i < NR_GENERATORS; i++) {
		const struct fake_frame frame = {.executable = stage.gen,
						 .previous = previous,
						 .unit = 1,
						 .owner = FAKE_OWNED_BY_GENERATOR};

		previous = fake_python_alloc(&stage.py, stage.py.build.offsets.frame.size);
		fake_python_frame(&stage.py, previous, &frame);
		cr_assert(zero(int, stack_copy_add_link(copy, stage.snapshot.memory,
							&stage.py.build.offsets, previous)));
	}
	cr_assert(zero(int, snapshot_take(&stage.snapshot)));
	cr_expect(eq(int, walk_copy(&stage, &loss, &nr_added), -EBADMSG));
	cr_expect(eq(int, loss, LOSS_LINK));
	cr_expect(lt(u64, copy->nr_steps, MAX_WALK_STEPS + 2 * MAX_LINKS));

	/* Nothing uses them, and once they are forgotten all is as it was. */
	for (int i = 0; i < 80; i++)
		(void)tick(&stage, &loss, &nr_added);
	cr_expect(zero(int, tick(&stage, &loss, &nr_added)));
	check_list(&stage.list, &stage.stack, "maze", 15, "up");
	stage_done(&stage);
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Overwrite up to eight bytes of a random piece; what was there goes to saved. */
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

Test(frames, any_corruption_ends_in_an_answer)
{
	enum { NR_CORRUPTIONS = 10000, AT_ONCE = 3 };
	uint64_t random = 0x9e3779b97f4a7c15u;

	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		struct stage stage;

		stage_init(&stage, fake_python_minors[v], 1024);
		build_generator_inside(&stage);
		fake_stack_new_chunk(&stage.stack, 1024);
		build_generators_on_top(&stage);
		fake_stack_finish(&stage.stack);
		for (int i = 0; i < NR_CORRUPTIONS / NR_FAKE_PYTHONS; i++) {
			remote_addr addrs[AT_ONCE];
			uint64_t saved[AT_ONCE];
			enum sample_loss loss = LOSS_LINK;

			for (size_t k = 0; k < AT_ONCE; k++)
				corrupt(&stage.py.fake, &random, &addrs[k], &saved[k]);
			if (walk_up(&stage, &loss) == 0)
				(void)walk_exact(&stage);
			for (size_t k = AT_ONCE; k > 0; k--)
				fake_memory_write_u64(&stage.py.fake, addrs[k - 1], saved[k - 1]);
			stage.snapshot.stale = true;
		}
		stage.py.generation += 2; /* nothing that was learnt meanwhile holds */
		fake_python_code_free(&stage.py, make_code(&stage.py, "gone"));
		enum sample_loss loss = LOSS_LINK;
		cr_expect(zero(int, walk_up(&stage, &loss)), "3.%u", fake_python_minors[v]);
		check_list(&stage.list, &stage.stack, "restored", fake_python_minors[v], "up");
		stage_done(&stage);
	}
}
