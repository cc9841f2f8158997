/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/threads/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/array.h"
#include "procmem/cleanup.h"
#include "sampler/cpython/base/cycle.h"
#include "sampler/cpython/objects/dict.h"
#include "sampler/cpython/objects/object.h"

/* Lists. */

void thread_list_done(struct thread_list *list)
{
	if (!list)
		return;
	free(list->interpreters);
	free(list->threads);
	*list = (struct thread_list){0};
}

static int read_interpreter(struct remote_memory *memory, const struct py_offsets *offsets,
			    remote_addr addr, struct interpreter_ref *ret_interpreter)
{
	struct remote_range ranges[] = {
		{.addr = addr + offsets->interpreter.next,
		 .buffer = &ret_interpreter->next_addr,
		 .size = sizeof(remote_addr)},
		{.addr = addr + offsets->interpreter.threads_head,
		 .buffer = &ret_interpreter->threads_head_addr,
		 .size = sizeof(remote_addr)},
		{.addr = addr + offsets->interpreter.id,
		 .buffer = &ret_interpreter->id,
		 .size = sizeof(int64_t)},
	};

	*ret_interpreter = (struct interpreter_ref){.addr = addr};
	/* 3.6 has no ids. */
	return remote_memory_read_all(memory, ranges,
				      offsets->interpreter.id == OFFSET_ABSENT ? 2 : 3);
}

bool thread_ref_is_same(const struct thread_ref *ref, const struct thread_ref *now)
{
	return now->thread_id == ref->thread_id && now->unique_id == ref->unique_id &&
	       (now->native_tid == ref->native_tid ||
		(ref->found_tid && now->native_tid == ref->found_tid));
}

bool thread_ref_matches(const struct thread_ref *ref, const struct py_offsets *offsets,
			const uint8_t *state)
{
	const struct thread_ref now = {
		.thread_id = field_u64(state, offsets->thread.thread_id),
		.native_tid = optional_u64(state, offsets->thread.native_thread_id),
		.unique_id = optional_u64(state, offsets->thread.unique_id),
	};

	return thread_ref_is_same(ref, &now);
}

static int list_threads(struct remote_memory *memory, const struct py_build *build,
			size_t interpreter, struct thread_list *list)
{
	const struct py_offsets *offsets = &build->offsets;
	const struct interpreter_ref *ref = &list->interpreters[interpreter];
	remote_addr addr = ref->threads_head_addr;
	uint8_t state[THREAD_STATE_MAX_BYTES];
	struct cycle_detector cycle = {0};

	while (addr) {
		struct thread_ref *threads;
		int err;

		if (list->nr_threads == MAX_THREADS || cycle_detector_visit(&cycle, addr))
			return -E2BIG;
		threads = array_reserve(list->threads, (uint32_t)list->nr_threads + 1,
					&list->max_threads, sizeof(*threads));
		if (!threads)
			return -ENOMEM;
		list->threads = threads;
		err = remote_memory_read(memory, addr, state, thread_head_bytes(offsets));
		if (!err && field_u64(state, offsets->thread.interp) != ref->addr)
			err = -EBADMSG;
		if (err)
			return err;
		threads[list->nr_threads++] = (struct thread_ref){
			.addr = addr,
			.next_addr = field_u64(state, offsets->thread.next),
			.interpreter = interpreter,
			.thread_id = field_u64(state, offsets->thread.thread_id),
			.native_tid = optional_u64(state, offsets->thread.native_thread_id),
			.unique_id = optional_u64(state, offsets->thread.unique_id),
		};
		addr = field_u64(state, offsets->thread.next);
	}
	return 0;
}

