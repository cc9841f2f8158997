/* SPDX-License-Identifier: MIT */
#include "sampler/snapshot.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "tests/support/fake_stack.h"

enum { CHUNK_BYTES = 4096, WORDS = 20 };

static void begin(struct fake_python *py, struct snapshot *snapshot, uint32_t minor)
{
	fake_python_init(py, minor);
	cr_assert(
		zero(int, snapshot_init(snapshot, &py->fake.memory, &py->build, py->runtime_addr)));
	cr_assert(snapshot->stale);
}

static void end(struct fake_python *py, struct snapshot *snapshot)
{
	snapshot_done(snapshot);
	fake_python_done(py);
}

static bool has_thread(const struct snapshot *snapshot, uint64_t tid)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i]->ref.native_tid == tid)
			return true;
	return false;
}

static const struct snapshot_thread *find(const struct snapshot *snapshot, uint64_t tid)
{
	size_t i = 0;

	while (i < snapshot->nr_threads && snapshot->threads[i]->ref.native_tid != tid)
		i++;
	cr_assert(lt(sz, i, snapshot->nr_threads));
	return snapshot->threads[i];
}

static void check_slots(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		cr_expect(lt(uint, snapshot->threads[i]->slot, snapshot->nr_slots));
		for (size_t j = 0; j < i; j++)
			cr_expect(ne(uint, snapshot->threads[i]->slot, snapshot->threads[j]->slot));
	}
}

static void learn_all(struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		snapshot->threads[i]->is_new = false;
		cr_assert(zero(int, stack_copy_learn(&snapshot->threads[i]->stack, snapshot->memory,
						     &snapshot->build->offsets, false)));
	}
}

static void tick(struct snapshot *snapshot)
{
	if (snapshot->stale)
		cr_assert(zero(int, snapshot_refresh(snapshot)));
	cr_assert(zero(int, snapshot_take(snapshot)));
	learn_all(snapshot);
}

Test(snapshot, threads_come_and_go)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		struct fake_python py;
		struct snapshot snapshot;

		begin(&py, &snapshot, fake_python_minors[v]);
		remote_addr first = fake_python_thread(&py, 1);
		(void)fake_python_thread(&py, 2);
		tick(&snapshot);
		cr_expect(eq(sz, snapshot.nr_threads, 2));
		cr_expect(not(snapshot.stale));
		uint32_t slot = find(&snapshot, 1)->slot;

		/* A new head is seen at the next tick, and known from the one behind it on. */
		remote_addr third = fake_python_thread(&py, 3);
		tick(&snapshot);
		cr_expect(snapshot.stale);
		tick(&snapshot);
		cr_expect(eq(sz, snapshot.nr_threads, 3));
		check_slots(&snapshot);
		cr_expect(eq(uint, find(&snapshot, 1)->slot, slot));

		/* The one in the middle ends: the link of the one before it moves. */
		fake_memory_write_u64(&py.fake, third + py.build.offsets.thread.next, first);
		tick(&snapshot);
		cr_expect(snapshot.stale);
		tick(&snapshot);
		cr_expect(eq(sz, snapshot.nr_threads, 2));
		cr_expect(not(has_thread(&snapshot, 2)));
		check_slots(&snapshot);
		cr_expect(eq(uint, find(&snapshot, 1)->slot, slot));

		/* Its slot is used again. */
		(void)fake_python_thread(&py, 4);
		tick(&snapshot);
		tick(&snapshot);
		cr_expect(eq(uint, snapshot.nr_slots, 3));
		check_slots(&snapshot);
		end(&py, &snapshot);
	}
}

