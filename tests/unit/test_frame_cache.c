/* SPDX-License-Identifier: MIT */
#include "sampler/frame_cache.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "sampler/sampler_state.h"
#include "tests/support/fake_stack.h"

/*
 * A stack of 48 calls of 20 words each, 7.5 KiB, in the main thread, whose state lies inside
 * of _PyRuntime. Below is a chain of one function, above the same of another one.
 */
enum {
	WORDS = 20,
	DEPTH = 48,
	CHUNK_BYTES = 16384,
	INSIDE_RUNTIME = 0x20000,
	MANY_TICKS = 200,
	TICK_NS = 1000000,
};

struct deep {
	struct sample_sink sink; /* first */
	struct fake_python py;
	struct fake_stack stack;
	struct sampler *sampler;
	remote_addr codes[3]; /* of a, b and c */
	remote_addr frames[DEPTH + 8];
	char functions[DEPTH + 8]; /* of which function the frame is */
	uint32_t nr_frames;
	uint64_t now_ns;
	uint64_t nr_samples;
	remote_addr foreign_addr; /* what another profiler writes before our write */
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

/* Return from the innermost frame, as CPython 3.15 does. */
static void pop(struct deep *deep)
{
	remote_addr addr = deep->frames[--deep->nr_frames];
	remote_addr caller_addr = deep->frames[deep->nr_frames - 1];

	if (anchor(deep) == addr) {
		set_anchor(deep, caller_addr);
		fake_memory_write_u64(&deep->py.fake, seq_addr(deep),
				      read_word(deep, seq_addr(deep)) + 1);
	}
	fake_stack_pop(&deep->stack, addr, caller_addr, 0, 0);
	fake_stack_finish(&deep->stack);
}

/* Return until so many frames are left and call another function up to a depth. */
static void change(struct deep *deep, uint32_t nr_left, char function, uint32_t depth)
{
	while (deep->nr_frames > nr_left)
		pop(deep);
	while (deep->nr_frames < depth)
		call(deep, function);
}

/* Each sample has to be just the stack there is. */
static int check_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct deep *deep = (struct deep *)sink;

	deep->nr_samples++;
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

/* Tick until something is left out of the copies. */
static void hold(struct deep *deep)
{
	for (int i = 0; i < MANY_TICKS && deep->sampler->cache.state != CACHE_HELD; i++)
		tick(deep);
	cr_assert(eq(int, deep->sampler->cache.state, CACHE_HELD));
	cr_assert(eq(u64, deep->py.fake.nr_writes, 1));
}

Test(frame_cache, what_lies_below_the_anchor_is_not_copied)
{
	struct deep deep;
	uint64_t nr_bytes;

	begin(&deep, true, DEPTH);
	start(&deep);
	ticks(&deep, 8);
	nr_bytes = deep.py.fake.nr_bytes;
	tick(&deep);
	nr_bytes = deep.py.fake.nr_bytes - nr_bytes;
	hold(&deep);
	cr_expect(eq(u64, anchor(&deep), deep.frames[DEPTH - 1]), "the innermost but the last");
	deep.py.fake.nr_bytes = 0;
	tick(&deep);
	cr_expect(lt(u64, deep.py.fake.nr_bytes + 4096, nr_bytes));
	cr_expect(lt(u64, 0, deep.sampler->cache.nr_kept));
	/* What lies above comes and goes, also so far that the copy grows. */
	for (uint32_t i = 0; i < 6; i++) {
		change(&deep, DEPTH, i % 2 ? 'c' : 'b', DEPTH + 1 + i % 3);
		tick(&deep);
	}
	cr_expect(zero(u64, deep.sampler->cache.nr_again));
	frame_cache_end(&deep.sampler->cache);
	cr_expect(zero(u64, anchor(&deep)), "0 is written back");
	end(&deep);
}

/* The list of threads may have changed while it was read, and name the state twice. */
Test(frame_cache, another_thread_with_the_same_state_is_copied_whole)
{
	const struct frame_list none = {0};
	struct deep deep;
	struct snapshot_thread other;

	begin(&deep, true, DEPTH);
	start(&deep);
	hold(&deep);
	other = *deep.sampler->snapshot.threads[0];
	other.slot++;
	other.stack = (struct stack_copy){.from_addr = deep.frames[DEPTH - 1], .first_chunk = 1};
	/* The anchor is seen to be popped. */
	memset(other.state + deep.py.build.offsets.thread.last_profiled_frame_seq, 1, 1);
	cr_expect(not(frame_cache_proves(&deep.sampler->cache, &other, &none)));
	cr_expect(zero(u64, other.stack.from_addr));
	frame_cache_learn(&deep.sampler->cache, &other, &none, true, deep.now_ns);
	cr_expect(eq(int, deep.sampler->cache.state, CACHE_HELD));
	tick(&deep);
	cr_expect(eq(int, deep.sampler->cache.state, CACHE_HELD));
	end(&deep);
}

Test(frame_cache, a_caller_that_was_copied_takes_the_place_of_the_anchor)
{
	/* The counter wraps around. */
	static const uint64_t begins[] = {0, UINT64_MAX - 1, UINT64_MAX};

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
		struct deep deep;

		begin(&deep, true, DEPTH);
		fake_memory_write_u64(&deep.py.fake, seq_addr(&deep), begins[i]);
		start(&deep);
		hold(&deep);
		change(&deep, DEPTH - 2, 'b', DEPTH + 1);
		tick(&deep);
		change(&deep, DEPTH - 3, 'c', DEPTH + 2);
		tick(&deep);
		cr_expect(eq(int, deep.sampler->cache.state, CACHE_HELD));
		cr_expect(zero(u64, deep.sampler->cache.nr_again), "each was copied once");
		cr_expect(eq(u64, deep.py.fake.nr_writes, 1));
		end(&deep);
	}
}

