/* SPDX-License-Identifier: MIT */
#include "procmem/clock.h"
#include "sampler/frame_cache.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "sampler/sampler_state.h"
#include "tests/support/fake_stack.h"

/*
 * The main thread, whose state is inside _PyRuntime, has a stack of 100 calls of 20 words each.
 * The outer frames run one function, the inner ones another.
 */
enum {
	WORDS = 20,
	DEPTH = 100,
	MAX_DEPTH = 200,
	MIN_KEPT = 64,
	CHUNK_BYTES = 32768,
	INSIDE_RUNTIME = 0x20000,
	MANY_TICKS = 200,
	LEFT_BEHIND_TICKS = 1100,
	TICK_NS = 1000000,
};

struct deep {
	struct sample_sink sink; /* first */
	struct fake_python py;
	struct fake_stack stack;
	struct sampler *sampler;
	remote_addr codes[3]; /* of a, b and c */
	remote_addr frames[MAX_DEPTH];
	char functions[MAX_DEPTH]; /* function of each frame */
	uint32_t nr_frames;
	uint64_t now_ns;
	uint64_t nr_samples;
	bool moves; /* the stack changes during the look, so any sample is right */
};

static remote_addr word_addr(const struct deep *deep)
{
	return deep->stack.thread_addr + deep->py.build.offsets.thread.last_profiled_frame;
}

static uint64_t read_word(struct deep *deep, remote_addr addr)
{
	uint64_t value;

	cr_assert(zero(int, remote_memory_read_u64(&deep->py.fake.memory, addr, &value)));
	return value;
}

static uint64_t anchor(struct deep *deep)
{
	return read_word(deep, word_addr(deep));
}

static void set_anchor(struct deep *deep, uint64_t value)
{
	fake_memory_write_u64(&deep->py.fake, word_addr(deep), value);
}

static remote_addr seq_addr(const struct deep *deep)
{
	return deep->stack.thread_addr + deep->py.build.offsets.thread.last_profiled_frame_seq;
}

static void call(struct deep *deep, char function)
{
	deep->functions[deep->nr_frames] = function;
	deep->frames[deep->nr_frames++] =
		fake_stack_call(&deep->stack, deep->codes[function - 'a'], WORDS);
	fake_stack_finish(&deep->stack);
}

static uint64_t previous(struct deep *deep, remote_addr frame_addr)
{
	return read_word(deep, frame_addr + deep->py.build.offsets.frame.previous);
}

/* The target leaves a frame. An anchor on it moves to the caller. */
static void leave(struct deep *deep, remote_addr frame_addr)
{
	if (anchor(deep) != frame_addr)
		return;
	set_anchor(deep, previous(deep, frame_addr));
	fake_memory_write_u64(&deep->py.fake, seq_addr(deep), read_word(deep, seq_addr(deep)) + 1);
}

/* Return from the innermost frame, as CPython 3.15 does. An entry frame below it is left, too. */
static void pop(struct deep *deep)
{
	const remote_addr addr = deep->frames[--deep->nr_frames];
	const remote_addr caller_addr = deep->frames[deep->nr_frames - 1];

	leave(deep, addr);
	if (previous(deep, addr) != caller_addr)
		leave(deep, previous(deep, addr));
	fake_stack_pop(&deep->stack, addr, caller_addr);
	fake_stack_finish(&deep->stack);
}

/* Return until nr_left frames are left, then call function until there are depth frames. */
static void change(struct deep *deep, uint32_t nr_left, char function, uint32_t depth)
{
	while (deep->nr_frames > nr_left)
		pop(deep);
	while (deep->nr_frames < depth)
		call(deep, function);
}

/* Each sample must be exactly the current stack. */
static int check_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct deep *deep = (struct deep *)sink;

	deep->nr_samples++;
	if (deep->moves)
		return 0;
	cr_expect(eq(uint, sample->nr_frames, deep->nr_frames));
	for (uint32_t i = 0; i < sample->nr_frames && i < deep->nr_frames; i++)
		if (sample->frames[i].function->qualname[0] != deep->functions[i])
			cr_fail("frame %u is %c of %s", i, deep->functions[i],
				sample->frames[i].function->qualname);
	return 0;
}

