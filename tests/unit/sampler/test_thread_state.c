/* SPDX-License-Identifier: MIT */
#include "sampler/sampler_state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/support/fake_objects.h"

enum { ITEM_BYTES = 64 };

/* An interpreter with one thread, and a snapshot of it. */
struct world {
	struct fake_python py;
	struct sampled_thread sampled;
	struct sampler sampler; /* only what the notes need is set */
	remote_addr thread_addr;
	remote_addr exception_addr, none_addr;
};

/* An object whose type has this name. */
static remote_addr make_object(struct fake_python *py, const char *type_name)
{
	const struct py_offsets *offsets = &py->build.offsets;
	remote_addr name_addr = fake_python_alloc(py, strlen(type_name) + 1);
	remote_addr type_addr = fake_python_alloc(py, 64);
	remote_addr addr = fake_python_alloc(py, 64);

	fake_memory_write(&py->fake, name_addr, type_name, strlen(type_name) + 1);
	fake_memory_write_u64(&py->fake, type_addr + offsets->object.tp_name, name_addr);
	fake_memory_write_u64(&py->fake, addr + offsets->object.ob_type, type_addr);
	return addr;
}

static void begin(struct world *world, uint32_t minor)
{
	struct fake_python *py = &world->py;

	*world = (struct world){0};
	fake_python_init(py, minor);
	world->thread_addr = fake_python_thread(py, 1);
	world->exception_addr = make_object(py, "NoneTypeError");
	world->none_addr = make_object(py, "NoneType");
	py->fake.whole_pages = true;
	world->sampler.build = &py->build;
	world->sampler.threads = &world->sampled;
	snapshot_init(&world->sampler.snapshot, &py->fake.memory, &py->build, py->runtime_addr);
}

static void end(struct world *world)
{
	snapshot_done(&world->sampler.snapshot);
	fake_python_done(&world->py);
}

/* What a look notes of the thread. list is its stack. */
static const struct walked_thread *look(struct world *world, const struct frame_list *list)
{
	struct snapshot *snapshot = &world->sampler.snapshot;
	enum instant_verdict verdict;

	if (snapshot->stale)
		cr_assert(zero(int, snapshot_refresh(snapshot)));
	cr_assert(zero(int, snapshot_begin(snapshot, NULL)));
	cr_assert(eq(sz, snapshot->nr_threads, 1));
	cr_assert(snapshot->threads[0]->copied);
	world->sampled.list = *list;
	sampler_thread_note(&world->sampler, snapshot->threads[0]);
	cr_assert(zero(int, snapshot_end(snapshot, &verdict)));
	return &world->sampled.walked;
}

static uint32_t flags(struct world *world, bool follow)
{
	static const struct frame_list list;

	world->sampler.looks.exceptions = follow;
	return look(world, &list)->flags;
}

static uint32_t collector(struct world *world, const struct frame_list *list)
{
	return look(world, list)->collector;
}

/* Write a word at an offset that the version has. */
static void put(struct world *world, remote_addr addr, uint32_t offset, uint64_t value)
{
	if (offset != OFFSET_ABSENT)
		fake_memory_write_u64(&world->py.fake, addr + offset, value);
}

Test(thread_state, finds_raised_and_handled_exceptions)
{
	for (size_t v = 0; v < NR_FAKE_VERSIONS; v++) {
		struct world world;

		begin(&world, fake_versions[v]);
		const struct py_offsets *offsets = &world.py.build.offsets;
		const uint32_t minor = world.py.minor;

		cr_expect(zero(uint, flags(&world, true)), "3.%u", minor);
		put(&world, world.thread_addr, offsets->thread.raised, world.exception_addr);
		cr_expect(eq(uint, flags(&world, false), SAMPLE_EXCEPTION), "3.%u", minor);
		put(&world, world.thread_addr, offsets->thread.raised, 0);
		put(&world, world.thread_addr, offsets->thread.exc_state, world.exception_addr);
		cr_expect(eq(uint, flags(&world, false), SAMPLE_EXCEPTION), "3.%u", minor);
		put(&world, world.thread_addr, offsets->thread.exc_state, 0);
		cr_expect(zero(uint, flags(&world, false)), "3.%u", minor);
		end(&world);
	}
}

