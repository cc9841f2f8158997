/* SPDX-License-Identifier: MIT */
#include "tests/support/fake_asyncio.h"

#include "sampler/cpython/layout/object_offsets.h"

/* Distances in _asyncio's structs from the end of their head that do not depend on the version. */
enum { LOOP = 0, CALLBACK0 = 8 };

/* Those that do, a row for each version from 3.8 on. */
static const struct {
	uint32_t size, waiter;
} structs[] = {{128, 88}, {168, 128}, {176, 136}, {160, 112}, {160, 112}, {128, 96}};

const uint32_t fake_task_minors[NR_FAKE_TASK_MINORS] = {
	8, 9, 10, 11, 12, 13, FAKE_FREE_THREADED + 13,
};

enum { TYPE_BYTES = 1024, MAX_WORDS = 32, YIELD_FROM = 72, RESUME_AFTER_AWAIT = 3, UNIT = 2 };

const char *const fake_task_names[NR_FAKE_TASKS] = {"first", "second", "third"};

static void put(struct fake_python *py, remote_addr addr, uint64_t value)
{
	fake_memory_write_u64(&py->fake, addr, value);
}

static uint32_t version_of(const struct fake_python *py)
{
	return py->minor % FAKE_FREE_THREADED;
}

/* Size of what all objects begin with. */
static uint32_t head_of(const struct fake_python *py)
{
	return py->build.offsets.object.ob_type + 8;
}

static remote_addr make_type(struct fake_python *py, uint32_t size, remote_addr base_addr)
{
	const struct py_offsets *offsets = &py->build.offsets;
	remote_addr addr = fake_python_alloc(py, TYPE_BYTES);

	put(py, addr + offsets->type.basicsize, size);
	put(py, addr + offsets->type.flags + TYPE_BASE_AFTER_FLAGS, base_addr);
	return addr;
}

/* Make an object whose words, up to MAX_WORDS, are all 0, except the type. */
static remote_addr make_object(struct fake_python *py, remote_addr type_addr)
{
	const uint64_t none[MAX_WORDS] = {0};
	remote_addr addr = fake_object(py, "object", none, MAX_WORDS);

	if (type_addr)
		put(py, addr + py->build.offsets.object.ob_type, type_addr);
	return addr;
}

/* Make a tuple with one item. */
static remote_addr make_tuple(struct fake_python *py, remote_addr item_addr)
{
	const uint64_t words[] = {1, item_addr, item_addr};

	return fake_object(py, "tuple", words, 3);
}

/* Make a set with one member. */
static remote_addr make_set(struct fake_python *py, const remote_addr *members, uint32_t nr)
{
	enum { SLOTS = 8 };
	const remote_addr table_addr = fake_python_alloc(py, (size_t)SLOTS * SET_ENTRY_BYTES);
	const uint64_t words[] = {nr, nr, SLOTS - 1, table_addr};

	for (uint32_t i = 0; i < nr; i++)
		put(py, table_addr + (2ull * i + 1) * SET_ENTRY_BYTES + SET_ENTRY_KEY, members[i]);
	return fake_object(py, "set", words, 4);
}

/* Make the frame object of a suspended coroutine, before 3.11. */
static remote_addr make_frame_object(struct fake_python *py, remote_addr code_addr,
				     remote_addr awaited_addr)
{
	const struct py_offsets *offsets = &py->build.offsets;
	const struct fake_frame_object frame = {.code = code_addr, .suspended = true};
	remote_addr addr = fake_python_alloc(py, offsets->frame.size + 64);
	remote_addr stack_addr = addr + offsets->frame.heap_locals;

	fake_python_frame_object(py, addr, &frame);
	put(py, addr + offsets->frame.executable + FRAME_VALUESTACK_AFTER_CODE, stack_addr);
	if (offsets->frame.stackpointer != OFFSET_ABSENT)
		put(py, addr + offsets->frame.stackpointer, stack_addr + 8);
	else
		fake_memory_write_u32(&py->fake, addr + offsets->frame.stackdepth, 1);
	put(py, stack_addr, awaited_addr);
	return addr;
}

