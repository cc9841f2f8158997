/* SPDX-License-Identifier: MIT */
#include "sampler/held_copies.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <signal.h>

#include "sampler/sampler_state.h"
#include "tests/support/fake_stack.h"

/* More full ticks than code objects are taken to come and go for, and nothing is held. */
enum { LONG = 2200, WORDS = 20, CHUNK_BYTES = 16384, TICK_NS = 1000, RETURN_UNIT = 7 };

/* Versions of both leaf rules. */
static const uint32_t minors[] = {11, 12, 13, 14, 15};
#define NR_MINORS (sizeof(minors) / sizeof(*minors))

/* A function that calls others in turn: what the sink got of it, and what it had to get. */
struct program {
	struct sample_sink sink; /* first */
	struct fake_python py;
	struct fake_stack stack;
	struct sampler *sampler;
	remote_addr codes[3]; /* of a, which stays, and b and c */
	remote_addr caller_addr, leaf_addr;
	char leaf;
	uint64_t now_ns, nr_ticks;
	uint64_t nr_samples, nr_others; /* of the first thread, of others */
	uint64_t last_ns;
	char expected[1 << 13]; /* by tick: the innermost function */
};

static char innermost(const struct sample *sample)
{
	return sample->nr_frames ? sample->frames[sample->nr_frames - 1].function->qualname[0]
				 : '-';
}

/* Every sample that comes has to be just what the program did at its tick. */
static int check_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct program *program = (struct program *)sink;
	uint64_t tick = (sample->time_ns - NS_PER_S) / TICK_NS;

	if (sample->thread->tid != 1) {
		program->nr_others++;
		return 0;
	}
	program->nr_samples++;
	cr_expect(lt(u64, program->last_ns, sample->time_ns), "in order");
	cr_expect(eq(u64, sample->wall_ns,
		     program->last_ns ? sample->time_ns - program->last_ns : 0));
	cr_expect(eq(chr, innermost(sample), program->expected[tick]), "at tick %lu", tick);
	program->last_ns = sample->time_ns;
	return 0;
}

static void call(struct program *program, char leaf)
{
	program->leaf = leaf;
	program->leaf_addr = fake_stack_call(&program->stack, program->codes[leaf - 'a'], WORDS);
	fake_stack_finish(&program->stack);
}

static void change(struct program *program)
{
	fake_stack_pop(&program->stack, program->leaf_addr, program->caller_addr,
		       program->codes[program->leaf - 'a'], RETURN_UNIT);
	call(program, program->leaf == 'b' ? 'c' : 'b');
}

/* As sampler_run() takes one. */
static int try_tick(struct program *program)
{
	bool held;
	int err;

	program->now_ns += TICK_NS;
	program->nr_ticks++;
	program->expected[(program->now_ns - NS_PER_S) / TICK_NS] = program->leaf;
	program->sampler->usual_piece_ns = 0; /* the time is not the clock's */
	for (int i = 0; i < MAX_HELD_COPIES; i++)
		program->sampler->held.copies[i].copy_ns = 0;
	err = sampler_hold(program->sampler, program->now_ns, &held);
	return err || held ? err : sampler_tick(program->sampler, &program->sink, program->now_ns);
}

static void tick(struct program *program)
{
	cr_assert(zero(int, try_tick(program)));
}

/* Tick until the next one is held, and none is. */
static void go_to_full(struct program *program)
{
	do
		tick(program);
	while (program->sampler->held.nr);
	cr_assert(ne(ptr, program->sampler->held.thread, NULL));
}

static void begin(struct program *program, uint32_t minor)
{
	static const struct sample_sink_ops ops = {.sample = check_sample};
	static const char *const names[] = {"a", "b", "c"};

	*program = (struct program){.sink.ops = &ops, .now_ns = NS_PER_S};
	fake_python_init(&program->py, minor);
	for (size_t i = 0; i < 3; i++)
		program->codes[i] = fake_python_code(
			&program->py,
			&(struct fake_code){.name = names[i], .return_unit = RETURN_UNIT});
	fake_stack_init(&program->stack, &program->py, 1, CHUNK_BYTES);
	program->caller_addr = fake_stack_call(&program->stack, program->codes[0], WORDS);
	call(program, 'b');
	cr_assert(zero(int, sampler_create(NULL, &program->py.fake.memory, &program->py.build,
					   program->py.runtime_addr, &program->sampler)));
	program->sampler->holds = true;
}