/* is_core: damage costs only the rest of its list, and is reported in list->err. */
static int list_interpreters(struct remote_memory *memory, const struct py_build *build,
			     remote_addr addr, bool is_core, struct thread_list *list)
{
	struct cycle_detector cycle = {0};

	while (addr) {
		struct interpreter_ref *interpreters;
		int err;

		if (list->nr_interpreters == MAX_INTERPRETERS || cycle_detector_visit(&cycle, addr))
			return -E2BIG;
		interpreters =
			array_reserve(list->interpreters, (uint32_t)list->nr_interpreters + 1,
				      &list->max_interpreters, sizeof(*interpreters));
		if (!interpreters)
			return -ENOMEM;
		list->interpreters = interpreters;
		err = read_interpreter(memory, &build->offsets, addr,
				       &interpreters[list->nr_interpreters]);
		if (err)
			return err;
		addr = interpreters[list->nr_interpreters++].next_addr;
		err = list_threads(memory, build, list->nr_interpreters - 1, list);
		if (err && is_core && err != -ENOMEM)
			list->err = err;
		else if (err)
			return err;
	}
	return 0;
}

int thread_list_read(struct remote_memory *memory, const struct py_build *build,
		     remote_addr runtime_addr, bool is_core, struct thread_list *ret_list)
{
	struct thread_list list = {0};
	remote_addr head_addr;
	int err = remote_memory_read_u64(
		memory, runtime_addr + build->offsets.runtime.interpreters_head, &head_addr);

	if (!err && !head_addr)
		err = -ENOENT;
	if (!err)
		err = list_interpreters(memory, build, head_addr, is_core, &list);
	/* The main interpreter is the oldest, so it is the last. */
	if (build->offsets.interpreter.id == OFFSET_ABSENT)
		for (size_t i = 0; i < list.nr_interpreters; i++)
			list.interpreters[i].id = (int64_t)(list.nr_interpreters - 1 - i);
	if (err && err != -ENOMEM && is_core && list.nr_interpreters) {
		list.err = err;
		err = 0;
	}
	if (err)
		thread_list_done(&list);
	else
		*ret_list = list;
	return err;
}

/* Thread ids. */

/*
 * Bytes of struct pthread that are searched for the id: glibc has it in the first 1 KiB, after a
 * header of 704 bytes, musl in the first 100 bytes. MAX_PTHREADS threads suffice to tell it from
 * anything else.
 */
enum { PTHREAD_BYTES = 2048, MAX_PTHREADS = 32 };

/* Known offsets of the id: glibc on x86-64 and aarch64, musl on 64-bit machines. */
static const uint32_t usual_offsets[] = {720, 208, 48};
enum { NR_USUAL_OFFSETS = sizeof(usual_offsets) / sizeof(*usual_offsets) };

struct pthreads {
	uint8_t bytes[MAX_PTHREADS][PTHREAD_BYTES];
	size_t nr;
	const pid_t *tids;
	size_t nr_tids;
};

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a;
	pid_t y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/*
 * How many threads have an id at offset; 0 if one has anything else there, or two have the same. A
 * thread that has ended has 0 there: the kernel clears it (set_tid_address(2)).
 */
static size_t nr_matches(const struct pthreads *pthreads, uint32_t offset)
{
	pid_t found[MAX_PTHREADS];
	size_t nr = 0;

	for (size_t i = 0; i < pthreads->nr; i++) {
		pid_t tid = field_i32(pthreads->bytes[i], offset);

		if (!tid)
			continue;
		if (!bsearch(&tid, pthreads->tids, pthreads->nr_tids, sizeof(tid), compare_tids))
			return 0;
		for (size_t j = 0; j < nr; j++)
			if (found[j] == tid)
				return 0;
		found[nr++] = tid;
	}
	return nr;
}

/* Copy the structs of different threads; bytes that cannot be read are 0. */
static int read_pthreads(struct remote_memory *memory, const uint64_t *idents, size_t nr_idents,
			 struct pthreads *pthreads)
{
	struct remote_range ranges[MAX_PTHREADS];

	pthreads->nr = 0;
	for (size_t i = nr_idents; i > 0 && pthreads->nr < MAX_PTHREADS; i--) {
		size_t known = 0;

		/* The main thread of a process has a thread state in each interpreter. */
		while (known < pthreads->nr && ranges[known].addr != idents[i - 1])
			known++;
		if (!idents[i - 1] || known < pthreads->nr)
			continue;
		ranges[pthreads->nr] = (struct remote_range){
			.addr = idents[i - 1],
			.buffer = pthreads->bytes[pthreads->nr],
			.size = PTHREAD_BYTES,
		};
		pthreads->nr++;
	}
	return remote_memory_read_ranges(memory, ranges, pthreads->nr);
}

