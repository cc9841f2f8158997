/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as asyncio's tasks and all their objects. The first byte chooses the version. The
 * rest is patches of eight bytes at places that the input gives; from 3.14 on first to the numbers
 * of _asyncio. Numbers that make no sense are ignored.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/cpython/threads/asyncio_task.h"
#include "tests/support/fake_asyncio.h"

enum {
	NR_TASKS = 3,
	TASKS_LIMIT = 1000,
	PATCH_BYTES = 10,
	TASK_WORDS = 24,
	CORO_WORDS = 24,
	SET_WORDS = 8
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The numbers of release builds of 3.14 and 3.15. The interpreter's size depends on the version. */
static const uint64_t numbers[] = {200, 152, 96, 108, 109, 144, 168, 0, 64, 4096, 1000, 1008, 1016};

/* Make a coroutine that awaits another object, or nothing. */
static remote_addr make_coroutine(struct fake_python *py, remote_addr code_addr,
				  remote_addr awaited_addr)
{
	const struct py_offsets *offsets = &py->build.offsets;
	const struct generator_states *states = &py->build.traits.generator_states;
	const uint64_t words[CORO_WORDS] = {0};
	const uint8_t owner = OWNED_BY_GENERATOR;
	const uint8_t state =
		(uint8_t)(awaited_addr ? states->first_awaiting : states->first_awaiting - 1);
	remote_addr addr = fake_object(py, "coroutine", words, CORO_WORDS);
	remote_addr frame_addr = addr + offsets->generator.iframe;
	remote_addr top_addr = frame_addr + offsets->frame.localsplus + 16;

	fake_memory_write(&py->fake, addr + offsets->generator.frame_state, &state, 1);
	fake_memory_write(&py->fake, frame_addr + offsets->frame.owner, &owner, 1);
	fake_memory_write_u64(&py->fake, frame_addr + offsets->frame.executable, code_addr);
	fake_memory_write_u64(&py->fake, frame_addr + offsets->frame.instr_ptr,
			      fake_python_bytecode(py, code_addr));
	fake_memory_write_u64(&py->fake, frame_addr + offsets->frame.stackpointer, top_addr);
	fake_memory_write_u64(&py->fake, top_addr - 8ull * states->awaited_words, awaited_addr);
	return addr;
}

/* Make a list of tasks that await each other. Returns its head. */
static remote_addr make_tasks(struct fake_python *py, const struct asyncio_offsets *asyncio)
{
	const struct fake_code code = {.name = "waits", .nr_units = 16};
	const remote_addr code_addr = fake_python_code(py, &code);
	const remote_addr head_addr = fake_python_alloc(py, 16);
	const uint64_t none[TASK_WORDS] = {0};
	const uint8_t one = 1;
	remote_addr before_addr = head_addr;
	remote_addr inner_addr = make_coroutine(py, code_addr, 0);
	remote_addr task_addr = 0;

	for (uint64_t i = 0; i < NR_TASKS; i++) {
		const remote_addr waiting_addr = task_addr;
		remote_addr node_addr;

		task_addr = fake_object(py, "_asyncio.Task", none, TASK_WORDS);
		node_addr = task_addr + asyncio->task.node;
		fake_memory_write_u64(&py->fake, task_addr + asyncio->task.name,
				      i ? fake_int(py, i) : fake_python_str(py, "first"));
		fake_memory_write_u64(&py->fake, task_addr + asyncio->task.coro,
				      make_coroutine(py, code_addr, inner_addr));
		fake_memory_write_u64(&py->fake, task_addr + asyncio->task.awaited_by,
				      waiting_addr);
		fake_memory_write(&py->fake, task_addr + asyncio->task.is_task, &one, 1);
		fake_memory_write_u64(&py->fake, before_addr, node_addr);
		fake_memory_write_u64(&py->fake, node_addr + 8, before_addr);
		before_addr = node_addr;
	}
	fake_memory_write_u64(&py->fake, before_addr, head_addr);
	return head_addr;
}

/* Apply the patches: two bytes of place, eight of contents. */
static void apply(struct fake_python *py, remote_addr start_addr, const uint8_t *data, size_t size)
{
	const uint64_t span = py->free_addr - start_addr;

	for (; size >= PATCH_BYTES; data += PATCH_BYTES, size -= PATCH_BYTES) {
		remote_addr addr = start_addr + field_u16(data, 0) * 8ull % span;
		uint64_t word;

		if (remote_memory_read_u64(&py->fake.memory, addr, &word) == 0)
			fake_memory_write(&py->fake, addr, data + 2, 8);
	}
}

/* Look at the listed tasks as a dump does, and free the list. Returns how many frames they have. */
static uint32_t read_tasks(struct fake_python *py, struct task_reader *reader,
			   struct addr_list *list)
{
	const struct code_clock clock = fake_python_clock(py, 1);
	struct addr_list awaiters = {0};
	struct frame_list chain = {0};
	struct code_cache codes;
	uint32_t nr_frames = 0;