/* A list of the odd threads that there were and as many new ones, which are at its head. */
Test(snapshot, many_threads_that_come_and_go_keep_their_slots)
{
	enum { NR_THREADS = 200 };
	struct fake_python py;
	struct snapshot snapshot;
	remote_addr addrs[NR_THREADS];
	uint32_t slots[NR_THREADS];
	remote_addr next_addr = 0;

	begin(&py, &snapshot, 14);
	for (uint64_t i = 0; i < NR_THREADS; i++)
		addrs[i] = fake_python_thread(&py, i + 1);
	tick(&snapshot);
	for (uint64_t i = 0; i < NR_THREADS; i++)
		slots[i] = find(&snapshot, i + 1)->slot;
	for (uint64_t i = 1; i < NR_THREADS; i += 2) {
		fake_python_thread_at(&py, addrs[i], i + 1, next_addr);
		next_addr = addrs[i];
	}
	fake_python_set_threads(&py, next_addr);
	for (uint64_t i = 0; i < NR_THREADS / 2; i++)
		(void)fake_python_thread(&py, 1000 + i);
	cr_assert(zero(int, snapshot_refresh(&snapshot)));
	cr_expect(eq(sz, snapshot.nr_threads, NR_THREADS));
	cr_expect(eq(uint, snapshot.nr_slots, NR_THREADS), "free slots are used again");
	check_slots(&snapshot);
	for (uint64_t i = 1; i < NR_THREADS; i += 2) {
		cr_expect(eq(uint, find(&snapshot, i + 1)->slot, slots[i]));
		cr_expect(not(find(&snapshot, i + 1)->is_new));
	}
	for (uint64_t i = 0; i < NR_THREADS / 2; i++)
		cr_expect(find(&snapshot, 1000 + i)->is_new);
	end(&py, &snapshot);
}

Test(snapshot, thread_state_used_again_is_another_thread)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		struct fake_python py;
		struct snapshot snapshot;

		begin(&py, &snapshot, fake_python_minors[v]);
		remote_addr addr = fake_python_thread(&py, 1);
		tick(&snapshot);
		fake_python_thread_at(&py, addr, 2, 0);
		cr_assert(zero(int, snapshot_take(&snapshot)));
		cr_expect(not(snapshot.threads[0]->copied));
		cr_expect(snapshot.stale);
		cr_assert(zero(int, snapshot_refresh(&snapshot)));
		cr_assert(eq(sz, snapshot.nr_threads, 1));
		cr_expect(eq(u64, snapshot.threads[0]->ref.native_tid, 2));
		cr_expect(snapshot.threads[0]->is_new);
		cr_expect(zero(sz, snapshot.threads[0]->stack.nr_chunks));
		end(&py, &snapshot);
	}
}

Test(snapshot, thread_state_that_is_unmapped_is_not_copied)
{
	struct fake_python py;
	struct snapshot snapshot;

	begin(&py, &snapshot, 14);
	(void)fake_python_thread(&py, 1);
	remote_addr addr = fake_python_thread(&py, 2);
	tick(&snapshot);
	fake_memory_unmap(&py.fake, addr);
	cr_assert(zero(int, snapshot_take(&snapshot)));
	cr_expect(snapshot.stale);
	cr_expect(not(find(&snapshot, 2)->copied));
	cr_expect(find(&snapshot, 1)->copied);
	/* The old list stays while the new one cannot be read. */
	cr_expect(eq(int, snapshot_refresh(&snapshot), -EFAULT));
	cr_expect(eq(sz, snapshot.nr_threads, 2));
	end(&py, &snapshot);
}

Test(snapshot, steady_state_is_one_read)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		struct fake_python py;
		struct snapshot snapshot;

		begin(&py, &snapshot, fake_python_minors[v]);
		for (uint64_t tid = 1; tid <= 3; tid++) {
			remote_addr thread = fake_python_thread(&py, tid);
			remote_addr chunk = fake_python_chunk(&py, 0, CHUNK_BYTES);

			fake_python_set_stack(&py, thread, chunk, chunk + 32, 0);
		}
		tick(&snapshot);
		tick(&snapshot);
		uint64_t nr_calls = py.fake.nr_calls;
		for (int i = 0; i < 10; i++)
			tick(&snapshot);
		cr_expect(eq(u64, py.fake.nr_calls, nr_calls + 10));
		end(&py, &snapshot);
	}
}