static void begin(struct deep *deep, bool inside, uint32_t depth)
{
	static const struct sample_sink_ops ops = {.sample = check_sample};
	static const char *const names[] = {"a", "b", "c"};

	*deep = (struct deep){.sink.ops = &ops, .now_ns = NS_PER_S};
	fake_python_init(&deep->py, 15);
	for (size_t i = 0; i < 3; i++)
		deep->codes[i] = fake_python_code(
			&deep->py, &(struct fake_code){.name = names[i], .nr_units = 64});
	if (inside)
		deep->py.free_addr = deep->py.runtime_addr + INSIDE_RUNTIME;
	fake_stack_init(&deep->stack, &deep->py, 1, CHUNK_BYTES);
	change(deep, 0, 'a', depth);
	call(deep, 'c');
	fake_memory_allow_writes(&deep->py.fake);
}

static void start(struct deep *deep)
{
	cr_assert(zero(int, sampler_create(NULL, &deep->py.fake.memory, &deep->py.build,
					   deep->py.runtime_addr, &deep->sampler)));
}

static void end(struct deep *deep)
{
	sampler_destroy(deep->sampler);
	fake_python_done(&deep->py);
}

static void tick(struct deep *deep)
{
	uint64_t nr_samples = deep->nr_samples;

	deep->now_ns += TICK_NS;
	cr_assert(zero(int, sampler_tick(deep->sampler, &deep->sink, deep->now_ns)));
	cr_expect(eq(u64, deep->nr_samples, nr_samples + 1), "no stack is lost");
}

static void ticks(struct deep *deep, int nr)
{
	for (int i = 0; i < nr; i++)
		tick(deep);
}

/* Tick until there is an anchor. From the next tick on, frames below it are kept. */
static void tick_until_held(struct deep *deep)
{
	for (int i = 0; i < MANY_TICKS && !deep->sampler->cache.has_index; i++)
		tick(deep);
	cr_assert(deep->sampler->cache.has_index);
	cr_assert(eq(u64, deep->py.fake.nr_writes, 1));
}

/* Take a tick, and report whether it kept frames. */
static bool tick_keeps_frames(struct deep *deep)
{
	const uint64_t nr_kept = deep->sampler->stats.cached;

	tick(deep);
	return deep->sampler->stats.cached == nr_kept + 1;
}

Test(frame_cache, frames_below_the_anchor_are_not_read)
{
	struct deep deep;
	uint64_t nr_bytes;

	begin(&deep, true, DEPTH);
	start(&deep);
	ticks(&deep, 8);
	nr_bytes = deep.py.fake.nr_bytes;
	tick(&deep);
	nr_bytes = deep.py.fake.nr_bytes - nr_bytes;
	tick_until_held(&deep);
	cr_expect(eq(u64, anchor(&deep), deep.frames[DEPTH - 1]),
		  "the anchor is the innermost frame but one");
	ticks(&deep, MANY_TICKS); /* blocks that are not needed are no longer read ahead */
	deep.py.fake.nr_bytes = 0;
	cr_expect(tick_keeps_frames(&deep));
	cr_expect(lt(u64, deep.py.fake.nr_bytes + 8192, nr_bytes));
	/* Inner frames come and go. */
	for (uint32_t i = 0; i < 6; i++) {
		change(&deep, DEPTH, i % 2 ? 'c' : 'b', DEPTH + 1 + i % 3);
		cr_expect(tick_keeps_frames(&deep));
	}
	cr_expect(eq(u64, deep.py.fake.nr_writes, 1));
	frame_cache_end(&deep.sampler->cache);
	cr_expect(zero(u64, anchor(&deep)), "the anchor is cleared");
	end(&deep);
}

/* If the stack grows, the anchor moves if that pays. */
Test(frame_cache, anchor_follows_a_growing_stack)
{
	struct deep deep;

	begin(&deep, true, DEPTH);
	start(&deep);
	tick_until_held(&deep);
	change(&deep, DEPTH, 'b', DEPTH + MIN_KEPT);
	ticks(&deep, MANY_TICKS);
	cr_expect(eq(u64, deep.py.fake.nr_writes, 1));
	change(&deep, DEPTH, 'b', DEPTH + MIN_KEPT + 2);
	ticks(&deep, MANY_TICKS);
	cr_expect(eq(u64, deep.py.fake.nr_writes, 2));
	cr_expect(le(u64, deep.frames[DEPTH - 1 + MIN_KEPT], anchor(&deep)));
	cr_expect(tick_keeps_frames(&deep));
	end(&deep);
}