/* Write the frame in a suspended coroutine, from 3.11 on. */
static void write_frame(struct fake_python *py, remote_addr coro_addr, remote_addr code_addr,
			remote_addr awaited_addr)
{
	const struct py_offsets *offsets = &py->build.offsets;
	const struct generator_states *states = &py->build.traits.generator_states;
	const struct fake_frame frame = {
		.executable = code_addr,
		.owner = OWNED_BY_GENERATOR,
		.stacktop = 1,
	};
	remote_addr addr = coro_addr + offsets->generator.iframe;

	fake_python_frame(py, addr, &frame);
	put(py, addr + offsets->frame.localsplus, awaited_addr);
	fake_memory_write_u8(&py->fake, coro_addr + offsets->generator.frame_state,
			     (uint8_t)states->first_awaiting);
}

/* Make a coroutine that awaits another object. */
static remote_addr make_coroutine(struct fake_python *py, remote_addr awaited_addr)
{
	const struct py_offsets *offsets = &py->build.offsets;
	const struct fake_code code = {.name = "waits"};
	const remote_addr code_addr = fake_python_code(py, &code);
	const uint64_t none[MAX_WORDS] = {0};
	remote_addr addr = fake_object(py, "coroutine", none, MAX_WORDS);
	remote_addr units_addr;

	if (!py->build.traits.frames_on_heap) {
		units_addr = fake_python_bytecode(py, code_addr);
		fake_memory_write_u8(&py->fake, units_addr + UNIT + 1, RESUME_AFTER_AWAIT);
		write_frame(py, addr, code_addr, awaited_addr);
		return addr;
	}
	if (remote_memory_read_u64(&py->fake.memory, code_addr + offsets->code.bytecode,
				   &units_addr) == 0)
		fake_memory_write_u8(&py->fake, units_addr + offsets->bytes.ob_sval + UNIT,
				     YIELD_FROM);
	put(py, addr + offsets->generator.frame, make_frame_object(py, code_addr, awaited_addr));
	return addr;
}

static remote_addr make_task(struct fake_python *py, const struct fake_asyncio *asyncio,
			     const char *name, remote_addr waiter_addr)
{
	const uint32_t waiter = head_of(py) + structs[version_of(py) - fake_task_minors[0]].waiter;
	remote_addr inner_addr = make_coroutine(py, make_object(py, 0));
	remote_addr addr = make_object(py, asyncio->task_type_addr);

	put(py, addr + head_of(py) + LOOP, asyncio->loop_addr);
	put(py, addr + waiter, waiter_addr);
	put(py, addr + waiter + 8, make_coroutine(py, inner_addr));
	put(py, addr + waiter + 16, fake_python_str(py, name));
	return addr;
}

void fake_asyncio_callback(struct fake_python *py, remote_addr future_addr, uint64_t first,
			   uint64_t second)
{
	remote_addr callback_addr = make_object(py, 0);

	put(py, callback_addr + head_of(py), first);
	put(py, callback_addr + head_of(py) + 8, second);
	put(py, future_addr + head_of(py) + CALLBACK0, callback_addr);
}

/* Give a future what wakes a task: a TaskWakeupMethWrapper, or a method written in C. */
static void add_wakeup(struct fake_python *py, remote_addr future_addr, remote_addr task_addr)
{
	const bool is_wrapper = version_of(py) < 10;

	fake_asyncio_callback(py, future_addr, is_wrapper ? task_addr : 0,
			      is_wrapper ? 0 : task_addr);
}

/* Give a task the callback of a gather() whose future is at outer_addr. */
static void add_gather(struct fake_python *py, remote_addr task_addr, remote_addr outer_addr)
{
	const char *name = version_of(py) == 9 ? "_gather.<locals>._done_callback"
					       : "gather.<locals>._done_callback";
	const remote_addr cell_addr = make_object(py, 0);
	const remote_addr function_addr = make_object(py, 0);

	put(py, cell_addr + head_of(py), outer_addr);
	put(py, function_addr + head_of(py) + py->build.traits.qualname_after_type,
	    fake_python_str(py, name));
	put(py, function_addr + head_of(py) + py->build.traits.closure_after_type,
	    make_tuple(py, cell_addr));
	put(py, task_addr + head_of(py) + CALLBACK0, function_addr);
}

