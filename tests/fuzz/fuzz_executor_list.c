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

struct stage {
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

static void put(struct stage *stage, remote_addr addr, uint64_t value)
{
	fake_memory_write_u64(&stage->py.fake, addr, value);
}

/*
 * Address of the executor with this index. Above the last executor is unmapped memory; UINT8_MAX
 * gives 0.
 */
static remote_addr executor_addr(const struct stage *stage, uint8_t index)
{
	return index == UINT8_MAX ? 0
				  : stage->executors_addr + index * (remote_addr)EXECUTOR_STRIDE;
}

static void put_executor(struct stage *stage, uint8_t index, const uint8_t bytes[BYTES_EACH])
{
	const remote_addr addr = executor_addr(stage, index) + AFTER_TYPE;
	const uint64_t code_addr = (uint64_t)field_u16(bytes, 2) * PAGE_BYTES + bytes[7] / 128;

	put(stage, addr + EXECUTOR_NEXT_AFTER_TYPE, executor_addr(stage, bytes[0]));
	put(stage, addr + EXECUTOR_PREVIOUS_AFTER_TYPE, executor_addr(stage, bytes[1]));
	put(stage, addr + EXECUTOR_JIT_CODE_AFTER_TYPE, code_addr);
	put(stage, addr + EXECUTOR_JIT_SIZE_AFTER_TYPE,
	    (uint64_t)field_u16(bytes, 4) << bytes[6] % 56);
	put(stage, addr - sizeof(uint64_t), bytes[7] % 8 ? stage->type_addr : bytes[7]);
}

/* Make one code object, whose executor array holds the first executor. */
static void make_code(struct stage *stage)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;
	const remote_addr code_addr =
		fake_python_code(&stage->py, &(struct fake_code){.name = "f"});
	const remote_addr array_addr = fake_python_alloc(&stage->py, EXECUTOR_ARRAY_ITEMS + 8);
	const struct code_clock clock = fake_python_clock(&stage->py, 1);
	struct code *code;

	fake_memory_write_u32(&stage->py.fake, array_addr + EXECUTOR_ARRAY_NR, 1);
	put(stage, array_addr + EXECUTOR_ARRAY_ITEMS, stage->executors_addr);
	put(stage, code_addr + offsets->code.linetable + EXECUTORS_AFTER_LINETABLE, array_addr);
	require(!code_cache_get(&stage->codes, code_addr, &clock, &code));
}

static void stage_init(struct stage *stage)
{
	const struct py_offsets *offsets = &stage->py.build.offsets;

	*stage = (struct stage){.type_addr = 0};
	fake_python_init(&stage->py, 14);
	code_cache_init(&stage->codes, &stage->py.fake.memory, &stage->py.build);
	stage->type_addr = fake_python_alloc(&stage->py, offsets->object.tp_name + 8);
	put(stage, stage->type_addr + offsets->object.tp_name,
	    fake_python_str(&stage->py, EXECUTOR_TYPE_NAME) + offsets->unicode.ascii_data);
	stage->executors_addr = fake_python_alloc(&stage->py, (size_t)NR_MAX * EXECUTOR_STRIDE);
	make_code(stage);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stage stage;

	stage_init(&stage);
	for (uint8_t i = 0; i < NR_MAX && (i + 1u) * BYTES_EACH <= size; i++)
		put_executor(&stage, i, data + (size_t)i * BYTES_EACH);
	for (uint64_t i = 0; i < 16; i++)
		(void)executor_list_has(&stage.list, &stage.codes, i * 16 * PAGE_BYTES,
					(i + 1) * LATER_NS);
	require(stage.list.nr_ranges <= EXECUTOR_LIST_MAX);
	for (uint32_t i = 0; i < stage.list.nr_ranges; i++) {
		const struct executor_range *range = &stage.list.ranges[i];

		require(range->start_addr <= range->end_addr);
		require(!i || range[-1].start_addr <= range->start_addr);
	}
	executor_list_done(&stage.list);
	code_cache_done(&stage.codes);
	fake_python_done(&stage.py);
	return 0;
}
