/* SPDX-License-Identifier: MIT */
/* asyncio's tasks in a fake CPython 3.8 to 3.13. */
#include "sampler/cpython/threads/asyncio_objects.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>

#include "sampler/cpython/threads/asyncio_task.h"
#include "tests/support/fake_asyncio.h"

/* A fake, and what reads it. */
struct stage {
	struct fake_python py;
	struct fake_asyncio asyncio;
	struct asyncio_objects objects;
	struct task_reader reader;
};

static void begin(struct stage *stage, uint32_t minor)
{
	*stage = (struct stage){0};
	fake_python_init(&stage->py, minor);
	fake_asyncio_init(&stage->py, &stage->asyncio);
	cr_assert(zero(int, asyncio_objects_find(&stage->py.fake.memory, &stage->py.build,
						 stage->py.interp_addr, &stage->objects)),
		  "3.%u", minor);
	stage->reader = (struct task_reader){
		.memory = &stage->py.fake.memory,
		.build = &stage->py.build,
		.objects = &stage->objects,
	};
}

static int find(struct stage *stage)
{
	return asyncio_objects_find(&stage->py.fake.memory, &stage->py.build, stage->py.interp_addr,
				    &stage->objects);
}

/* How many tasks await that one; *ret_addr gets the first. */
static uint32_t count_awaiters(struct stage *stage, remote_addr task_addr, remote_addr *ret_addr)
{
	struct addr_list awaiters = {0};
	struct task_words task;
	uint32_t nr;

	cr_assert(zero(int, task_read(&stage->reader, task_addr, &task)));
	cr_assert(zero(int, task_read_awaiters(&stage->reader, &task, &awaiters)));
	nr = awaiters.nr;
	*ret_addr = nr ? awaiters.addrs[0] : 0;
	addr_list_done(&awaiters);
	return nr;
}

Test(asyncio_objects, all_tasks_are_listed_once)
{
	for (size_t v = 0; v < NR_FAKE_TASK_MINORS; v++) {
		const uint32_t minor = fake_task_minors[v];
		struct addr_list list = {0};
		struct stage stage;

		begin(&stage, minor);
		cr_assert(zero(int, asyncio_objects_list(&stage.py.fake.memory, &stage.py.build,
							 &stage.objects, TASKS_MAX, &list)));
		cr_expect(eq(uint, list.nr, NR_FAKE_TASKS), "3.%u", minor);
		for (uint32_t i = 0; i < NR_FAKE_TASKS; i++) {
			uint32_t nr = 0;

			for (uint32_t n = 0; n < list.nr; n++)
				nr += list.addrs[n] == stage.asyncio.tasks[i];
			cr_expect(eq(uint, nr, 1), "3.%u: %s", minor, fake_task_names[i]);
		}
		addr_list_done(&list);
		fake_python_done(&stage.py);
	}
}

Test(asyncio_objects, a_long_list_is_cut)
{
	struct addr_list list = {0};
	struct stage stage;

	begin(&stage, 8);
	cr_expect(eq(int,
		     asyncio_objects_list(&stage.py.fake.memory, &stage.py.build, &stage.objects, 2,
					  &list),
		     -E2BIG));
	cr_expect(eq(uint, list.nr, 2));
	addr_list_done(&list);
	fake_python_done(&stage.py);
}

Test(asyncio_objects, the_task_that_runs_is_found)
{
	for (size_t v = 0; v < NR_FAKE_TASK_MINORS; v++) {
		const uint32_t minor = fake_task_minors[v];
		remote_addr task_addr = 1;
		struct stage stage;

		begin(&stage, minor);
		cr_expect(zero(int, task_read_running(&stage.reader, stage.asyncio.thread_addr,
						      &task_addr)));
		cr_expect(eq(u64, task_addr, stage.asyncio.tasks[NR_FAKE_TASKS - 1]), "3.%u",
			  minor);
		/* Another thread runs no loop. */
		cr_expect(
			zero(int, task_read_running(&stage.reader, fake_python_thread(&stage.py, 2),
						    &task_addr)));
		cr_expect(eq(u64, task_addr, 0), "3.%u", minor);
		fake_python_done(&stage.py);
	}
}