/* Until ticks are held, with both functions known. */
static void settle(struct program *program)
{
	for (int i = 0; i < LONG; i++) {
		change(program);
		tick(program);
	}
	go_to_full(program);
}

static void end(struct program *program)
{
	sampler_destroy(program->sampler);
	fake_python_done(&program->py);
}

static uint64_t nr_lost(const struct program *program, enum sample_loss loss)
{
	return sampler_stats(program->sampler)->lost[loss];
}

/* Hold so many ticks, each of another stack than the one before. */
static void hold(struct program *program, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		change(program);
		tick(program);
	}
	cr_assert(eq(u32, program->sampler->held.nr, nr));
}

Test(held_copies, a_proof_hands_on_all_in_order)
{
	for (size_t v = 0; v < NR_MINORS; v++) {
		struct program program;
		uint64_t nr_reads, nr_samples;

		begin(&program, minors[v]);
		settle(&program);
		nr_samples = program.nr_samples;
		hold(&program, MAX_HELD_COPIES - 1);
		nr_reads = program.py.fake.nr_ranges;
		tick(&program);
		cr_expect(eq(u64, program.py.fake.nr_ranges - nr_reads, minors[v] < 14 ? 2 : 1));
		cr_expect(eq(u64, program.nr_samples, nr_samples), "nothing without proof");
		tick(&program);
		cr_expect(eq(u64, program.nr_samples, nr_samples + MAX_HELD_COPIES + 1));
		cr_expect(eq(u64, program.nr_samples, program.nr_ticks));
		cr_expect(eq(u64, sampler_stats(program.sampler)->ticks, program.nr_ticks));
		cr_expect(ne(ptr, program.sampler->held.thread, NULL), "and so on");
		end(&program);
	}
}

Test(held_copies, a_full_tick_comes_in_time)
{
	struct program program;

	begin(&program, 15);
	settle(&program);
	hold(&program, 1);
	program.now_ns += HELD_MAX_NS;
	tick(&program);
	cr_expect(zero(u32, program.sampler->held.nr));
	cr_expect(eq(u64, program.nr_samples, program.nr_ticks));
	end(&program);
}

/* When it was begun is not known. */
Test(held_copies, those_before_another_chunk_is_in_use_are_lost)
{
	for (size_t v = 0; v < NR_MINORS; v++) {
		struct program program;

		begin(&program, minors[v]);
		settle(&program);
		hold(&program, MAX_HELD_COPIES);
		fake_stack_new_chunk(&program.stack, CHUNK_BYTES);
		call(&program, 'c');
		tick(&program);
		cr_expect(eq(u64, nr_lost(&program, LOSS_HELD), MAX_HELD_COPIES), "3.%u",
			  minors[v]);
		cr_expect(eq(ptr, program.sampler->held.thread, NULL), "off for a time");
		end(&program);
	}
}

/* What lies in a chunk that is not copied shows by where the stack ends in the one that is. */
Test(held_copies, those_above_a_chunk_that_is_dropped_again_are_lost)
{
	for (size_t v = 0; v < NR_MINORS; v++) {
		struct program program;
		struct fake_stack before;
		char leaf;

		begin(&program, minors[v]);
		settle(&program);
		hold(&program, 2);
		before = program.stack;
		leaf = program.leaf;
		fake_stack_new_chunk(&program.stack, CHUNK_BYTES);
		call(&program, leaf == 'b' ? 'c' : 'b');
		tick(&program);
		tick(&program);
		program.stack = before;
		program.leaf = leaf;
		fake_stack_finish(&program.stack);
		while (program.sampler->held.nr)
			tick(&program);
		cr_expect(ge(u64, nr_lost(&program, LOSS_CHUNK), 2), "3.%u", minors[v]);
		cr_expect(eq(u64, program.nr_samples + nr_lost(&program, LOSS_CHUNK),
			     program.nr_ticks));
		end(&program);
	}
}

Test(held_copies, what_fails_again_soon_is_off_for_longer)
{
	struct held_copies held = {0};
	struct snapshot snapshot = {.nr_takes = 100};
	uint64_t least, longest = 0;

	held_copies_turn_off(&held, &snapshot);
	least = held.off_take - snapshot.nr_takes;
	cr_expect(lt(u64, 0, least));
	held_copies_turn_off(&held, &snapshot);
	cr_expect(eq(u64, held.off_take - snapshot.nr_takes, least), "twice in a tick is once");
	for (int i = 0; i < 20; i++) {
		uint64_t nr;

		snapshot.nr_takes = held.off_take + 1;
		held_copies_turn_off(&held, &snapshot);
		nr = held.off_take - snapshot.nr_takes;
		cr_expect(eq(u64, nr, nr == longest ? longest : least << (i + 1)));
		longest = nr;
	}
	cr_expect(eq(u64, longest, least << 7), "but not for good");
	snapshot.nr_takes = held.off_take + longest;
	held_copies_turn_off(&held, &snapshot);
	cr_expect(eq(u64, held.off_take - snapshot.nr_takes, least));
}