int pthread_layout_learn(struct remote_memory *memory, const uint64_t *idents, size_t nr_idents,
			 pid_t *tids, size_t nr_tids, struct pthread_layout *ret_layout)
{
	cleanup_free struct pthreads *pthreads = calloc(1, sizeof(*pthreads));
	struct pthread_layout layout = {.is_known = true};
	size_t most = 0;
	int err;

	if (!pthreads)
		return -ENOMEM;
	qsort(tids, nr_tids, sizeof(*tids), compare_tids);
	pthreads->tids = tids;
	pthreads->nr_tids = nr_tids;
	err = read_pthreads(memory, idents, nr_idents, pthreads);
	if (err)
		return err;
	/*
	 * Take the offset where most threads have their ids; of equal ones a known offset, or the
	 * first.
	 */
	for (size_t i = 0; i < NR_USUAL_OFFSETS + PTHREAD_BYTES / sizeof(int32_t); i++) {
		const uint32_t offset =
			i < NR_USUAL_OFFSETS ? usual_offsets[i]
					     : (uint32_t)((i - NR_USUAL_OFFSETS) * sizeof(int32_t));
		const size_t nr = nr_matches(pthreads, offset);

		if (nr > most) {
			most = nr;
			layout.tid_offset = offset;
		}
	}
	layout.is_sure = most > 1;
	if (!most)
		return -ENOENT;
	*ret_layout = layout;
	return 0;
}

int pthread_read_tid(struct remote_memory *memory, const struct pthread_layout *layout,
		     uint64_t ident, pid_t *ret_tid)
{
	int32_t tid;
	int err = remote_memory_read(memory, ident + layout->tid_offset, &tid, sizeof(tid));

	if (err)
		return err;
	if (tid <= 0)
		return tid ? -EBADMSG : -ENOENT;
	*ret_tid = tid;
	return 0;
}

/* Names. */

/* The state of a pass over the names. */
struct pass {
	struct remote_memory *memory;
	const struct py_build *build;
	struct thread_name_hints *hints;
	struct named_thread *threads; /* whose names are requested; sorted */
	size_t nr_threads;
	size_t nr_found; /* names found */
};

/*
 * Open the dict threading._active of an interpreter. Many interpreters have no such module; this is
 * remembered.
 */
static int find_active(const struct pass *pass, remote_addr interp_addr, struct dict *ret_dict)
{
	struct thread_name_hints *hints = pass->hints;
	remote_addr active_addr;
	struct dict modules, dict;
	int err = dict_open_modules(pass->memory, pass->build, interp_addr, &modules);

	if (err)
		return err;
	if (modules.entries_addr == hints->missing_entries_addr &&
	    modules.nr_entries == hints->nr_missing_entries)
		return -ENOENT;
	err = dict_open_module(&modules, THREAD_NAMES_MAX_KEYS, "threading", &hints->threading,
			       &dict);
	hints->missing_entries_addr = err == -ENOENT ? modules.entries_addr : 0;
	hints->nr_missing_entries = modules.nr_entries;
	if (!err)
		err = dict_find(&dict, THREAD_NAMES_MAX_KEYS, "_active", &hints->active,
				&active_addr);
	return err ? err : dict_open(pass->memory, pass->build, active_addr, ret_dict);
}

/* Copy text; cut it between two code points. */
static void copy_name(char name[THREAD_NAME_MAX_BYTES], const char *text)
{
	size_t length = strnlen(text, THREAD_NAME_MAX_BYTES);

	if (length == THREAD_NAME_MAX_BYTES) {
		length--;
		while (length > 0 && (text[length] & 0xc0) == 0x80)
			length--;
	}
	memcpy(name, text, length);
	name[length] = '\0';
}