Test(asyncio_objects, names_and_coroutines)
{
	for (size_t v = 0; v < NR_FAKE_TASK_MINORS; v++) {
		const uint32_t minor = fake_task_minors[v];
		struct frame_list chain = {0};
		struct code_cache codes;
		struct code_clock clock;
		struct stage stage;

		begin(&stage, minor);
		clock = fake_python_clock(&stage.py, 1);
		code_cache_init(&codes, &stage.py.fake.memory, &stage.py.build);
		for (uint32_t i = 0; i < NR_FAKE_TASKS; i++) {
			struct task_words task;
			char *name = NULL;

			cr_assert(
				zero(int, task_read(&stage.reader, stage.asyncio.tasks[i], &task)));
			cr_expect(eq(u64, task.loop_addr, stage.asyncio.loop_addr));
			cr_assert(zero(int, task_read_name(&stage.reader, &task, &name)));
			cr_expect(eq(str, name, (char *)fake_task_names[i]));
			cr_expect(zero(int, await_chain_walk(&codes, &stage.reader, &clock,
							     task.coro_addr, &chain)));
			cr_expect(eq(uint, chain.nr_frames, 2), "3.%u", minor);
			free(name);
		}
		frame_list_done(&chain);
		code_cache_done(&codes);
		fake_python_done(&stage.py);
	}
}

Test(asyncio_objects, awaiting_tasks)
{
	for (size_t v = 0; v < NR_FAKE_TASK_MINORS; v++) {
		const uint32_t minor = fake_task_minors[v];
		const remote_addr *tasks;
		remote_addr addr;
		struct stage stage;

		begin(&stage, minor);
		tasks = stage.asyncio.tasks;
		cr_expect(eq(uint, count_awaiters(&stage, tasks[0], &addr), 1), "3.%u", minor);
		cr_expect(eq(u64, addr, tasks[1]), "3.%u: directly", minor);
		cr_expect(eq(uint, count_awaiters(&stage, tasks[1], &addr), 1), "3.%u", minor);
		cr_expect(eq(u64, addr, tasks[2]), "3.%u: through gather()", minor);
		cr_expect(eq(uint, count_awaiters(&stage, tasks[2], &addr), 0), "3.%u", minor);
		/* A callback that refers to a task which awaits something else. */
		fake_asyncio_callback(&stage.py, tasks[2], tasks[1], tasks[1]);
		cr_expect(eq(uint, count_awaiters(&stage, tasks[2], &addr), 0), "3.%u", minor);
		/* A callback that is no object. */
		fake_asyncio_callback(&stage.py, tasks[2], 3, UINT64_MAX);
		cr_expect(eq(uint, count_awaiters(&stage, tasks[2], &addr), 0), "3.%u", minor);
		fake_python_done(&stage.py);
	}
}

Test(asyncio_objects, what_is_not_known_is_refused)
{
	for (size_t v = 0; v < NR_FAKE_TASK_MINORS; v++) {
		const uint32_t minor = fake_task_minors[v];
		const struct fake_item none[] = {{"sys", 0, 0}};
		struct task_words task;
		struct fake_dict modules;
		struct stage stage;

		begin(&stage, minor);
		cr_expect(
			eq(int, task_read(&stage.reader, stage.asyncio.loop_addr, &task), -EBADMSG),
			"3.%u: another object", minor);
		cr_expect(eq(int, task_read(&stage.reader, stage.asyncio.tasks[0] + 1, &task),
			     -EBADMSG));
		fake_memory_write_u64(
			&stage.py.fake,
			stage.asyncio.task_type_addr + stage.py.build.offsets.type.basicsize, 200);
		cr_expect(eq(int, find(&stage), -ENOTSUP), "3.%u: another size", minor);
		modules = fake_dict(&stage.py, none, 1);
		fake_set_modules(&stage.py, &modules);
		cr_expect(eq(int, find(&stage), -ENOENT), "3.%u: not imported", minor);
		fake_python_done(&stage.py);
	}
}