static void set_collecting(struct program *program)
{
	const struct py_offsets *offsets = &program->py.build.offsets;
	remote_addr addr = program->py.interp_addr + offsets->interpreter.gc;

	if (offsets->gc.frame != OFFSET_ABSENT)
		fake_memory_write_u64(&program->py.fake, addr + offsets->gc.frame, 0x1000);
	else
		fake_memory_write_u32(&program->py.fake, addr + offsets->gc.collecting, 1);
}

Test(held_copies, those_before_a_collection_that_was_begun_are_lost)
{
	for (size_t v = 0; v < NR_MINORS; v++) {
		struct program program;

		begin(&program, minors[v]);
		settle(&program);
		hold(&program, MAX_HELD_COPIES);
		set_collecting(&program);
		tick(&program);
		cr_expect(eq(u64, nr_lost(&program, LOSS_HELD), MAX_HELD_COPIES));
		cr_expect(eq(u64, program.nr_samples + MAX_HELD_COPIES, program.nr_ticks));
		cr_expect(eq(ptr, program.sampler->held.thread, NULL), "off for a time");
		end(&program);
	}
}

/* Those that the failed read was to prove; no sample is of a tick that was not proven. */
Test(held_copies, nothing_is_handed_on_where_the_proof_cannot_be_read)
{
	struct program program;

	begin(&program, 15);
	settle(&program);
	hold(&program, MAX_HELD_COPIES);
	program.py.fake.error = -ESRCH;
	cr_expect(eq(int, try_tick(&program), -ESRCH));
	cr_expect(eq(u64, nr_lost(&program, LOSS_HELD), MAX_HELD_COPIES));
	cr_expect(eq(u64, program.nr_samples + MAX_HELD_COPIES + 1, program.nr_ticks));
	end(&program);
}

/* One whose code object went away meanwhile is lost, or has its own name. */
Test(held_copies, code_that_takes_anothers_place_is_not_mixed_up)
{
	for (size_t v = 0; v < NR_MINORS; v++) {
		struct program program;
		const struct fake_code other = {.name = "d", .return_unit = RETURN_UNIT};
		uint64_t lost = 0;

		begin(&program, minors[v]);
		settle(&program);
		hold(&program, 4);
		fake_python_code_free(&program.py, program.codes[1]);
		fake_python_code_at(&program.py, program.codes[1], &other);
		if (program.leaf == 'b')
			change(&program);
		while (program.sampler->held.nr)
			tick(&program);
		for (int i = 0; i < NR_SAMPLE_LOSSES; i++)
			lost += nr_lost(&program, i);
		cr_expect(ge(u64, lost, 1), "3.%u", minors[v]);
		cr_expect(eq(u64, program.nr_samples + lost, program.nr_ticks));
		end(&program);
	}
}

static void give_gil(struct program *program, remote_addr holder_addr, uint64_t nr_switches)
{
	const struct py_offsets *offsets = &program->py.build.offsets;
	remote_addr addr = program->py.interp_addr + offsets->interpreter.gil_last_holder;

	fake_memory_write_u64(&program->py.fake, addr, holder_addr);
	fake_memory_write_u32(&program->py.fake,
			      program->py.interp_addr + offsets->interpreter.gil_locked, 1);
	fake_memory_write_u64(&program->py.fake, addr + GIL_SWITCHES_OFFSET, nr_switches);
}

Test(held_copies, a_thread_that_cannot_have_run_has_samples_of_those_ticks)
{
	for (int moves = 0; moves < 2; moves++) {
		struct program program;
		struct fake_stack other;
		uint64_t nr_others;

		begin(&program, 15);
		fake_stack_init(&other, &program.py, 2, CHUNK_BYTES);
		(void)fake_stack_call(&other, program.codes[0], WORDS);
		fake_stack_finish(&other);
		give_gil(&program, program.stack.thread_addr, 7);
		settle(&program);
		nr_others = program.nr_others;
		hold(&program, MAX_HELD_COPIES);
		cr_expect(eq(u64, program.nr_others, nr_others));
		if (moves)
			give_gil(&program, other.thread_addr, 8);
		tick(&program);
		cr_expect(eq(u64, program.nr_samples, program.nr_ticks), "they are proven");
		cr_expect(
			eq(u64, program.nr_others, nr_others + (moves ? 1 : MAX_HELD_COPIES + 1)));
		cr_expect(eq(u64, nr_lost(&program, LOSS_HELD), moves ? MAX_HELD_COPIES : 0));
		cr_expect(eq(int, program.sampler->held.thread == NULL, moves));
		end(&program);
	}
}