/* The list of threads may have changed while it was read, so that two threads have this state. */
Test(frame_cache, new_thread_with_the_same_state_is_walked_whole)
{
	const struct frame_list none = {0};
	struct kept_frames kept;
	struct deep deep;
	struct snapshot_thread other;

	begin(&deep, true, DEPTH);
	start(&deep);
	tick_until_held(&deep);
	other = *deep.sampler->snapshot.threads[0];
	other.slot++;
	/* The counter shows that the anchor was popped. */
	memset(other.state + deep.py.build.offsets.thread.last_profiled_frame_seq, 1, 1);
	kept = frame_cache_kept(&deep.sampler->cache, &other, &none);
	cr_expect(zero(u64, kept.anchor_addr));
	frame_cache_update(&deep.sampler->cache, &other, &none, true, &kept);
	cr_expect(tick_keeps_frames(&deep));
	/* The state now belongs to the other thread. */
	frame_cache_add_thread(&deep.sampler->cache, &other);
	cr_expect(not(tick_keeps_frames(&deep)));
	kept = frame_cache_kept(&deep.sampler->cache, &other, &none);
	cr_expect(zero(u64, kept.anchor_addr));
	end(&deep);
}

Test(frame_cache, anchor_moves_to_the_caller)
{
	/* The counter wraps around. */
	static const uint64_t begins[] = {0, UINT64_MAX - 1, UINT64_MAX};

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
		struct deep deep;

		begin(&deep, true, DEPTH);
		fake_memory_write_u64(&deep.py.fake, seq_addr(&deep), begins[i]);
		start(&deep);
		tick_until_held(&deep);
		change(&deep, DEPTH - 2, 'b', DEPTH + 1);
		cr_expect(tick_keeps_frames(&deep));
		change(&deep, DEPTH - 3, 'c', DEPTH + 2);
		cr_expect(tick_keeps_frames(&deep));
		change(&deep, DEPTH - 20, 'b', DEPTH + 2);
		cr_expect(tick_keeps_frames(&deep));
		cr_expect(eq(uint, deep.sampler->cache.index, DEPTH - 21));
		cr_expect(eq(u64, deep.py.fake.nr_writes, 1));
		end(&deep);
	}
}

Test(frame_cache, popped_anchor_forces_a_full_walk)
{
	for (uint32_t nr_left = 1; nr_left < DEPTH; nr_left++) {
		struct deep deep;

		begin(&deep, true, DEPTH);
		start(&deep);
		tick_until_held(&deep);
		change(&deep, nr_left, 'b', DEPTH + 1);
		cr_expect(eq(int, tick_keeps_frames(&deep), nr_left > MIN_KEPT), "%u left",
			  nr_left);
		ticks(&deep, MANY_TICKS);
		cr_expect(tick_keeps_frames(&deep), "held again, %u left", nr_left);
		frame_cache_end(&deep.sampler->cache);
		cr_expect(zero(u64, anchor(&deep)));
		end(&deep);
	}
}

/*
 * An anchor that passes an entry frame is abandoned: the frame list does not contain entry frames.
 */
Test(frame_cache, anchor_that_passed_an_entry_frame_is_abandoned)
{
	for (uint32_t nr_left = DEPTH - 8; nr_left < DEPTH; nr_left++) {
		const bool is_above = nr_left > DEPTH - 4;
		struct deep deep;

		begin(&deep, true, DEPTH - 4);
		pop(&deep);
		change(&deep, DEPTH - 4, 'a', DEPTH - 4);
		fake_stack_call_c(&deep.stack);
		change(&deep, DEPTH, 'a', DEPTH);
		call(&deep, 'c');
		start(&deep);
		tick_until_held(&deep);
		cr_assert(eq(u64, anchor(&deep), deep.frames[DEPTH - 1]));
		change(&deep, nr_left, 'b', DEPTH + 1);
		cr_expect(eq(int, tick_keeps_frames(&deep), is_above), "%u left", nr_left);
		ticks(&deep, MANY_TICKS);
		cr_expect(tick_keeps_frames(&deep));
		end(&deep);
	}
}