Test(snapshot, chunks_are_followed_up_and_down)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		struct fake_python py;
		struct snapshot snapshot;
		struct fake_stack stack;

		begin(&py, &snapshot, fake_python_minors[v]);
		fake_stack_init(&stack, &py, 1, CHUNK_BYTES);
		fake_stack_finish(&stack);
		remote_addr oldest = stack.chunk_addr;
		tick(&snapshot);
		struct stack_copy *copy = &snapshot.threads[0]->stack;
		cr_assert(eq(sz, copy->nr_chunks, 1));

		fake_stack_new_chunk(&stack, CHUNK_BYTES);
		fake_stack_new_chunk(&stack, 2 * CHUNK_BYTES);
		fake_stack_finish(&stack);
		tick(&snapshot);
		cr_assert(eq(sz, copy->nr_chunks, 3));
		cr_expect(eq(u64, copy->chunks[0].addr, oldest));
		cr_expect(eq(u64, copy->chunks[2].addr, stack.chunk_addr));
		cr_expect(eq(sz, copy->chunks[2].size_bytes, 2 * CHUNK_BYTES));
		tick(&snapshot);
		cr_expect(eq(sz, copy->chunks[2].done_bytes, 2 * CHUNK_BYTES));

		/* Those above the newest are kept: they are often taken again. */
		fake_python_set_stack(&py, stack.thread_addr, copy->chunks[1].addr,
				      copy->chunks[1].addr + 100, 0);
		tick(&snapshot);
		cr_expect(eq(sz, copy->nr_chunks, 3));
		/* One that is new comes before them. */
		remote_addr popped = copy->chunks[2].addr;
		stack.chunk_addr = copy->chunks[1].addr;
		stack.next_addr = stack.chunk_addr + 128;
		fake_stack_new_chunk(&stack, CHUNK_BYTES);
		fake_stack_finish(&stack);
		tick(&snapshot);
		cr_assert(eq(sz, copy->nr_chunks, 4));
		cr_expect(eq(u64, copy->chunks[2].addr, stack.chunk_addr));
		cr_expect(eq(u64, copy->chunks[3].addr, popped));

		/* Also while they are unmapped, but not for ever. */
		fake_memory_unmap(&py.fake, copy->chunks[2].addr);
		fake_python_set_stack(&py, stack.thread_addr, oldest, oldest + 100, 0);
		for (int i = 0; i < 100; i++)
			tick(&snapshot);
		cr_expect(eq(sz, copy->nr_chunks, 4));
		for (int i = 0; i < 2000; i++)
			tick(&snapshot);
		cr_expect(eq(sz, copy->nr_chunks, 1));
		end(&py, &snapshot);
	}
}

/*
 * A chunk that was popped before its header was read names no other, as an oldest one does,
 * but was used from its first word on.
 */
Test(snapshot, popped_chunk_is_not_taken_for_the_oldest)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		struct fake_python py;
		struct snapshot snapshot;
		struct fake_stack stack;

		begin(&py, &snapshot, fake_python_minors[v]);
		const struct py_offsets *offsets = &py.build.offsets;
		fake_stack_init(&stack, &py, 1, CHUNK_BYTES);
		fake_stack_finish(&stack);
		remote_addr oldest = stack.chunk_addr;
		tick(&snapshot);
		const struct stack_copy *copy = &snapshot.threads[0]->stack;

		fake_stack_new_chunk(&stack, CHUNK_BYTES);
		fake_memory_write_u64(&py.fake, stack.chunk_addr + offsets->chunk.previous, 0);
		fake_memory_write_u64(&py.fake, stack.chunk_addr + offsets->chunk.data, 1);
		fake_stack_finish(&stack);
		tick(&snapshot);
		cr_assert(eq(sz, copy->nr_chunks, 1));
		cr_expect(eq(u64, copy->chunks[0].addr, oldest));

		fake_memory_write_u64(&py.fake, stack.chunk_addr + offsets->chunk.previous, oldest);
		tick(&snapshot);
		cr_assert(eq(sz, copy->nr_chunks, 2));
		cr_expect(eq(u64, copy->chunks[1].addr, stack.chunk_addr));
		end(&py, &snapshot);
	}
}

