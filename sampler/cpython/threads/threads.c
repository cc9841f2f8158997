/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/threads/threads.h"

#include <errno.h>
#include <stdlib.h>

#include "sampler/cpython/base/circle.h"

void thread_list_done(struct thread_list *list)
{
	if (!list)
		return;
	free(list->interpreters);
	free(list->threads);
	*list = (struct thread_list){0};
}

/* Make room for one more element of an array of nr, doubling at powers of two. */
static void *array_grow(void *array, size_t nr, size_t element_bytes)
{
	if (nr & (nr - 1))
		return array;
	return reallocarray(array, nr ? nr * 2 : 1, element_bytes);
}

static int read_interpreter(struct remote_memory *memory, const struct py_offsets *offsets,
			    remote_addr addr, struct interpreter_ref *ret_interpreter)
{
	struct interpreter_ref interpreter = {.addr = addr};
	uint64_t id = 0;
	struct remote_range ranges[] = {
		{.addr = addr + offsets->interpreter.next, .buffer = &interpreter.next_addr},
		{.addr = addr + offsets->interpreter.threads_head,
		 .buffer = &interpreter.threads_head_addr},
		{.addr = addr + offsets->interpreter.id, .buffer = &id},
	};
	/* 3.6 gives no ids. */
	const size_t nr_ranges = offsets->interpreter.id == OFFSET_ABSENT ? 2 : 3;
	int err;

	for (size_t i = 0; i < nr_ranges; i++)
		ranges[i].size = sizeof(uint64_t);
	err = remote_memory_read_all(memory, ranges, nr_ranges);
	interpreter.id = (int64_t)id;
	if (!err)
		*ret_interpreter = interpreter;
	return err;
}

static int read_thread(struct remote_memory *memory, const struct py_offsets *offsets,
		       remote_addr addr, remote_addr interp_addr, struct thread_ref *ret_thread)
{
	uint8_t state[THREAD_STATE_MAX_BYTES];
	int err = remote_memory_read(memory, addr, state, thread_head_bytes(offsets));

	if (err)
		return err;
	if (field_u64(state, offsets->thread.interp) != interp_addr)
		return -EBADMSG;
	*ret_thread = (struct thread_ref){
		.addr = addr,
		.next_addr = field_u64(state, offsets->thread.next),
		.thread_id = field_u64(state, offsets->thread.thread_id),
		.native_tid = optional_u64(state, offsets->thread.native_thread_id),
		.unique_id = optional_u64(state, offsets->thread.unique_id),
	};
	return 0;
}

bool thread_ref_matches(const struct thread_ref *ref, const struct py_offsets *offsets,
			const uint8_t *state)
{
	return field_u64(state, offsets->thread.thread_id) == ref->thread_id &&
	       optional_u64(state, offsets->thread.native_thread_id) == ref->native_tid &&
	       optional_u64(state, offsets->thread.unique_id) == ref->unique_id;
}

static int list_threads(struct remote_memory *memory, const struct py_build *build,
			size_t interpreter, struct thread_list *list)
{
	const struct interpreter_ref *ref = &list->interpreters[interpreter];
	remote_addr addr = ref->threads_head_addr;
	struct circle circle = {0};

	while (addr) {
		struct thread_ref *threads;
		int err;

		if (list->nr_threads == MAX_THREADS || circle_closes(&circle, addr))
			return -E2BIG;
		threads = array_grow(list->threads, list->nr_threads, sizeof(*threads));
		if (!threads)
			return -ENOMEM;
		list->threads = threads;
		err = read_thread(memory, &build->offsets, addr, ref->addr,
				  &threads[list->nr_threads]);
		if (err)
			return err;
		threads[list->nr_threads].interpreter = interpreter;
		addr = threads[list->nr_threads++].next_addr;
	}
	return 0;
}

/* is_still: what is damaged costs no more than the rest of its list; it is list->err. */
static int list_interpreters(struct remote_memory *memory, const struct py_build *build,
			     remote_addr addr, bool is_still, struct thread_list *list)
{
	struct circle circle = {0};

	while (addr) {
		struct interpreter_ref *interpreters;
		int err;

		if (list->nr_interpreters == MAX_INTERPRETERS || circle_closes(&circle, addr))
			return -E2BIG;
		interpreters = array_grow(list->interpreters, list->nr_interpreters,
					  sizeof(*interpreters));
		if (!interpreters)
			return -ENOMEM;
		list->interpreters = interpreters;
		err = read_interpreter(memory, &build->offsets, addr,
				       &interpreters[list->nr_interpreters]);
		if (err)
			return err;
		addr = interpreters[list->nr_interpreters++].next_addr;
		err = list_threads(memory, build, list->nr_interpreters - 1, list);
		if (err && is_still && err != -ENOMEM)
			list->err = err;
		else if (err)
			return err;
	}
	return 0;
}

int thread_list_read(struct remote_memory *memory, const struct py_build *build,
		     remote_addr runtime_addr, bool is_still, struct thread_list *ret_list)
{
	struct thread_list list = {0};
	remote_addr head_addr;
	int err = remote_memory_read_u64(
		memory, runtime_addr + build->offsets.runtime.interpreters_head, &head_addr);

	if (!err && !head_addr)
		err = -ENOENT;
	if (!err)
		err = list_interpreters(memory, build, head_addr, is_still, &list);
	/* The main interpreter is the oldest, and so the last. */
	if (build->offsets.interpreter.id == OFFSET_ABSENT)
		for (size_t i = 0; i < list.nr_interpreters; i++)
			list.interpreters[i].id = (int64_t)(list.nr_interpreters - 1 - i);
	if (err && err != -ENOMEM && is_still && list.nr_interpreters) {
		list.err = err;
		err = 0;
	}
	if (err)
		thread_list_done(&list);
	else
		*ret_list = list;
	return err;
}