/* Up to 3.12 a handled exception leaves None. Which object None is, is read once. */
Test(thread_state, none_is_no_exception)
{
	for (size_t v = 0; v < NR_FAKE_VERSIONS; v++) {
		struct world world;
		uint64_t nr_calls;

		begin(&world, fake_versions[v]);
		const uint32_t exc_state = world.py.build.offsets.thread.exc_state;
		const uint32_t minor = world.py.minor;

		put(&world, world.thread_addr, exc_state, world.exception_addr);
		cr_expect(eq(uint, flags(&world, false), SAMPLE_EXCEPTION), "3.%u", minor);
		nr_calls = world.py.fake.nr_calls;
		cr_expect(eq(uint, flags(&world, false), SAMPLE_EXCEPTION), "3.%u", minor);
		cr_expect(eq(u64, world.py.fake.nr_calls, nr_calls + 1), "3.%u: it is known",
			  minor);
		if (minor > 12) {
			end(&world);
			continue;
		}
		put(&world, world.thread_addr, exc_state, world.none_addr);
		cr_expect(zero(uint, flags(&world, false)), "3.%u", minor);
		nr_calls = world.py.fake.nr_calls;
		cr_expect(zero(uint, flags(&world, false)), "3.%u", minor);
		put(&world, world.thread_addr, exc_state, world.exception_addr);
		cr_expect(eq(uint, flags(&world, false), SAMPLE_EXCEPTION), "3.%u", minor);
		cr_expect(eq(u64, world.py.fake.nr_calls, nr_calls + 2), "3.%u: a read a tick",
			  minor);
		end(&world);
	}
}

/* An unreadable object counts as an exception, because None can always be read. */
Test(thread_state, unreadable_object_is_an_exception)
{
	struct world world;

	begin(&world, 11);
	put(&world, world.thread_addr, world.py.build.offsets.thread.exc_state, UINT64_MAX - 8);
	cr_expect(eq(uint, flags(&world, false), SAMPLE_EXCEPTION));
	end(&world);
}

/*
 * Make a list of exception items with these values, innermost first. list_end says where the last
 * item points.
 */
enum list_end { TO_THREAD, TO_ITSELF, TO_NOTHING, TO_NOWHERE };

static void make_list(struct world *world, const remote_addr *values, size_t nr_values,
		      enum list_end list_end)
{
	const struct py_offsets *offsets = &world->py.build.offsets;
	remote_addr addrs[3];
	const remote_addr ends[] = {
		[TO_THREAD] = world->thread_addr + offsets->thread.exc_state,
		[TO_NOWHERE] = 0x10,
	};

	for (size_t i = 0; i < nr_values; i++)
		addrs[i] = fake_python_alloc(&world->py, ITEM_BYTES);
	for (size_t i = 0; i < nr_values; i++) {
		remote_addr next_addr = i + 1 < nr_values ? addrs[i + 1] : ends[list_end];

		if (i + 1 == nr_values && list_end == TO_ITSELF)
			next_addr = addrs[i];
		put(world, addrs[i], offsets->exc_item.value, values[i]);
		put(world, addrs[i], offsets->exc_item.previous, next_addr);
	}
	put(world, world->thread_addr, offsets->thread.exc_info, addrs[0]);
}

Test(thread_state, exceptions_of_generators_are_followed)
{
	for (size_t v = 1; v < NR_FAKE_VERSIONS; v++) { /* 3.6 has no list */
		for (int to = TO_THREAD; to <= TO_NOWHERE; to++) {
			const enum list_end list_end = (enum list_end)to;
			struct world world;

			begin(&world, fake_versions[v]);
			const uint32_t minor = world.py.minor;
			const remote_addr values[] = {0, world.exception_addr, 0};
			const remote_addr nothing[] = {0, 0, 0};

			make_list(&world, values, 3, list_end);
			cr_expect(zero(uint, flags(&world, false)), "3.%u", minor);
			cr_expect(eq(uint, flags(&world, true), SAMPLE_EXCEPTION), "3.%u", minor);
			make_list(&world, nothing, 3, list_end);
			cr_expect(zero(uint, flags(&world, true)), "3.%u, end %d", minor, to);
			cr_expect(le(u64, world.py.fake.nr_calls, 3 * EXC_ITEMS_MAX));
			end(&world);
		}
	}
}

