/* SPDX-License-Identifier: MIT */
#include "sampler/sampler_state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/support/fake_objects.h"

enum { ITEM_BYTES = 64 };

/* An interpreter with one thread, and a snapshot of it. */
struct stage {
	struct fake_python py;
	struct sampled_thread sampled;
	struct sampler sampler; /* only what sampler_thread_set_flags() reads is set */
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

static void begin(struct stage *stage, uint32_t minor)
{
	struct fake_python *py = &stage->py;

	*stage = (struct stage){0};
	fake_python_init(py, minor);
	stage->thread_addr = fake_python_thread(py, 1);
	stage->exception_addr = make_object(py, "NoneTypeError");
	stage->none_addr = make_object(py, "NoneType");
	py->fake.whole_pages = true;
	stage->sampler.build = &py->build;
	stage->sampler.threads = &stage->sampled;
	snapshot_init(&stage->sampler.snapshot, &py->fake.memory, &py->build, py->runtime_addr);
}

static void end(struct stage *stage)
{
	snapshot_done(&stage->sampler.snapshot);
	fake_python_done(&stage->py);
}

/* What a look records about the thread. list is its stack. */
static const struct walked_thread *look(struct stage *stage, const struct frame_list *list)
{
	struct snapshot *snapshot = &stage->sampler.snapshot;
	enum instant_verdict verdict;

	if (snapshot->is_stale)
		cr_assert(zero(int, snapshot_refresh(snapshot)));
	cr_assert(zero(int, snapshot_begin(snapshot, NULL)));
	cr_assert(eq(sz, snapshot->nr_threads, 1));
	cr_assert(snapshot->threads[0]->was_copied);
	stage->sampled.list = *list;
	sampler_thread_set_flags(&stage->sampler, snapshot->threads[0]);
	cr_assert(zero(int, snapshot_end(snapshot, &verdict)));
	return &stage->sampled.walked;
}

static uint32_t flags(struct stage *stage, bool follow)
{
	static const struct frame_list list;

	stage->sampler.extras.exceptions = follow;
	return look(stage, &list)->flags;
}

static uint32_t collector(struct stage *stage, const struct frame_list *list)
{
	return look(stage, list)->collector;
}

/* Write a word at an offset that the version has. */
static void put(struct stage *stage, remote_addr addr, uint32_t offset, uint64_t value)
{
	if (offset != OFFSET_ABSENT)
		fake_memory_write_u64(&stage->py.fake, addr + offset, value);
}

Test(sampler_thread_flags, finds_raised_and_handled_exceptions)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		struct stage stage;

		begin(&stage, fake_minors[v]);
		const struct py_offsets *offsets = &stage.py.build.offsets;
		const uint32_t minor = stage.py.minor;

		cr_expect(zero(uint, flags(&stage, true)), "3.%u", minor);
		put(&stage, stage.thread_addr, offsets->thread.raised, stage.exception_addr);
		cr_expect(eq(uint, flags(&stage, false), SAMPLE_EXCEPTION), "3.%u", minor);
		put(&stage, stage.thread_addr, offsets->thread.raised, 0);
		put(&stage, stage.thread_addr, offsets->thread.exc_state, stage.exception_addr);
		cr_expect(eq(uint, flags(&stage, false), SAMPLE_EXCEPTION), "3.%u", minor);
		put(&stage, stage.thread_addr, offsets->thread.exc_state, 0);
		cr_expect(zero(uint, flags(&stage, false)), "3.%u", minor);
		end(&stage);
	}
}

/* Up to 3.12 a handled exception leaves None. Which object None is, is read once. */
Test(sampler_thread_flags, none_is_no_exception)
{
	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		struct stage stage;
		uint64_t nr_calls;

		begin(&stage, fake_minors[v]);
		const uint32_t exc_state = stage.py.build.offsets.thread.exc_state;
		const uint32_t minor = stage.py.minor;

		put(&stage, stage.thread_addr, exc_state, stage.exception_addr);
		cr_expect(eq(uint, flags(&stage, false), SAMPLE_EXCEPTION), "3.%u", minor);
		nr_calls = stage.py.fake.nr_calls;
		cr_expect(eq(uint, flags(&stage, false), SAMPLE_EXCEPTION), "3.%u", minor);
		cr_expect(eq(u64, stage.py.fake.nr_calls, nr_calls + 1),
			  "3.%u: the result is cached", minor);
		if (minor > 12) {
			end(&stage);
			continue;
		}
		put(&stage, stage.thread_addr, exc_state, stage.none_addr);
		cr_expect(zero(uint, flags(&stage, false)), "3.%u", minor);
		nr_calls = stage.py.fake.nr_calls;
		cr_expect(zero(uint, flags(&stage, false)), "3.%u", minor);
		put(&stage, stage.thread_addr, exc_state, stage.exception_addr);
		cr_expect(eq(uint, flags(&stage, false), SAMPLE_EXCEPTION), "3.%u", minor);
		cr_expect(eq(u64, stage.py.fake.nr_calls, nr_calls + 2),
			  "3.%u: one read in each tick", minor);
		end(&stage);
	}
}

/* An unreadable object counts as an exception, because None can always be read. */
Test(sampler_thread_flags, unreadable_object_is_an_exception)
{
	struct stage stage;

	begin(&stage, 11);
	put(&stage, stage.thread_addr, stage.py.build.offsets.thread.exc_state, UINT64_MAX - 8);
	cr_expect(eq(uint, flags(&stage, false), SAMPLE_EXCEPTION));
	end(&stage);
}

/*
 * Make a list of exception items with these values, innermost first. list_end is where the last
 * item points.
 */
enum list_end { TO_THREAD, TO_ITSELF, TO_NOTHING, TO_NOWHERE };