/*
 * Whether the attribute key is the int wanted. Returns 0, -EBADMSG (it is not), -ENOENT or an
 * error.
 */
static int check_number(const struct pass *pass, const struct dict *attributes, const char *key,
			uint32_t *hint, uint64_t wanted)
{
	remote_addr addr;
	uint64_t number;
	int err = dict_find(attributes, THREAD_MAX_ATTRIBUTES, key, hint, &addr);

	if (!err)
		err = integer_read(pass->memory, &pass->build->offsets, addr, &number);
	if (!err && number != wanted)
		err = -EBADMSG;
	return err;
}

/* Copy the name of the Thread object at addr, if it belongs to the thread. */
static int read_name(const struct pass *pass, remote_addr addr, struct named_thread *thread)
{
	const struct py_offsets *offsets = &pass->build->offsets;
	cleanup_free char *name = NULL;
	struct dict attributes;
	remote_addr name_addr;
	int err = dict_open_attributes(pass->memory, pass->build, addr, &attributes);

	if (!err)
		err = check_number(pass, &attributes, "_ident", &pass->hints->ident, thread->ident);
	if (!err && thread->native_id) {
		err = check_number(pass, &attributes, "_native_id", &pass->hints->native_id,
				   thread->native_id);
		err = err == -ENOENT ? 0 : err; /* before 3.8 */
	}
	if (!err)
		err = dict_find(&attributes, THREAD_MAX_ATTRIBUTES, "_name", &pass->hints->name,
				&name_addr);
	if (!err)
		err = string_read(pass->memory, offsets, name_addr, &name);
	if (!err)
		copy_name(thread->name, name);
	return err;
}

static int compare_idents(const void *a, const void *b)
{
	uint64_t x = ((const struct named_thread *)a)->ident;
	uint64_t y = ((const struct named_thread *)b)->ident;

	return (x > y) - (x < y);
}

/*
 * Read the names of threads from the entries of _active, from walk->next on. The hash of an int
 * below 2^61 - 1 is the int (Python/pyhash.c), so keys need not be read; the _ident of the Thread
 * is checked.
 */
static int read_names(struct pass *pass, struct dict_walk *walk)
{
	struct dict_entry entry;
	int err = 0;

	while (pass->nr_found < pass->nr_threads) {
		struct named_thread key = {.ident = 0};
		struct named_thread *thread;

		err = dict_next(walk, &entry);
		if (err)
			break;
		key.ident = entry.hash;
		thread = key.ident ? bsearch(&key, pass->threads, pass->nr_threads, sizeof(key),
					     compare_idents)
				   : NULL;
		if (!thread || thread->name[0])
			continue;
		err = read_name(pass, entry.value_addr, thread);
		if (remote_error_is_fatal(err))
			break;
		if (err)
			continue;
		pass->nr_found++;
		pass->hints->next_entry = walk->next;
	}
	return remote_error_is_fatal(err) ? err : 0;
}

int thread_names_read(struct remote_memory *memory, const struct py_build *build,
		      remote_addr interp_addr, struct thread_name_hints *hints,
		      struct named_thread *threads, size_t nr_threads)
{
	struct pass pass = {
		.memory = memory,
		.build = build,
		.hints = hints,
		.threads = threads,
		.nr_threads = nr_threads,
	};
	struct dict_walk walk = {0};
	struct dict active;
	int err = find_active(&pass, interp_addr, &active);

	if (err)
		return remote_error_is_fatal(err) ? err : -ENOENT;
	for (size_t i = 0; i < nr_threads; i++)
		threads[i].name[0] = '\0';
	qsort(threads, nr_threads, sizeof(*threads), compare_idents);
	if (!active.has_hashes)
		return 0;
	/*
	 * Threads are in the order in which they began, and names are usually requested in that
	 * order.
	 */
	walk.dict = active;
	walk.next = hints->next_entry < active.nr_entries ? hints->next_entry : 0;
	active.nr_entries = walk.next;
	err = read_names(&pass, &walk);
	if (err)
		return err;
	walk = (struct dict_walk){.dict = active};
	return read_names(&pass, &walk);
}