Test(thread_state, recognises_a_wait_for_the_gil)
{
	struct world world;

	begin(&world, 15);
	const struct py_offsets *offsets = &world.py.build.offsets;

	fake_memory_write_u32(&world.py.fake, world.thread_addr + offsets->thread.gil_requested, 1);
	cr_expect(eq(uint, flags(&world, false), SAMPLE_WAITS_FOR_GIL));
	put(&world, world.py.interp_addr, offsets->interpreter.gil_last_holder, world.thread_addr);
	fake_memory_write_u32(&world.py.fake,
			      world.py.interp_addr + offsets->interpreter.gil_locked, 1);
	cr_expect(eq(uint, flags(&world, false), SAMPLE_HOLDS_GIL));
	end(&world);
}

static void set_gil(struct world *world, int32_t locked)
{
	const struct py_offsets *offsets = &world->py.build.offsets;
	bool runtime = offsets->interpreter.gil_locked == OFFSET_ABSENT;
	remote_addr addr = runtime ? world->py.runtime_addr : world->py.interp_addr;
	uint32_t at = runtime ? offsets->runtime.gil_locked : offsets->interpreter.gil_locked;

	if (at == OFFSET_ABSENT)
		return;
	put(world, addr, at - 8, world->thread_addr);
	fake_memory_write_u32(&world->py.fake, addr + at, (uint32_t)locked);
}

/* Set the collecting flag, and frame_addr as its frame in versions that record it. */
static void set_collecting(struct world *world, remote_addr frame_addr)
{
	const struct py_offsets *offsets = &world->py.build.offsets;
	bool runtime = offsets->interpreter.gc == OFFSET_ABSENT;
	remote_addr addr = runtime ? world->py.runtime_addr + offsets->runtime.gc
				   : world->py.interp_addr + offsets->interpreter.gc;

	if (offsets->gc.collecting == OFFSET_ABSENT)
		return;
	fake_memory_write_u32(&world->py.fake, addr + offsets->gc.collecting, frame_addr != 0);
	put(world, addr, offsets->gc.frame, frame_addr);
}

Test(thread_state, finds_where_the_collector_runs)
{
	struct walked_frame frames[] = {
		{.addr = 0x1000, .nr_begun = 1},
		{.addr = 0x2000, .nr_begun = 1, .hidden = true},
		{.addr = 0x3000, .nr_begun = 2},
		{.addr = 0x4000, .nr_begun = 3},
	};
	const struct frame_list list = {.frames = frames, .nr_frames = 4};

	for (size_t v = 0; v < NR_FAKE_VERSIONS; v++) {
		struct world world;

		begin(&world, fake_versions[v]);
		const uint32_t minor = world.py.minor;
		const bool by_frame = world.py.build.offsets.gc.frame != OFFSET_ABSENT;
		const uint32_t innermost = minor == 6 ? NOT_COLLECTING : by_frame ? 2 : 3;

		cr_expect(eq(uint, collector(&world, &list), NOT_COLLECTING));
		set_collecting(&world, 0x3000);
		set_gil(&world, 1);
		cr_expect(eq(uint, collector(&world, &list), innermost), "3.%u", minor);
		set_gil(&world, 0);
		cr_expect(eq(uint, collector(&world, &list), by_frame ? 2 : NOT_COLLECTING), "3.%u",
			  minor);
		set_gil(&world, 1);
		set_collecting(&world, by_frame ? 0x5000 : 0); /* another thread's frame */
		cr_expect(eq(uint, collector(&world, &list), NOT_COLLECTING), "3.%u", minor);
		end(&world);
	}
}