/* The range of the copy that begins at addr. */
static const struct remote_range *range_at(const struct snapshot *snapshot, remote_addr addr)
{
	size_t i = 0;

	while (i < snapshot->nr_ranges && snapshot->ranges[i].addr != addr)
		i++;
	cr_assert(lt(sz, i, snapshot->nr_ranges));
	return &snapshot->ranges[i];
}

Test(snapshot, popped_chunk_takes_those_above_out_of_the_read)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		remote_addr chunks[4];
		struct fake_python py;
		struct snapshot snapshot;
		struct fake_stack stack;

		begin(&py, &snapshot, fake_python_minors[v]);
		fake_stack_init(&stack, &py, 1, CHUNK_BYTES);
		chunks[0] = stack.chunk_addr;
		for (int i = 1; i < 4; i++) {
			fake_stack_new_chunk(&stack, CHUNK_BYTES);
			chunks[i] = stack.chunk_addr;
		}
		fake_stack_finish(&stack);
		tick(&snapshot);
		tick(&snapshot);
		for (int i = 0; i < 4; i++)
			cr_expect(zero(sz, range_at(&snapshot, chunks[i])->nr_with_it));

		/* The upper two are popped. */
		fake_python_set_stack(&py, stack.thread_addr, chunks[1], chunks[1] + 100, 0);
		tick(&snapshot);
		tick(&snapshot);
		cr_expect(zero(sz, range_at(&snapshot, chunks[1])->nr_with_it));
		cr_expect(eq(sz, range_at(&snapshot, chunks[2])->nr_with_it, 1));
		cr_expect(zero(sz, range_at(&snapshot, chunks[3])->nr_with_it));
		cr_expect(eq(sz, snapshot.nr_pieces, snapshot.nr_ranges));

		/* The lower one of them is unmapped. */
		fake_memory_unmap(&py.fake, chunks[2]);
		tick(&snapshot);
		cr_expect(eq(sz, snapshot.nr_pieces, snapshot.nr_ranges - 1));

		/* Of a stack that went on above them, none is left out. */
		snapshot.threads[0]->stack.reads_spares = true;
		cr_assert(zero(int, snapshot_take(&snapshot)));
		for (int i = 0; i < 4; i++)
			cr_expect(zero(sz, range_at(&snapshot, chunks[i])->nr_with_it));
		end(&py, &snapshot);
	}
}

Test(snapshot, spare_chunk_is_forgotten_in_the_end)
{
	struct fake_python py;
	struct snapshot snapshot;
	struct fake_stack stack;

	begin(&py, &snapshot, 14);
	fake_stack_init(&stack, &py, 1, CHUNK_BYTES);
	remote_addr oldest = stack.chunk_addr;
	fake_stack_new_chunk(&stack, CHUNK_BYTES);
	fake_stack_finish(&stack);
	tick(&snapshot);
	fake_python_set_stack(&py, stack.thread_addr, oldest, oldest + 100, 0);
	int nr_ticks = 0;
	while (snapshot.threads[0]->stack.nr_chunks == 2 && nr_ticks < 100000) {
		tick(&snapshot);
		nr_ticks++;
	}
	cr_expect(eq(sz, snapshot.threads[0]->stack.nr_chunks, 1));
	cr_expect(lt(int, 10, nr_ticks));
	end(&py, &snapshot);
}

