/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/code/code.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "tests/support/fake_python.h"

static const uint32_t minors[] = {
	FAKE_FREE_THREADED + 14,
	FAKE_FREE_THREADED + 15,
	FAKE_FREE_THREADED + FAKE_MAIN,
};

static const struct fake_code function = {.name = "f", .first_line = 10, .first_traceable = 1};

/* A code object of 8 units, in the cache since tick 1. */
struct stage {
	struct fake_python py;
	struct code_cache cache;
	struct code_clock clock;
	struct code *code;
	remote_addr addr;
};

static void begin(struct stage *stage, uint32_t minor)
{
	*stage = (struct stage){0};
	fake_python_init(&stage->py, minor);
	stage->addr = fake_python_code(&stage->py, &function);
	code_cache_init(&stage->cache, &stage->py.fake.memory, &stage->py.build);
	stage->clock = (struct code_clock){
		.interp_addr = stage->py.interp_addr,
		.tick = 1,
		.generation = stage->py.generation,
		.has_generation = true,
		.tlbc_generation = stage->py.tlbc_generation,
	};
	cr_assert(
		zero(int, code_cache_get(&stage->cache, stage->addr, &stage->clock, &stage->code)));
}

static void done(struct stage *stage)
{
	code_cache_done(&stage->cache);
	fake_python_done(&stage->py);
}

static int place(struct stage *stage, remote_addr addr, remote_addr *ret_addr)
{
	*ret_addr = 0;
	return code_place(&stage->cache, stage->code, &stage->clock, addr, ret_addr);
}

static remote_addr array_of(const struct stage *stage)
{
	remote_addr addr = 0;

	cr_assert(zero(int, remote_memory_read_u64(&((struct stage *)stage)->py.fake.memory,
						   stage->addr + stage->py.build.tlbc.code_array,
						   &addr)));
	return addr;
}

Test(code_place, instructions_of_a_copy_are_those_of_the_code)
{
	for (size_t v = 0; v < sizeof(minors) / sizeof(*minors); v++) {
		struct stage stage;
		remote_addr copy, found;

		begin(&stage, minors[v]);
		copy = fake_python_bytecode(&stage.py, stage.addr);
		for (uint32_t i = 0; i < 8; i++) {
			cr_assert(zero(int, place(&stage, copy + 2 * i, &found)));
			cr_expect(eq(u64, found, stage.code->bytecode.start_addr + 2 * i));
			cr_expect(eq(int, code_line(&stage.cache, stage.code, copy + 2 * i),
				     (int)(10 + i)));
			cr_assert(zero(int, place(&stage, stage.code->bytecode.start_addr + 2 * i,
						  &found)));
			cr_expect(eq(u64, found, stage.code->bytecode.start_addr + 2 * i));
		}
		cr_expect(eq(int, place(&stage, copy + 16, &found), -ENOENT));
		cr_expect(eq(int, place(&stage, copy - 2, &found), -ENOENT));
		cr_expect(eq(int, place(&stage, 0, &found), -ENOENT), "no entry is NULL");
		cr_expect(zero(int, code_line(&stage.cache, stage.code, copy + 16)));
		done(&stage);
	}
}