/* No frame in the chunk tells of a generator on top. */
Test(held_copies, nothing_is_held_where_a_generator_runs)
{
	struct program program;

	begin(&program, 15);
	settle(&program);
	(void)fake_stack_resume(&program.stack, program.codes[2]);
	fake_stack_finish(&program.stack);
	program.leaf = 'c';
	for (int i = 0; i < 2 * MAX_HELD_COPIES; i++)
		tick(&program);
	cr_expect(eq(ptr, program.sampler->held.thread, NULL));
	cr_expect(eq(u64, nr_lost(&program, LOSS_HELD), MAX_HELD_COPIES));
	cr_expect(eq(u64, program.nr_samples + MAX_HELD_COPIES, program.nr_ticks));
	end(&program);
}

static int count_sample(struct sample_sink *sink, const struct sample *sample)
{
	((struct program *)sink)->nr_samples += sample->nr_frames == 2;
	return 0;
}

Test(held_copies, the_end_of_a_run_loses_none)
{
	static const struct sample_sink_ops ops = {.sample = count_sample};
	const struct sampler_options options = {.duration_ns = NS_PER_S / 10};
	struct program program;
	const struct sampler_stats *stats;
	enum sampler_end why;

	begin(&program, 15);
	settle(&program);
	program.sink.ops = &ops;
	stats = sampler_stats(program.sampler);
	cr_assert(zero(int, sampler_run(program.sampler, &options, &program.sink, &why)));
	cr_expect(eq(int, why, END_DURATION));
	cr_expect(eq(u64, program.nr_samples, stats->ticks));
	cr_expect(eq(u64, stats->samples, stats->ticks));
	cr_expect(zero(u32, program.sampler->held.nr));
	end(&program);
}

/* A run that is stopped with some copies held. */
struct stopped {
	struct program program; /* first */
	volatile sig_atomic_t stop;
	int check_error; /* from then on */
	int sink_error;
};

enum { STOP_AFTER = 3 };

static void stop_while_held(struct fake_memory *fake, size_t range_index)
{
	struct stopped *stopped = fake->context;

	(void)range_index;
	if (stopped->program.sampler->held.nr + 1 != STOP_AFTER)
		return;
	stopped->stop = 1;
	fake->check_error = stopped->check_error;
}

static int fail_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct stopped *stopped = (struct stopped *)sink;

	(void)sample;
	return stopped->stop ? stopped->sink_error : 0;
}

Test(held_copies, a_run_that_ends_counts_all_it_tried)
{
	static const struct sample_sink_ops ops = {.sample = fail_sample};
	static const struct {
		const char *name;
		int check_error, sink_error;
		uint64_t nr_lost;
	} cases[] = {
		{"stopped", 0, 0, 0},
		{"another program", -ESRCH, 0, STOP_AFTER},
		{"no memory", 0, -ENOMEM, STOP_AFTER - 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct stopped stopped = {0};
		struct program *program = &stopped.program;
		const struct sampler_options options = {.stop = &stopped.stop};
		const struct sampler_stats *stats;
		enum sampler_end why;
		uint64_t before;

		begin(program, 15);
		settle(program);
		stopped.check_error = cases[i].check_error;
		stopped.sink_error = cases[i].sink_error;
		program->sink.ops = &ops;
		program->py.fake.before_range = stop_while_held;
		program->py.fake.context = &stopped;
		fake_memory_allow_writes(&program->py.fake);
		stats = sampler_stats(program->sampler);
		before = stats->ticks - stats->samples;
		cr_expect(eq(int, sampler_run(program->sampler, &options, &program->sink, &why),
			     cases[i].sink_error),
			  "%s", cases[i].name);
		cr_expect(eq(u64, nr_lost(program, LOSS_HELD), cases[i].nr_lost), "%s",
			  cases[i].name);
		cr_expect(eq(u64, stats->samples + cases[i].nr_lost, stats->ticks - before), "%s",
			  cases[i].name);
		cr_expect(zero(u32, program->sampler->held.nr));
		end(program);
	}
}