Test(snapshot, copy_shrinks_to_what_is_used)
{
	struct fake_python py;
	struct snapshot snapshot;
	struct fake_stack stack;

	begin(&py, &snapshot, 15);
	fake_stack_init(&stack, &py, 1, 1 << 20);
	fake_stack_finish(&stack);
	tick(&snapshot);
	tick(&snapshot);
	const struct chunk_copy *chunk = &snapshot.threads[0]->stack.chunks[0];
	cr_expect(lt(sz, 4096, chunk->done_bytes), "of a new chunk much is copied");
	for (int i = 0; i < 3000; i++)
		tick(&snapshot);
	cr_expect(lt(sz, chunk->done_bytes, 4096));
	end(&py, &snapshot);
}

/* Room that the copies of all threads have. */
static size_t room_bytes(const struct snapshot *snapshot)
{
	size_t bytes = 0;

	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct stack_copy *stack = &snapshot->threads[i]->stack;

		for (size_t j = 0; j < stack->nr_chunks; j++)
			bytes += stack->chunks[j].max_bytes + stack->chunks[j].before_max_bytes;
	}
	return bytes;
}

static size_t nr_threads_with_chunks(const struct snapshot *snapshot)
{
	size_t nr = 0;

	for (size_t i = 0; i < snapshot->nr_threads; i++)
		nr += snapshot->threads[i]->stack.nr_chunks > 0;
	return nr;
}

/* Many threads that all say the same chunk is theirs, and that it is full. */
Test(snapshot, copies_of_all_threads_are_bounded)
{
	enum { NR_THREADS = 20, SHARED_BYTES = 256 << 10, MAX_BYTES = 2 << 20 };
	struct fake_python py;
	struct snapshot snapshot;
	remote_addr threads[NR_THREADS];

	begin(&py, &snapshot, 15);
	cr_expect(eq(sz, snapshot.budget.max_bytes, COPIES_MAX_BYTES));
	snapshot.budget.max_bytes = MAX_BYTES;
	remote_addr chunk = fake_python_chunk(&py, 0, SHARED_BYTES);
	for (uint64_t i = 0; i < NR_THREADS; i++) {
		threads[i] = fake_python_thread(&py, i + 1);
		fake_python_set_stack(&py, threads[i], chunk, chunk + SHARED_BYTES, 0);
	}
	for (int i = 0; i < 10; i++) {
		tick(&snapshot);
		cr_assert(le(sz, room_bytes(&snapshot), MAX_BYTES));
		cr_assert(le(sz, snapshot.budget.used_bytes, MAX_BYTES));
		cr_expect(ge(sz, nr_threads_with_chunks(&snapshot), 3));
	}
	cr_expect(lt(sz, MAX_BYTES / 2, snapshot.budget.used_bytes));

	/* Once the others need less there is room for all: the windows shrink in the end. */
	for (uint64_t i = 0; i < NR_THREADS; i++)
		fake_python_set_stack(&py, threads[i], chunk, chunk + 1000, 0);
	for (int i = 0; i < 3000; i++)
		tick(&snapshot);
	cr_expect(eq(sz, nr_threads_with_chunks(&snapshot), NR_THREADS));

	/* All is given back. */
	fake_python_set_threads(&py, 0);
	cr_assert(zero(int, snapshot_refresh(&snapshot)));
	cr_expect(zero(sz, snapshot.budget.used_bytes));
	end(&py, &snapshot);
}

/* Headers that no chunk has are looked at, and nothing is made of them. */
Test(snapshot, chunk_headers_are_not_believed)
{
	static const struct {
		char name[32];
		uint64_t previous, size;
	} cases[] = {
		{"too small", 0, 8},
		{"empty", 0, 0},
		{"too large", 0, 1ull << 40},
		{"all ones", UINT64_MAX, UINT64_MAX},
		{"previous unmapped", 0x1000, CHUNK_BYTES},
		{"previous unaligned", 0x5700000001, CHUNK_BYTES},
		{"previous wraps", UINT64_MAX - 7, CHUNK_BYTES},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fake_python py;
		struct snapshot snapshot;

		begin(&py, &snapshot, 14);
		remote_addr thread = fake_python_thread(&py, 1);
		remote_addr chunk = fake_python_chunk(&py, cases[i].previous, CHUNK_BYTES);
		fake_memory_write_u64(&py.fake, chunk + 8, cases[i].size);
		fake_python_set_stack(&py, thread, chunk, chunk + 32, 0);
		tick(&snapshot);
		cr_expect(zero(sz, snapshot.threads[0]->stack.nr_chunks), "%s", cases[i].name);
		end(&py, &snapshot);
	}
}