static void make_list(struct stage *stage, const remote_addr *values, size_t nr_values,
		      enum list_end list_end)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;
	remote_addr addrs[3];
	const remote_addr ends[] = {
		[TO_THREAD] = stage->thread_addr + offsets->thread.exc_state,
		[TO_NOWHERE] = 0x10,
	};

	for (size_t i = 0; i < nr_values; i++)
		addrs[i] = fake_python_alloc(&stage->py, ITEM_BYTES);
	for (size_t i = 0; i < nr_values; i++) {
		remote_addr next_addr = i + 1 < nr_values ? addrs[i + 1] : ends[list_end];

		if (i + 1 == nr_values && list_end == TO_ITSELF)
			next_addr = addrs[i];
		put(stage, addrs[i], offsets->exc_item.value, values[i]);
		put(stage, addrs[i], offsets->exc_item.previous, next_addr);
	}
	put(stage, stage->thread_addr, offsets->thread.exc_info, addrs[0]);
}

Test(sampler_thread_flags, exceptions_of_generators_are_followed)
{
	for (size_t v = 1; v < NR_FAKE_MINORS; v++) { /* 3.6 has no list */
		for (int to = TO_THREAD; to <= TO_NOWHERE; to++) {
			const enum list_end list_end = (enum list_end)to;
			struct stage stage;

			begin(&stage, fake_minors[v]);
			const uint32_t minor = stage.py.minor;
			const remote_addr values[] = {0, stage.exception_addr, 0};
			const remote_addr nothing[] = {0, 0, 0};

			make_list(&stage, values, 3, list_end);
			cr_expect(zero(uint, flags(&stage, false)), "3.%u", minor);
			cr_expect(eq(uint, flags(&stage, true), SAMPLE_EXCEPTION), "3.%u", minor);
			make_list(&stage, nothing, 3, list_end);
			cr_expect(zero(uint, flags(&stage, true)), "3.%u, end %d", minor, to);
			cr_expect(le(u64, stage.py.fake.nr_calls, 3 * EXC_ITEMS_MAX));
			end(&stage);
		}
	}
}

Test(sampler_thread_flags, recognises_a_wait_for_the_gil)
{
	struct stage stage;

	begin(&stage, 15);
	const struct py_offsets *offsets = &stage.py.build.offsets;

	fake_memory_write_u32(&stage.py.fake, stage.thread_addr + offsets->thread.gil_requested, 1);
	cr_expect(eq(uint, flags(&stage, false), SAMPLE_WAITS_FOR_GIL));
	put(&stage, stage.py.interp_addr, offsets->interpreter.gil_last_holder, stage.thread_addr);
	fake_memory_write_u32(&stage.py.fake,
			      stage.py.interp_addr + offsets->interpreter.gil_locked, 1);
	cr_expect(eq(uint, flags(&stage, false), SAMPLE_HOLDS_GIL));
	end(&stage);
}

static void set_gil(struct stage *stage, int32_t locked)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;
	bool runtime = offsets->interpreter.gil_locked == OFFSET_ABSENT;
	remote_addr addr = runtime ? stage->py.runtime_addr : stage->py.interp_addr;
	uint32_t at = runtime ? offsets->runtime.gil_locked : offsets->interpreter.gil_locked;

	if (at == OFFSET_ABSENT)
		return;
	put(stage, addr, at - 8, stage->thread_addr);
	fake_memory_write_u32(&stage->py.fake, addr + at, (uint32_t)locked);
}

/* Set the collecting flag, and frame_addr as its frame in versions that record it. */
static void set_collecting(struct stage *stage, remote_addr frame_addr)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;
	bool runtime = offsets->interpreter.gc == OFFSET_ABSENT;
	remote_addr addr = runtime ? stage->py.runtime_addr + offsets->runtime.gc
				   : stage->py.interp_addr + offsets->interpreter.gc;

	if (offsets->gc.collecting == OFFSET_ABSENT)
		return;
	fake_memory_write_u32(&stage->py.fake, addr + offsets->gc.collecting, frame_addr != 0);
	put(stage, addr, offsets->gc.frame, frame_addr);
}

Test(sampler_thread_flags, finds_where_the_collector_runs)
{
	struct walked_frame frames[] = {
		{.addr = 0x1000, .nr_begun = 1},
		{.addr = 0x2000, .nr_begun = 1, .hidden = true},
		{.addr = 0x3000, .nr_begun = 2},
		{.addr = 0x4000, .nr_begun = 3},
	};
	const struct frame_list list = {.frames = frames, .nr_frames = 4};

	for (size_t v = 0; v < NR_FAKE_MINORS; v++) {
		struct stage stage;

		begin(&stage, fake_minors[v]);
		const uint32_t minor = stage.py.minor;
		const bool by_frame = stage.py.build.offsets.gc.frame != OFFSET_ABSENT;
		const uint32_t innermost = minor == 6 ? NOT_COLLECTING : by_frame ? 2 : 3;

		cr_expect(eq(uint, collector(&stage, &list), NOT_COLLECTING));
		set_collecting(&stage, 0x3000);
		set_gil(&stage, 1);
		cr_expect(eq(uint, collector(&stage, &list), innermost), "3.%u", minor);
		set_gil(&stage, 0);
		cr_expect(eq(uint, collector(&stage, &list), by_frame ? 2 : NOT_COLLECTING), "3.%u",
			  minor);
		set_gil(&stage, 1);
		set_collecting(&stage, by_frame ? 0x5000 : 0); /* another thread's frame */
		cr_expect(eq(uint, collector(&stage, &list), NOT_COLLECTING), "3.%u", minor);
		end(&stage);
	}
}