/* The only frame after an entry frame has a caller that is not in the list. */
Test(frame_cache, frame_after_an_entry_frame_is_no_anchor)
{
	struct deep deep;

	begin(&deep, true, DEPTH);
	pop(&deep);
	fake_stack_call_c(&deep.stack);
	call(&deep, 'b');
	call(&deep, 'c');
	start(&deep);
	tick_until_held(&deep);
	cr_expect(eq(u64, anchor(&deep), deep.frames[DEPTH - 1]));
	end(&deep);
}

/* Put a frame like the anchored one at its address, with other callers. */
static void replace_callers(struct deep *deep)
{
	change(deep, 2, 'b', DEPTH - 1);
	call(deep, 'a');
	call(deep, 'c');
}

static void replace_callers_before_write(struct fake_memory *fake)
{
	fake->before_write = NULL;
	replace_callers(fake->context);
}

/* The target ran during the look that wrote the anchor, so the anchor may be on another frame. */
Test(frame_cache, unproven_snapshot_confirms_no_anchor)
{
	struct deep deep;

	begin(&deep, true, DEPTH);
	deep.py.fake.before_write = replace_callers_before_write;
	deep.py.fake.context = &deep;
	start(&deep);
	deep.moves = true;
	while (!deep.py.fake.nr_writes)
		tick(&deep);
	frame_cache_invalidate(&deep.sampler->cache);
	deep.moves = false;
	cr_expect(eq(u64, anchor(&deep), deep.frames[DEPTH - 1]));
	cr_expect(zero(u64, read_word(&deep, seq_addr(&deep))), "the anchor never moved");
	cr_expect(not(tick_keeps_frames(&deep)));
	ticks(&deep, MANY_TICKS);
	cr_expect(tick_keeps_frames(&deep));
	cr_expect(eq(u64, deep.py.fake.nr_writes, 1), "the anchor is not written again");
	end(&deep);
}

/* Words read by an unproven look are not used for comparison. */
Test(frame_cache, words_of_an_unproven_snapshot_are_not_compared)
{
	struct deep deep;

	begin(&deep, true, DEPTH);
	start(&deep);
	tick_until_held(&deep);
	for (int i = 0; i < 4; i++) {
		tick(&deep);
		frame_cache_invalidate(&deep.sampler->cache);
		change(&deep, DEPTH - 1 - i, 'b', DEPTH + 1);
		cr_expect(not(tick_keeps_frames(&deep)));
		cr_expect(eq(int, deep.sampler->cache.reason, CACHE_USABLE));
	}
	/* Such a look may read one word before a change and the other one after it. */
	fake_memory_write_u64(&deep.py.fake, seq_addr(&deep), 77);
	tick(&deep);
	frame_cache_invalidate(&deep.sampler->cache);
	set_anchor(&deep, deep.frames[DEPTH - 6]);
	cr_expect(not(tick_keeps_frames(&deep)));
	cr_expect(eq(int, deep.sampler->cache.reason, CACHE_USABLE));
	ticks(&deep, MANY_TICKS);
	cr_expect(tick_keeps_frames(&deep));
	end(&deep);
}

static void pop_before_write(struct fake_memory *fake)
{
	struct deep *deep = fake->context;

	fake->before_write = NULL;
	change(deep, DEPTH / 2, 'b', DEPTH / 2 + 1);
}

/*
 * The anchor is written to an address without a frame. A frame that is put there later does not
 * count as anchored.
 */
Test(frame_cache, anchor_that_is_no_frame_proves_nothing)
{
	struct deep deep;

	begin(&deep, true, DEPTH);
	deep.py.fake.before_write = pop_before_write;
	deep.py.fake.context = &deep;
	start(&deep);
	deep.moves = true;
	while (!deep.py.fake.nr_writes)
		tick(&deep);
	frame_cache_invalidate(&deep.sampler->cache);
	deep.moves = false;
	for (int i = 0; i < 40; i++) {
		change(&deep, 2, i % 2 ? 'a' : 'b', DEPTH + 1);
		cr_expect(not(tick_keeps_frames(&deep)));
	}
	end(&deep);
}