Test(snapshot, chunks_in_a_circle_end)
{
	struct fake_python py;
	struct snapshot snapshot;

	begin(&py, &snapshot, 14);
	remote_addr thread = fake_python_thread(&py, 1);
	remote_addr first = fake_python_chunk(&py, 0, CHUNK_BYTES);
	remote_addr second = fake_python_chunk(&py, first, CHUNK_BYTES);
	fake_memory_write_u64(&py.fake, first, second);
	fake_python_set_stack(&py, thread, second, second + 32, 0);
	tick(&snapshot);
	cr_expect(zero(sz, snapshot.threads[0]->stack.nr_chunks));
	end(&py, &snapshot);
}

Test(snapshot, lists_in_a_circle_end)
{
	struct fake_python py;
	struct snapshot snapshot;

	begin(&py, &snapshot, 14);
	remote_addr thread = fake_python_thread(&py, 1);
	fake_memory_write_u64(&py.fake, thread + py.build.offsets.thread.next, thread);
	cr_expect(eq(int, snapshot_refresh(&snapshot), -E2BIG));
	fake_memory_write_u64(&py.fake, thread + py.build.offsets.thread.next, 0);
	fake_memory_write_u64(&py.fake, py.interp_addr + py.build.offsets.interpreter.next,
			      py.interp_addr);
	cr_expect(eq(int, snapshot_refresh(&snapshot), -E2BIG));
	end(&py, &snapshot);
}

Test(snapshot, gil_holder_is_told)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		struct fake_python py;
		struct snapshot snapshot;

		begin(&py, &snapshot, fake_python_minors[v]);
		const struct py_offsets *offsets = &py.build.offsets;
		bool runtime = offsets->interpreter.gil_locked == OFFSET_ABSENT;
		remote_addr base = runtime ? py.runtime_addr : py.interp_addr;
		uint32_t locked =
			runtime ? offsets->runtime.gil_locked : offsets->interpreter.gil_locked;
		uint32_t holder = runtime ? offsets->runtime.gil_last_holder
					  : offsets->interpreter.gil_last_holder;
		remote_addr thread = fake_python_thread(&py, 1);

		fake_memory_write_u64(&py.fake, base + holder, thread);
		tick(&snapshot);
		cr_expect(zero(u64, gil_holder_addr(&snapshot.interpreters[0].gil)));
		fake_memory_write_u32(&py.fake, base + locked, 1);
		tick(&snapshot);
		cr_expect(eq(u64, gil_holder_addr(&snapshot.interpreters[0].gil), thread));
		end(&py, &snapshot);
	}
}

Test(snapshot, errors_of_the_memory_are_passed_on)
{
	struct fake_python py;
	struct snapshot snapshot;

	begin(&py, &snapshot, 13);
	(void)fake_python_thread(&py, 1);
	tick(&snapshot);
	py.fake.error = -ESRCH;
	cr_expect(eq(int, snapshot_take(&snapshot), -ESRCH));
	py.fake.error = -EPERM;
	cr_expect(eq(int, snapshot_take(&snapshot), -EPERM));
	cr_expect(eq(int, snapshot_refresh(&snapshot), -EPERM));
	py.fake.error = 0;
	fake_memory_write_u64(&py.fake,
			      py.runtime_addr + py.build.offsets.runtime.interpreters_head, 0);
	cr_expect(eq(int, snapshot_refresh(&snapshot), -ENOENT));
	end(&py, &snapshot);
}