Test(frame_cache, all_is_copied_at_once_if_more_was_popped)
{
	for (uint32_t nr_left = 1; nr_left < DEPTH; nr_left++) {
		struct deep deep;

		begin(&deep, true, DEPTH);
		start(&deep);
		hold(&deep);
		change(&deep, nr_left, 'b', DEPTH + 1);
		tick(&deep);
		if (nr_left < DEPTH - 8)
			cr_expect(eq(u64, deep.sampler->cache.nr_again, 1));
		ticks(&deep, 2 * MANY_TICKS);
		cr_expect(eq(int, deep.sampler->cache.state, CACHE_HELD), "and held anew");
		frame_cache_end(&deep.sampler->cache);
		cr_expect(zero(u64, anchor(&deep)));
		end(&deep);
	}
}

/* One like the anchored frame at its address, called by others. */
static void call_by_others(struct deep *deep)
{
	change(deep, 2, 'b', DEPTH - 1);
	call(deep, 'a');
	call(deep, 'c');
}

static void change_before_write(struct fake_memory *fake)
{
	struct deep *deep = fake->context;

	fake->before_write = NULL;
	call_by_others(deep);
}

Test(frame_cache, a_frame_that_was_popped_before_the_write_proves_nothing)
{
	struct deep deep;

	begin(&deep, true, DEPTH);
	deep.py.fake.before_write = change_before_write;
	deep.py.fake.context = &deep;
	start(&deep);
	ticks(&deep, MANY_TICKS);
	cr_expect(eq(u64, deep.py.fake.nr_writes, 1));
	cr_expect(eq(int, deep.sampler->cache.state, CACHE_HELD));
	cr_expect(zero(u64, read_word(&deep, seq_addr(&deep))), "it never moved");
	end(&deep);
}

static void pop_before_write(struct fake_memory *fake)
{
	struct deep *deep = fake->context;

	fake->before_write = NULL;
	change(deep, DEPTH / 2, 'b', DEPTH / 2 + 1);
}

/* The anchor is no frame at all; later one is there, which nobody was told of. */
Test(frame_cache, an_anchor_that_is_no_frame_is_left)
{
	struct deep deep;

	begin(&deep, true, DEPTH);
	deep.py.fake.before_write = pop_before_write;
	deep.py.fake.context = &deep;
	start(&deep);
	for (int i = 0; i < MANY_TICKS && !deep.py.fake.nr_writes; i++)
		tick(&deep);
	tick(&deep);
	cr_expect(eq(int, deep.sampler->cache.state, CACHE_WATCHING));
	for (int i = 0; i < 20; i++) {
		change(&deep, 2, i % 2 ? 'a' : 'b', DEPTH + 1);
		tick(&deep);
	}
	end(&deep);
}

Test(frame_cache, frames_that_change_all_the_time_get_no_anchor)
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

