/* SPDX-License-Identifier: MIT */
#include "sampler/dormancy.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/support/fake_stack.h"

/* More ticks than a thread stays awake for. */
enum { LONG = 5000 };

struct program {
	struct fake_python py;
	struct snapshot snapshot;
	remote_addr busy_addr, idle_addr; /* thread states */
	uint64_t nr_switches;
};

/* The words of the GIL of an interpreter, or of all of them. */
static void write_gil(struct fake_python *py, remote_addr interp_addr, remote_addr holder_addr,
		      uint64_t nr_switches)
{
	const struct py_offsets *offsets = &py->build.offsets;
	bool runtime = offsets->interpreter.gil_locked == OFFSET_ABSENT;
	remote_addr base = runtime ? py->runtime_addr : interp_addr;
	uint32_t holder =
		runtime ? offsets->runtime.gil_last_holder : offsets->interpreter.gil_last_holder;
	uint32_t locked = runtime ? offsets->runtime.gil_locked : offsets->interpreter.gil_locked;

	fake_memory_write_u64(&py->fake, base + holder, holder_addr);
	fake_memory_write_u32(&py->fake, base + locked, 1);
	fake_memory_write_u64(&py->fake, base + holder + GIL_SWITCHES_OFFSET, nr_switches);
}

static void give_gil(struct program *program, remote_addr holder_addr, uint64_t nr_more)
{
	program->nr_switches += nr_more;
	write_gil(&program->py, program->py.interp_addr, holder_addr, program->nr_switches);
}

static void tick(struct program *program)
{
	struct snapshot *snapshot = &program->snapshot;

	if (snapshot->stale)
		cr_assert(zero(int, snapshot_refresh(snapshot)));
	cr_assert(zero(int, snapshot_take(snapshot)));
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		if (snapshot->threads[i]->unchanged)
			continue;
		snapshot->threads[i]->is_new = false;
		cr_assert(zero(int, stack_copy_learn(&snapshot->threads[i]->stack, snapshot->memory,
						     &snapshot->build->offsets, false)));
	}
}

/* Two threads, of which one has run for long and the other has not. */
static void begin(struct program *program, uint32_t minor)
{
	*program = (struct program){0};
	fake_python_init(&program->py, minor);
	cr_assert(zero(int, snapshot_init(&program->snapshot, &program->py.fake.memory,
					  &program->py.build, program->py.runtime_addr)));
	program->idle_addr = fake_python_thread(&program->py, 1);
	program->busy_addr = fake_python_thread(&program->py, 2);
	give_gil(program, program->busy_addr, 7);
	for (int i = 0; i < LONG; i++)
		tick(program);
}

static void end(struct program *program)
{
	snapshot_done(&program->snapshot);
	fake_python_done(&program->py);
}

static struct snapshot_thread *find(struct program *program, remote_addr addr)
{
	size_t i = 0;

	while (program->snapshot.threads[i]->ref.addr != addr)
		i++;
	return program->snapshot.threads[i];
}

/* In how many of two ticks, one for each thread in turn to be checked, it was not copied. */
static int nr_skipped(struct program *program, remote_addr addr)
{
	int nr = 0;

	for (int i = 0; i < 2; i++) {
		tick(program);
		nr += find(program, addr)->unchanged;
	}
	return nr;
}

Test(dormancy, a_thread_that_never_has_the_gil_is_not_copied)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		struct program program;

		begin(&program, fake_python_minors[v]);
		if (program.py.build.free_threaded) {
			cr_expect(zero(int, nr_skipped(&program, program.idle_addr)));
		} else {
			cr_expect(eq(int, nr_skipped(&program, program.idle_addr), 1));
			cr_expect(zero(int, nr_skipped(&program, program.busy_addr)));
		}
		end(&program);
	}
}

Test(dormancy, a_thread_that_gets_the_gil_is_copied_in_the_same_tick)
{
	struct program program;

	begin(&program, 14);
	give_gil(&program, program.idle_addr, 1);
	for (int i = 0; i < 4; i++) {
		tick(&program);
		cr_expect(not(find(&program, program.idle_addr)->unchanged));
		cr_expect(not(find(&program, program.busy_addr)->unchanged));
	}
	/* It sleeps again, long after it has given the GIL back. */
	give_gil(&program, program.busy_addr, 1);
	cr_expect(zero(int, nr_skipped(&program, program.idle_addr)));
	for (int i = 0; i < LONG; i++)
		tick(&program);
	cr_expect(eq(int, nr_skipped(&program, program.idle_addr), 1));
	end(&program);
}