Test(frame_cache, changing_frames_get_no_anchor)
{
	struct deep deep;

	begin(&deep, true, DEPTH);
	start(&deep);
	for (int i = 0; i < MANY_TICKS; i++) {
		change(&deep, 2, i % 2 ? 'a' : 'b', DEPTH + 1);
		tick(&deep);
	}
	cr_expect(zero(u64, deep.py.fake.nr_writes));
	end(&deep);
}

/* If anchors are popped soon, they are written less and less often. */
Test(frame_cache, short_lived_anchor_is_rewritten_later)
{
	enum { LOOKS = 4000 };
	struct deep deep;

	begin(&deep, true, DEPTH);
	start(&deep);
	for (int i = 0; i < LOOKS; i++) {
		if (deep.sampler->cache.has_index)
			change(&deep, 2, i % 2 ? 'a' : 'b', DEPTH + 1);
		tick(&deep);
	}
	cr_expect(lt(u64, 3, deep.py.fake.nr_writes));
	cr_expect(lt(u64, deep.py.fake.nr_writes, 12));
	end(&deep);
}

Test(frame_cache, another_profiler_ends_the_cache)
{
	static const struct {
		char name[32];
		uint32_t frame; /* the frame that it writes, or 0 if there is none */
	} cases[] = {{"a frame above", DEPTH}, {"a frame below", 3}, {"no frame", UINT32_MAX}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct deep deep;
		remote_addr addr;

		begin(&deep, true, DEPTH);
		start(&deep);
		tick_until_held(&deep);
		addr = cases[i].frame < deep.nr_frames ? deep.frames[cases[i].frame] : 0;
		set_anchor(&deep, addr);
		fake_memory_write_u64(&deep.py.fake, seq_addr(&deep), 0);
		/* The frames below the anchor may have changed. */
		change(&deep, 4, 'b', DEPTH + 1);
		set_anchor(&deep, addr);
		fake_memory_write_u64(&deep.py.fake, seq_addr(&deep), 0);
		ticks(&deep, LEFT_BEHIND_TICKS);
		cr_expect(eq(int, deep.sampler->cache.reason, CACHE_SHARED), "%s", cases[i].name);
		cr_expect(zero(u64, deep.sampler->stats.cached), "%s", cases[i].name);
		frame_cache_end(&deep.sampler->cache);
		cr_expect(eq(u64, deep.py.fake.nr_writes, 1), "%s", cases[i].name);
		cr_expect(eq(u64, anchor(&deep), addr), "%s: the foreign anchor stays",
			  cases[i].name);
		end(&deep);
	}
}

/*
 * The anchored frame was popped, and another profiler wrote an anchor to any frame, even the same
 * one.
 */
Test(frame_cache, anchor_popped_and_written_proves_nothing)
{
	for (uint32_t frame = 0; frame <= DEPTH; frame++) {
		struct deep deep;

		begin(&deep, true, DEPTH);
		start(&deep);
		tick_until_held(&deep);
		replace_callers(&deep);
		cr_assert(ne(u64, anchor(&deep), deep.frames[DEPTH - 1]));
		set_anchor(&deep, deep.frames[frame]);
		cr_expect(not(tick_keeps_frames(&deep)));
		ticks(&deep, 8);
		end(&deep);
	}
}

/* The same, but only one of the frames could be anchored without a write. */
Test(frame_cache, anchor_written_after_a_pop_proves_nothing)
{
	for (uint32_t frame = 0; frame <= DEPTH; frame++) {
		struct deep deep;

		begin(&deep, true, DEPTH);
		start(&deep);
		tick_until_held(&deep);
		change(&deep, DEPTH - 1, 'b', DEPTH + 1);
		set_anchor(&deep, deep.frames[frame]);
		cr_expect(eq(int, tick_keeps_frames(&deep), frame == DEPTH - 2), "frame %u", frame);
		end(&deep);
	}
}