	code_cache_init(&codes, &py->fake.memory, &py->build);
	for (uint32_t i = 0; i < list->nr; i++) {
		struct task_words task;
		char *name = NULL;

		if (task_read(reader, list->addrs[i], &task))
			continue;
		(void)task_read_name(reader, &task, &name);
		(void)task_read_awaiters(reader, &task, &awaiters);
		(void)await_chain_walk(&codes, reader, &clock, task.coro_addr, &chain);
		if (awaiters.nr > AWAITERS_MAX || chain.nr_frames > AWAIT_CHAIN_MAX)
			abort();
		nr_frames += chain.nr_frames;
		free(name);
	}
	addr_list_done(list);
	addr_list_done(&awaiters);
	frame_list_done(&chain);
	code_cache_done(&codes);
	return nr_frames;
}

static uint32_t read_newer(struct fake_python *py, const struct asyncio_offsets *asyncio,
			   remote_addr head_addr)
{
	struct task_reader reader = {
		.memory = &py->fake.memory,
		.build = &py->build,
		.asyncio = asyncio,
	};
	struct addr_list list = {0};

	(void)task_list_read(&reader, head_addr, TASKS_MAX, &list);
	return read_tasks(py, &reader, &list);
}

static void fuzz_newer(const uint8_t *data, size_t size)
{
	struct asyncio_offsets asyncio, patched;
	uint64_t words[sizeof(numbers) / sizeof(*numbers)];
	uint8_t bytes[ASYNCIO_DEBUG_BYTES];
	remote_addr start_addr, head_addr;
	struct fake_python py;

	fake_python_init(&py, 14 + data[0] % 2);
	memcpy(words, numbers, sizeof(words));
	words[7] = py.build.offsets.interpreter.size;
	memcpy(bytes, words, sizeof(bytes));
	if (!asyncio_offsets_parse(bytes, &py.build.offsets, &asyncio))
		abort();
	start_addr = py.free_addr;
	head_addr = make_tasks(&py, &asyncio);
	if (read_newer(&py, &asyncio, head_addr) != 2 * NR_TASKS)
		abort();
	memcpy(bytes + (size_t)data[1] % (ASYNCIO_DEBUG_BYTES / 8) * 8, data + 3, 8);
	if (asyncio_offsets_parse(bytes, &py.build.offsets, &patched))
		asyncio = patched;
	apply(&py, start_addr, data + 1, size - 1);
	(void)read_newer(&py, &asyncio, head_addr);
	fake_python_done(&py);
}

static uint32_t read_older(struct fake_python *py, remote_addr thread_addr)
{
	struct remote_memory *memory = &py->fake.memory;
	struct asyncio_objects objects;
	struct task_reader reader = {
		.memory = memory,
		.build = &py->build,
		.objects = &objects,
	};
	struct addr_list list = {0};
	remote_addr running_addr;

	if (asyncio_objects_find(memory, &py->build, py->interp_addr, &objects))
		return 0;
	(void)task_read_running(&reader, thread_addr, &running_addr);
	(void)asyncio_objects_list(memory, &py->build, &objects, TASKS_LIMIT, &list);
	return read_tasks(py, &reader, &list);
}

static void fuzz_older(uint32_t minor, const uint8_t *data, size_t size)
{
	struct fake_asyncio asyncio;
	struct fake_python py;
	remote_addr start_addr;

	fake_python_init(&py, minor);
	start_addr = py.free_addr;
	fake_asyncio_init(&py, &asyncio);
	if (read_older(&py, asyncio.thread_addr) != 2 * NR_FAKE_TASKS)
		abort();
	apply(&py, start_addr, data, size);
	(void)read_older(&py, asyncio.thread_addr);
	fake_python_done(&py);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 + PATCH_BYTES)
		return 0;
	if (data[0] < 2)
		fuzz_newer(data, size);
	else
		fuzz_older(fake_task_minors[(data[0] - 2) % NR_FAKE_TASK_MINORS], data + 1,
			   size - 1);
	return 0;
}