/* Code that is read for the one, behind both copies, must not seem older than the other's. */
Test(dormancy, a_thread_that_is_copied_behind_the_others_is_of_the_same_tick)
{
	/* In one of the two it is its turn to be checked, and it is copied with the others. */
	for (int i = 0; i < 2; i++) {
		struct program program;
		uint64_t tick_before;

		begin(&program, 11);
		for (int t = 0; t < i; t++)
			tick(&program);
		tick_before = program.snapshot.tick;
		give_gil(&program, program.idle_addr, 1);
		tick(&program);
		cr_expect(eq(u64, program.snapshot.tick, tick_before + 1));
		cr_expect(eq(u64, find(&program, program.idle_addr)->clock.tick, tick_before + 1));
		cr_expect(eq(u64, find(&program, program.busy_addr)->clock.tick, tick_before + 1));
		end(&program);
	}
}

Test(dormancy, what_the_count_cannot_tell_is_copied)
{
	static const uint64_t nr_more[] = {2, 3, 1000, (uint64_t)-1, (uint64_t)-5};

	for (size_t i = 0; i < sizeof(nr_more) / sizeof(*nr_more); i++) {
		struct program program;

		begin(&program, 13);
		give_gil(&program, program.busy_addr, nr_more[i]);
		tick(&program);
		cr_expect(not(find(&program, program.idle_addr)->unchanged));
		end(&program);
	}
}

Test(dormancy, a_holder_that_changes_without_the_count_tells_nothing)
{
	struct program program;
	remote_addr third_addr;

	begin(&program, 15);
	third_addr = fake_python_thread(&program.py, 3);
	for (int i = 0; i < LONG; i++)
		tick(&program);
	give_gil(&program, third_addr, 0);
	tick(&program);
	cr_expect(not(find(&program, program.idle_addr)->unchanged));
	end(&program);
}

/*
 * The words are not written at once: a count that was seen to rise without another holder
 * hides who had the GIL in between.
 */
Test(dormancy, a_count_that_changes_without_the_holder_tells_nothing)
{
	struct program program;

	begin(&program, 15);
	give_gil(&program, program.busy_addr, 1);
	tick(&program);
	cr_expect(not(find(&program, program.idle_addr)->unchanged));
	tick(&program);
	cr_expect(not(find(&program, program.idle_addr)->unchanged));
	end(&program);
}

Test(dormancy, a_gil_that_cannot_be_read_tells_nothing)
{
	struct program program;

	begin(&program, 15);
	give_gil(&program, 0, 0);
	tick(&program);
	cr_expect(not(find(&program, program.idle_addr)->unchanged));
	tick(&program);
	cr_expect(not(find(&program, program.idle_addr)->unchanged));
	end(&program);
}

Test(dormancy, distrust_lasts)
{
	struct program program;

	begin(&program, 15);
	dormancy_distrust(&program.snapshot);
	cr_expect(zero(int, nr_skipped(&program, program.idle_addr)));
	for (int i = 0; i < LONG; i++)
		tick(&program);
	cr_expect(zero(int, nr_skipped(&program, program.idle_addr)));
	end(&program);
}

Test(dormancy, a_thread_that_is_woken_is_copied)
{
	struct program program;

	begin(&program, 15);
	dormancy_wake(&program.snapshot, find(&program, program.idle_addr));
	cr_expect(zero(int, nr_skipped(&program, program.idle_addr)));
	end(&program);
}

/* Another interpreter, without threads, at the head of the list. */
static void add_interpreter(struct fake_python *py)
{
	const struct py_offsets *offsets = &py->build.offsets;
	remote_addr addr = py->interp_addr + 0x10000000;

	(void)fake_memory_map(&py->fake, addr, offsets->interpreter.size);
	fake_memory_write_u64(&py->fake, addr + offsets->interpreter.id, 1);
	fake_memory_write_u64(&py->fake, addr + offsets->interpreter.next, py->interp_addr);
	fake_memory_write_u64(&py->fake, py->runtime_addr + offsets->runtime.interpreters_head,
			      addr);
}

/* Swapped thread states run without taking the GIL, before 3.13. */
Test(dormancy, with_interpreters_that_may_be_swapped_all_are_copied)
{
	static const struct {
		uint32_t minor;
		int nr_skipped;
	} cases[] = {{11, 0}, {12, 0}, {13, 1}, {14, 1}, {15, 1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct program program;

		begin(&program, cases[i].minor);
		add_interpreter(&program.py);
		for (int t = 0; t < LONG; t++)
			tick(&program);
		cr_expect(eq(sz, program.snapshot.nr_interpreters, 2));
		cr_expect(eq(int, nr_skipped(&program, program.idle_addr), cases[i].nr_skipped),
			  "3.%u", cases[i].minor);
		end(&program);
	}
}