Test(frame_cache, another_profiler_ends_it)
{
	static const struct {
		char name[32];
		uint32_t frame; /* what it writes: this one, if not too many, or 0 */
		uint64_t popped;
	} cases[] = {
		{"a frame above", DEPTH, 0},
		{"a frame below", 3, 0},
		{"nothing", UINT32_MAX, 0},
		{"a frame above, popped", DEPTH, 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct deep deep;
		remote_addr addr;

		begin(&deep, true, DEPTH);
		start(&deep);
		hold(&deep);
		addr = cases[i].frame < deep.nr_frames ? deep.frames[cases[i].frame] : 0;
		set_anchor(&deep, addr);
		fake_memory_write_u64(&deep.py.fake, seq_addr(&deep), cases[i].popped);
		/* What lies below the anchor may be anything by now. */
		change(&deep, 4, 'b', DEPTH + 1);
		addr = anchor(&deep);
		ticks(&deep, MANY_TICKS);
		cr_expect(eq(int, deep.sampler->cache.state, CACHE_OFF), "%s", cases[i].name);
		cr_expect(eq(int, deep.sampler->cache.reason, CACHE_SHARED), "%s", cases[i].name);
		frame_cache_end(&deep.sampler->cache);
		cr_expect(eq(u64, deep.py.fake.nr_writes, 1), "%s", cases[i].name);
		cr_expect(eq(u64, anchor(&deep), addr), "%s: it is not ours", cases[i].name);
		end(&deep);
	}
}

/* The anchored frame was popped, and one at its address anchored by another profiler. */
Test(frame_cache, an_anchor_that_came_back_proves_nothing)
{
	struct deep deep;
	remote_addr addr;

	begin(&deep, true, DEPTH);
	start(&deep);
	hold(&deep);
	addr = anchor(&deep);
	call_by_others(&deep);
	cr_expect(ne(u64, anchor(&deep), addr));
	set_anchor(&deep, addr);
	ticks(&deep, MANY_TICKS);
	cr_expect(eq(int, deep.sampler->cache.reason, CACHE_SHARED));
	end(&deep);
}

Test(frame_cache, an_anchor_is_taken_over_only_if_it_stands_still)
{
	struct deep deep;

	begin(&deep, true, DEPTH);
	set_anchor(&deep, deep.frames[5]);
	start(&deep);
	ticks(&deep, MANY_TICKS);
	cr_expect(zero(u64, deep.py.fake.nr_writes), "there may be another profiler");
	deep.now_ns += NS_PER_S;
	ticks(&deep, MANY_TICKS);
	cr_expect(eq(u64, deep.py.fake.nr_writes, 1), "it was left behind");
	cr_expect(eq(int, deep.sampler->cache.state, CACHE_HELD));
	end(&deep);
}

Test(frame_cache, nothing_is_written_where_it_must_not_be)
{
	static const struct {
		char name[32];
		bool outside, read_only, newer;
		uint32_t depth, runtime_bytes;
		int check_error, write_error;
		enum frame_cache_reason reason;
	} cases[] = {
		{.name = "thread states on the heap", .outside = true, .depth = DEPTH},
		{.name = "behind the runtime", .runtime_bytes = INSIDE_RUNTIME, .depth = DEPTH},
		{.name = "across its end", .runtime_bytes = INSIDE_RUNTIME + 64, .depth = DEPTH},
		{.name = "a shallow stack", .depth = 10},
		{.name = "read only", .read_only = true, .depth = DEPTH, .reason = CACHE_READ_ONLY},
		{.name = "a searched layout",
		 .newer = true,
		 .depth = DEPTH,
		 .reason = CACHE_NO_WORD},
		{.name = "another program", .check_error = -ESRCH, .depth = DEPTH},
		{.name = "refused", .write_error = -EPERM, .depth = DEPTH, .reason = CACHE_REFUSED},
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
		tick(&deep);
		/* The list of threads asks whose memory it is, too. */
		deep.py.fake.check_error = cases[i].check_error;
		deep.py.fake.write_error = cases[i].write_error;
		ticks(&deep, MANY_TICKS);
		cr_expect(eq(u64, deep.py.fake.nr_writes, cases[i].write_error != 0), "%s",
			  cases[i].name);
		cr_expect(eq(int, deep.sampler->cache.reason, cases[i].reason), "%s",
			  cases[i].name);
		frame_cache_end(&deep.sampler->cache);
		cr_expect(zero(u64, anchor(&deep)), "%s", cases[i].name);
		end(&deep);
	}
}

/* Code objects that are replaced meanwhile are others': those of live frames stay. */
Test(frame_cache, a_code_entry_that_was_cleared_has_all_copied)
{
	struct deep deep;

	begin(&deep, true, DEPTH);
	start(&deep);
	hold(&deep);
	deep.sampler->codes.tables_full = true; /* all of them are forgotten */
	tick(&deep);
	cr_expect(eq(u64, deep.sampler->cache.nr_again, 1));
	tick(&deep);
	cr_expect(eq(int, deep.sampler->cache.state, CACHE_HELD));
	end(&deep);
}

/* The thread goes on in other chunks (as greenlets do) while the anchored frame lives. */
Test(frame_cache, another_newest_chunk_has_all_copied)
{
	struct deep deep;
	remote_addr other_addr;

	begin(&deep, true, DEPTH);
	start(&deep);
	hold(&deep);
	other_addr = fake_python_chunk(&deep.py, 0, CHUNK_BYTES);
	fake_python_set_stack(&deep.py, deep.stack.thread_addr, other_addr, other_addr + 32,
			      deep.frames[DEPTH]);
	deep.now_ns += TICK_NS;
	cr_assert(zero(int, sampler_tick(deep.sampler, &deep.sink, deep.now_ns)));
	cr_expect(eq(u64, deep.sampler->cache.nr_again, 1));
	end(&deep);
}

static int ignore_sample(struct sample_sink *sink, const struct sample *sample)
{
	((struct deep *)sink)->nr_samples += sample->nr_frames > 0;
	return 0;
}

/* A tick as sampler_run() takes one at full speed. */
static void fast_tick(struct deep *deep)
{
	bool held;

	deep->now_ns += 1000;
	deep->sampler->usual_piece_ns = 0; /* the time is not the clock's */
	for (int i = 0; i < MAX_HELD_COPIES; i++)
		deep->sampler->held.copies[i].copy_ns = 0;
	cr_assert(zero(int, sampler_hold(deep->sampler, deep->now_ns, &held)));
	if (!held)
		cr_assert(zero(int, sampler_tick(deep->sampler, &deep->sink, deep->now_ns)));
}

/* Tick until so many copies of which something was left out are held. */
static void hold_copies(struct deep *deep, uint32_t nr)
{
	static const struct sample_sink_ops ops = {.sample = ignore_sample};

	ticks(deep, 2200); /* so long code objects may come and go */
	cr_assert(eq(int, deep->sampler->cache.state, CACHE_HELD));
	deep->sink.ops = &ops;
	deep->sampler->holds = true;
	for (int i = 0; i < MANY_TICKS && deep->sampler->held.nr < nr; i++)
		fast_tick(deep);
	cr_assert(eq(u32, deep->sampler->held.nr, nr));
	cr_assert(lt(sz, 0, deep->sampler->held.copies[0].bytes.from_bytes));
}

Test(frame_cache, held_copies_of_a_part_are_proven)
{
	struct deep deep;
	uint64_t nr_samples;

	begin(&deep, true, DEPTH);
	start(&deep);
	hold_copies(&deep, MAX_HELD_COPIES);
	nr_samples = deep.nr_samples;
	fast_tick(&deep);
	cr_expect(eq(u64, deep.nr_samples, nr_samples + MAX_HELD_COPIES + 1));
	cr_expect(zero(u64, deep.sampler->cache.nr_again));
	end(&deep);
}

/* The header of the one chunk that is copied is the last tick's, of a later newer chunk. */
Test(frame_cache, held_copies_of_a_part_are_lost_if_a_newer_chunk_was_begun)
{
	struct deep deep;
	uint64_t nr_samples;

	begin(&deep, true, DEPTH);
	start(&deep);
	hold_copies(&deep, MAX_HELD_COPIES);
	fake_memory_write_u64(&deep.py.fake,
			      deep.stack.chunk_addr + deep.py.build.offsets.chunk.top, 7);
	nr_samples = deep.nr_samples;
	fast_tick(&deep);
	cr_expect(eq(u64, deep.nr_samples, nr_samples + 1));
	cr_expect(eq(u64, sampler_stats(deep.sampler)->lost[LOSS_HELD], MAX_HELD_COPIES));
	end(&deep);
}

/* Held ones of which what was left out is not proven are lost, and not copied again. */
Test(frame_cache, the_anchor_that_a_held_copy_does_not_show_has_all_copied)
{
	struct deep deep;
	const uint32_t anchored = DEPTH - 1;

	begin(&deep, true, DEPTH);
	start(&deep);
	hold_copies(&deep, MAX_HELD_COPIES - 2);
	fake_memory_write_u64(&deep.py.fake,
			      deep.frames[anchored] + deep.py.build.offsets.frame.executable,
			      deep.codes[1]);
	for (int i = 0; i < 3; i++)
		fast_tick(&deep);
	cr_expect(zero(u32, deep.sampler->held.nr));
	cr_expect(eq(u64, sampler_stats(deep.sampler)->lost[LOSS_HELD], 2));
	cr_expect(eq(u64, deep.sampler->cache.nr_again, 1), "not of those that were held");
	cr_expect(eq(uint, deep.sampler->threads[0].list.nr_frames, anchored),
		  "it does not stand in that code");
	end(&deep);
}