/* Make the names of asyncio.tasks. */
static void add_module(struct fake_python *py, struct fake_asyncio *asyncio)
{
	const uint32_t has_eager = version_of(py) >= 12;
	const struct fake_item running[] = {{NULL, 1, asyncio->tasks[NR_FAKE_TASKS - 1]}};
	const struct fake_dict current = fake_dict(py, running, 1);
	remote_addr refs[NR_FAKE_TASKS];
	uint32_t nr_refs = 0;

	/* The running task was started eagerly. */
	for (; nr_refs < NR_FAKE_TASKS - has_eager; nr_refs++) {
		refs[nr_refs] = make_object(py, 0);
		put(py, refs[nr_refs] + head_of(py), asyncio->tasks[nr_refs]);
	}
	const struct fake_item data[] = {{"data", 0, make_set(py, refs, nr_refs)}};
	const struct fake_item names[] = {
		{"_CTask", 0, asyncio->task_type_addr},
		{"_current_tasks", 0, current.addr},
		{has_eager ? "_scheduled_tasks" : "_all_tasks", 0,
		 fake_instance(py, FAKE_OWN_DICT, data, 1, NULL)},
		{"_eager_tasks", 0, make_set(py, &asyncio->tasks[NR_FAKE_TASKS - 1], has_eager)},
	};
	const struct fake_item items[] = {
		{"asyncio.tasks", 0,
		 fake_instance(py, FAKE_OWN_DICT, names, has_eager ? 4 : 3, NULL)},
	};
	const struct fake_dict modules = fake_dict(py, items, 1);

	/* The key is the loop. Entries have a hash in front of it. */
	put(py, current.entries_addr + 8, asyncio->loop_addr);
	asyncio->modules_addr = modules.addr;
	fake_set_modules(py, &modules);
}

/* Make the loop that the thread runs. */
static void add_thread(struct fake_python *py, struct fake_asyncio *asyncio)
{
	const struct py_offsets *offsets = &py->build.offsets;
	remote_addr value_addr = asyncio->loop_addr;

	asyncio->thread_addr = fake_python_thread(py, 1);
	if (offsets->thread.running_loop != OFFSET_ABSENT) {
		put(py, asyncio->thread_addr + offsets->thread.running_loop, value_addr);
		return;
	}
	if (version_of(py) < 12)
		value_addr = fake_object(py, "_RunningLoopHolder", &asyncio->loop_addr, 1);
	const struct fake_item items[] = {{"__asyncio_running_event_loop__", 0, value_addr}};

	put(py, asyncio->thread_addr + offsets->thread.dict, fake_dict(py, items, 1).addr);
}

void fake_asyncio_init(struct fake_python *py, struct fake_asyncio *ret_asyncio)
{
	const uint32_t size = head_of(py) + structs[version_of(py) - fake_task_minors[0]].size;
	struct fake_asyncio asyncio = {.loop_addr = make_object(py, 0)};
	remote_addr gather_type_addr, outer_addr;

	asyncio.future_type_addr = make_type(py, size - 40, 0);
	asyncio.task_type_addr = make_type(py, size, asyncio.future_type_addr);
	gather_type_addr = make_type(py, size - 40, asyncio.future_type_addr);
	outer_addr = make_object(py, gather_type_addr);
	asyncio.tasks[0] = make_task(py, &asyncio, fake_task_names[0], 0);
	asyncio.tasks[1] = make_task(py, &asyncio, fake_task_names[1], asyncio.tasks[0]);
	asyncio.tasks[2] = make_task(py, &asyncio, fake_task_names[2], outer_addr);
	add_wakeup(py, asyncio.tasks[0], asyncio.tasks[1]);
	add_gather(py, asyncio.tasks[1], outer_addr);
	add_wakeup(py, outer_addr, asyncio.tasks[2]);
	add_thread(py, &asyncio);
	add_module(py, &asyncio);
	*ret_asyncio = asyncio;
}