Test(frame_cache, foreign_anchor_is_adopted_only_if_unchanged)
{
	struct deep deep;

	begin(&deep, true, DEPTH);
	set_anchor(&deep, deep.frames[5]);
	start(&deep);
	ticks(&deep, MANY_TICKS);
	cr_expect(zero(u64, deep.py.fake.nr_writes), "another profiler may be active");
	frame_cache_end(&deep.sampler->cache);
	cr_expect(eq(u64, anchor(&deep), deep.frames[5]), "the foreign anchor stays");
	ticks(&deep, LEFT_BEHIND_TICKS);
	cr_expect(eq(u64, deep.py.fake.nr_writes, 1), "a stale anchor is removed");
	cr_expect(tick_keeps_frames(&deep));
	end(&deep);
}

Test(frame_cache, anchor_is_never_written_out_of_place)
{
	static const struct {
		char name[32];
		bool outside, read_only, newer;
		uint32_t depth, runtime_bytes;
		int write_error;
		enum frame_cache_reason reason;
	} cases[] = {
		{.name = "thread states on the heap", .outside = true, .depth = DEPTH},
		{.name = "after the runtime", .runtime_bytes = INSIDE_RUNTIME, .depth = DEPTH},
		{.name = "across its end", .runtime_bytes = INSIDE_RUNTIME + 64, .depth = DEPTH},
		{.name = "a shallow stack", .depth = MIN_KEPT},
		{.name = "read only", .read_only = true, .depth = DEPTH, .reason = CACHE_READ_ONLY},
		{.name = "a searched layout",
		 .newer = true,
		 .depth = DEPTH,
		 .reason = CACHE_NO_WORD},
		{.name = "refused", .write_error = -EPERM, .depth = DEPTH, .reason = CACHE_REFUSED},
		{.name = "gone", .write_error = -ESRCH, .depth = DEPTH},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct deep deep;

		begin(&deep, !cases[i].outside, cases[i].depth);
		if (cases[i].runtime_bytes)
			deep.py.build.offsets.runtime.size = cases[i].runtime_bytes;
		if (cases[i].read_only) {
			struct fake_memory plain;

			fake_memory_init(&plain);
			deep.py.fake.memory = plain.memory;
			fake_memory_done(&plain);
		}
		deep.py.build.newer_than_tested = cases[i].newer;
		start(&deep);
		deep.py.fake.write_error = cases[i].write_error;
		ticks(&deep, MANY_TICKS);
		if (!cases[i].write_error)
			cr_expect(zero(u64, deep.py.fake.nr_writes), "%s", cases[i].name);
		cr_expect(zero(u64, deep.sampler->stats.writes), "%s", cases[i].name);
		cr_expect(zero(u64, deep.sampler->stats.cached), "%s", cases[i].name);
		cr_expect(eq(int, deep.sampler->cache.reason, cases[i].reason), "%s",
			  cases[i].name);
		frame_cache_end(&deep.sampler->cache);
		cr_expect(zero(u64, anchor(&deep)), "%s", cases[i].name);
		end(&deep);
	}
}

/* Replacing code objects of other frames does not matter: those of live frames stay. */
Test(frame_cache, dropped_code_entry_forces_a_full_walk)
{
	struct deep deep;

	begin(&deep, true, DEPTH);
	start(&deep);
	tick_until_held(&deep);
	deep.sampler->codes.nr_cleared++; /* an entry of no frame here */
	cr_expect(tick_keeps_frames(&deep));
	deep.sampler->codes.tables_full = true; /* all entries are dropped */
	cr_expect(not(tick_keeps_frames(&deep)));
	ticks(&deep, MANY_TICKS);
	cr_expect(tick_keeps_frames(&deep));
	end(&deep);
}

/* After a stack without its proper end, frames below the anchor are not known any more. */
Test(frame_cache, lost_stack_forces_a_full_walk)
{
	struct deep deep;
	remote_addr previous_addr;

	begin(&deep, true, DEPTH);
	start(&deep);
	tick_until_held(&deep);
	previous_addr = deep.frames[DEPTH] + deep.py.build.offsets.frame.previous;
	fake_memory_write_u64(&deep.py.fake, previous_addr, 0);
	cr_assert(zero(int, sampler_tick(deep.sampler, &deep.sink, ++deep.now_ns)));
	cr_expect(eq(u64, sampler_stats(deep.sampler)->lost[LOSS_UNFINISHED], 1));
	fake_memory_write_u64(&deep.py.fake, previous_addr, deep.frames[DEPTH - 1]);
	cr_expect(not(tick_keeps_frames(&deep)));
	ticks(&deep, MANY_TICKS);
	cr_expect(tick_keeps_frames(&deep));
	end(&deep);
}