/* An array that grew is read again. An address in no copy causes one read per tick. */
Test(code_place, changed_copies_are_read_again)
{
	struct stage stage;
	remote_addr old, copy, found;
	uint64_t nr_calls;

	begin(&stage, minors[0]);
	old = fake_python_bytecode(&stage.py, stage.addr);
	cr_assert(zero(int, place(&stage, old, &found)));
	fake_python_move_bytecode(&stage.py, stage.addr, &function);
	copy = fake_python_bytecode(&stage.py, stage.addr);
	nr_calls = stage.py.fake.nr_calls;
	cr_expect(eq(int, place(&stage, copy, &found), -ENOENT), "the array is read once a tick");
	cr_expect(eq(u64, stage.py.fake.nr_calls, nr_calls));
	stage.clock.tick++;
	cr_expect(zero(int, place(&stage, copy, &found)));
	cr_expect(eq(u64, found, stage.code->bytecode.start_addr));
	/* Threads came or went, so the known copies may have been freed. */
	nr_calls = stage.py.fake.nr_calls;
	stage.clock.tick++;
	cr_expect(zero(int, place(&stage, copy, &found)));
	cr_expect(eq(u64, stage.py.fake.nr_calls, nr_calls));
	stage.clock.tlbc_generation++;
	cr_expect(zero(int, place(&stage, copy, &found)));
	cr_expect(lt(u64, nr_calls, stage.py.fake.nr_calls));
	done(&stage);
}

/* Hostile arrays are read once, in bounds, and never used. */
Test(code_place, hostile_arrays_have_no_copies)
{
	static const uint64_t sizes[] = {0, UINT64_MAX, 1ull << 62, INT64_MAX, 1ull << 31, 4096};
	static const uint64_t arrays[] = {0, 1, UINT64_MAX, UINT64_MAX - 7, 1ull << 47, 4};
	struct stage stage;
	remote_addr array, copy, found;

	begin(&stage, minors[1]);
	array = array_of(&stage);
	copy = fake_python_bytecode(&stage.py, stage.addr);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		stage.clock.tick++;
		fake_memory_write_u64(&stage.py.fake, array, sizes[i]);
		cr_expect(eq(int, place(&stage, copy, &found), -ENOENT), "size %zu", i);
		cr_expect(zero(sz, stage.code->bytecode.copies.nr));
	}
	for (size_t i = 0; i < sizeof(arrays) / sizeof(*arrays); i++) {
		stage.clock.tick++;
		fake_memory_write_u64(&stage.py.fake, stage.addr + stage.py.build.tlbc.code_array,
				      arrays[i]);
		cr_expect(eq(int, place(&stage, copy, &found), -ENOENT), "array %zu", i);
	}
	done(&stage);
}

/* Copies beyond the maximum number of threads are left out. The others count as table bytes. */
Test(code_place, number_of_copies_is_bounded)
{
	enum { NR = MAX_CODE_COPIES + 100 };
	struct stage stage;
	remote_addr array, found;
	size_t table_bytes;

	begin(&stage, minors[0]);
	table_bytes = stage.cache.table_bytes;
	array = fake_python_alloc(&stage.py, 8 + 8 * NR);
	fake_memory_write_u64(&stage.py.fake, array, NR);
	for (uint64_t i = 0; i < NR; i++)
		fake_memory_write_u64(&stage.py.fake, array + 8 + 8 * i, 0x700000 - 64 * i);
	fake_memory_write_u64(&stage.py.fake, stage.addr + stage.py.build.tlbc.code_array, array);
	cr_expect(zero(int, place(&stage, 0x700000 - 64 * (MAX_CODE_COPIES - 1) + 4, &found)));
	cr_expect(eq(u64, found, stage.code->bytecode.start_addr + 4));
	cr_expect(eq(int, place(&stage, 0x700000 - 64 * MAX_CODE_COPIES, &found), -ENOENT));
	cr_expect(eq(sz, stage.code->bytecode.copies.nr, MAX_CODE_COPIES));
	cr_expect(eq(sz, stage.cache.table_bytes, table_bytes + 8 * MAX_CODE_COPIES));
	/* No room for them next to the other tables. */
	stage.cache.table_bytes += CODE_TABLES_MAX_BYTES - 8 * MAX_CODE_COPIES;
	stage.clock.tick++;
	stage.clock.tlbc_generation++;
	cr_expect(eq(int, place(&stage, 0x700000, &found), -E2BIG));
	cr_expect(stage.cache.tables_full);
	cr_expect(zero(sz, stage.code->bytecode.copies.nr));
	done(&stage);
}
