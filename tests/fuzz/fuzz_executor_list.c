/* SPDX-License-Identifier: MIT */
/*
 * Any graph of executors as 3.14's list of them. The input has eight bytes for each executor: the
 * indices of its neighbours, address and size of its code, and whether it is an executor at all.
 */
#include <stdlib.h>

#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/native/executor_list.h"
#include "tests/support/fake_python.h"

enum { NR_MAX = 32, EXECUTOR_STRIDE = 128, BYTES_EACH = 8, AFTER_TYPE = 16, PAGE_BYTES = 4096 };

/* Time between looks, so long that the list is read again however long the last reading took. */
#define LATER_NS 3600000000000

struct world {
	struct fake_python py;
	struct code_cache codes;
	struct executor_list list;
	remote_addr type_addr, executors_addr;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool promise)
{
	if (!promise)
		abort();
}

static void put(struct world *world, remote_addr addr, uint64_t value)
{
	fake_memory_write_u64(&world->py.fake, addr, value);
}

/*
 * Address of the executor with this index. Above the last executor is unmapped memory; UINT8_MAX
 * gives 0.
 */
static remote_addr executor_addr(const struct world *world, uint8_t index)
{
	return index == UINT8_MAX ? 0
				  : world->executors_addr + index * (remote_addr)EXECUTOR_STRIDE;
}

static void put_executor(struct world *world, uint8_t index, const uint8_t bytes[BYTES_EACH])
{
	const remote_addr addr = executor_addr(world, index) + AFTER_TYPE;
	const uint64_t code_addr = (uint64_t)field_u16(bytes, 2) * PAGE_BYTES + bytes[7] / 128;

	put(world, addr + EXECUTOR_NEXT_AFTER_TYPE, executor_addr(world, bytes[0]));
	put(world, addr + EXECUTOR_PREVIOUS_AFTER_TYPE, executor_addr(world, bytes[1]));
	put(world, addr + EXECUTOR_JIT_CODE_AFTER_TYPE, code_addr);
	put(world, addr + EXECUTOR_JIT_SIZE_AFTER_TYPE,
	    (uint64_t)field_u16(bytes, 4) << bytes[6] % 56);
	put(world, addr - sizeof(uint64_t), bytes[7] % 8 ? world->type_addr : bytes[7]);
}

/* Make one code object, whose executor array holds the first executor. */
static void make_code(struct world *world)
{
	const struct py_offsets *offsets = &world->py.build.offsets;
	const remote_addr code_addr =
		fake_python_code(&world->py, &(struct fake_code){.name = "f"});
	const remote_addr array_addr = fake_python_alloc(&world->py, EXECUTOR_ARRAY_ITEMS + 8);
	const struct code_clock clock = fake_python_clock(&world->py, 1);
	struct code *code;

	fake_memory_write_u32(&world->py.fake, array_addr + EXECUTOR_ARRAY_NR, 1);
	put(world, array_addr + EXECUTOR_ARRAY_ITEMS, world->executors_addr);
	put(world, code_addr + offsets->code.linetable + EXECUTORS_AFTER_LINETABLE, array_addr);
	require(!code_cache_get(&world->codes, code_addr, &clock, &code));
}

static void world_init(struct world *world)
{
	const struct py_offsets *offsets = &world->py.build.offsets;

	*world = (struct world){.type_addr = 0};
	fake_python_init(&world->py, 14);
	code_cache_init(&world->codes, &world->py.fake.memory, &world->py.build);
	world->type_addr = fake_python_alloc(&world->py, offsets->object.tp_name + 8);
	put(world, world->type_addr + offsets->object.tp_name,
	    fake_python_str(&world->py, EXECUTOR_TYPE_NAME) + offsets->unicode.ascii_data);
	world->executors_addr = fake_python_alloc(&world->py, (size_t)NR_MAX * EXECUTOR_STRIDE);
	make_code(world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world world;

	world_init(&world);
	for (uint8_t i = 0; i < NR_MAX && (i + 1u) * BYTES_EACH <= size; i++)
		put_executor(&world, i, data + (size_t)i * BYTES_EACH);
	for (uint64_t i = 0; i < 16; i++)
		(void)executor_list_has(&world.list, &world.codes, i * 16 * PAGE_BYTES,
					(i + 1) * LATER_NS);
	require(world.list.nr_ranges <= EXECUTOR_LIST_MAX);
	for (uint32_t i = 0; i < world.list.nr_ranges; i++) {
		const struct executor_range *range = &world.list.ranges[i];

		require(range->start_addr <= range->end_addr);
		require(!i || range[-1].start_addr <= range->start_addr);
	}
	executor_list_done(&world.list);
	code_cache_done(&world.codes);
	fake_python_done(&world.py);
	return 0;
}