/* Neither are they after a loss above the anchor. */
Test(frame_cache, stack_lost_above_the_anchor_forces_a_full_walk)
{
	struct deep deep;
	remote_addr executable_addr;
	uint64_t executable;

	begin(&deep, true, DEPTH);
	start(&deep);
	tick_until_held(&deep);
	executable_addr = deep.frames[DEPTH] + deep.py.build.offsets.frame.executable;
	executable = read_word(&deep, executable_addr);
	fake_memory_write_u64(&deep.py.fake, executable_addr, 0x10);
	cr_assert(zero(int, sampler_tick(deep.sampler, &deep.sink, ++deep.now_ns)));
	cr_expect(eq(u64, sampler_stats(deep.sampler)->lost[LOSS_UNFINISHED], 1));
	fake_memory_write_u64(&deep.py.fake, executable_addr, executable);
	cr_expect(not(tick_keeps_frames(&deep)));
	ticks(&deep, MANY_TICKS);
	cr_expect(tick_keeps_frames(&deep));
	end(&deep);
}

/* The thread continues on other frames, as with greenlets, while the anchored frame lives. */
Test(frame_cache, stack_without_the_anchor_is_walked_whole)
{
	struct deep deep;
	struct fake_stack kept_stack;

	begin(&deep, true, DEPTH);
	start(&deep);
	tick_until_held(&deep);
	kept_stack = deep.stack;
	fake_stack_new_chunk(&deep.stack, CHUNK_BYTES);
	deep.stack.previous_addr = fake_python_base(&deep.py, deep.stack.thread_addr);
	deep.nr_frames = 0;
	change(&deep, 0, 'b', DEPTH + 2);
	cr_expect(not(tick_keeps_frames(&deep)));
	ticks(&deep, 8);
	deep.stack = kept_stack;
	deep.nr_frames = 0;
	fake_stack_finish(&deep.stack);
	while (deep.nr_frames <= DEPTH) {
		deep.functions[deep.nr_frames] = deep.nr_frames < DEPTH ? 'a' : 'c';
		deep.frames[deep.nr_frames] = deep.stack.expected[deep.nr_frames];
		deep.nr_frames++;
	}
	cr_expect(not(tick_keeps_frames(&deep)));
	ticks(&deep, MANY_TICKS);
	cr_expect(tick_keeps_frames(&deep));
	end(&deep);
}

/*
 * The target read the anchor as its own frame before the anchor was cleared, and moves it after
 * that.
 */
static void move_anchor_after_write(struct fake_memory *fake, size_t range_index)
{
	struct deep *deep = fake->context;

	(void)range_index;
	fake->before_range = NULL;
	set_anchor(deep, deep->frames[DEPTH - 2]);
	fake_memory_write_u64(fake, seq_addr(deep), 1);
}

static void move_anchor_before_next_read(struct fake_memory *fake)
{
	fake->before_write = NULL;
	fake->before_range = move_anchor_after_write;
}

Test(frame_cache, foreign_anchor_is_left_in_place)
{
	struct deep deep;

	begin(&deep, true, DEPTH);
	start(&deep);
	tick_until_held(&deep);
	set_anchor(&deep, deep.frames[7]);
	frame_cache_end(&deep.sampler->cache);
	cr_expect(eq(u64, anchor(&deep), deep.frames[7]));
	end(&deep);
}

Test(frame_cache, anchor_that_moves_at_the_end_is_removed)
{
	for (int is_late = 0; is_late < 2; is_late++) {
		struct deep deep;

		begin(&deep, true, DEPTH);
		start(&deep);
		tick_until_held(&deep);
		deep.py.fake.context = &deep;
		if (is_late)
			deep.py.fake.before_write = move_anchor_before_next_read;
		else
			change(&deep, DEPTH - 1, 'b', DEPTH);
		frame_cache_end(&deep.sampler->cache);
		cr_expect(eq(u64, deep.py.fake.nr_writes, is_late ? 3 : 2));
		cr_expect(zero(u64, anchor(&deep)), "late: %d", is_late);
		end(&deep);
	}
}
