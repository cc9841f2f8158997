/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/threads/asyncio_objects.h"

#include <errno.h>

#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/objects/dict.h"

/* Limits on modules in sys.modules, names in a module, and words that extensions have in a thread
 * state; what is beyond them is not found. */
enum { MODULES_MAX_KEYS = 1 << 16, NAMES_MAX_KEYS = 1 << 12, THREAD_MAX_KEYS = 1 << 12 };

/* Limit on loops that execute a task at one time: as many as there may be threads. */
enum { RUNNING_MAX = 1 << 16 };

/* Limit on the classes between one of the program and asyncio's. */
enum { BASES_MAX = 16 };

/* Limit on tasks that were started eagerly and have not awaited anything yet: they are nested. */
enum { EAGER_MAX = 1 << 12 };

/* Size of the buffer for a task: 192 bytes in 3.10. */
enum { OBJECT_MAX_BYTES = 256 };

/* Distances from the end of an object's type. Their structs are in no header of all versions. */
enum {
	WEAKREF_OBJECT_AFTER_TYPE = 0, /* PyWeakReference: what it refers to, or None */
	HOLDER_LOOP_AFTER_TYPE = 0,    /* PyRunningLoopHolder (to 3.11) */
};

enum { FIRST_MINOR = 8, LAST_MINOR = 13, FIRST_MINOR_WITHOUT_HOLDER = 12 };

/* In builds with the GIL. */
static const struct task_layout layouts[LAST_MINOR - FIRST_MINOR + 1] = {
	/*     size  loop  callback0  callbacks  state  waiter  coro  name  wakeup_word */
	/*  8 */ {144, 16, 24, 40, 72, 104, 112, 120, 0},
	/*  9 */ {184, 16, 24, 40, 80, 144, 152, 160, 0},
	/* 10 */ {192, 16, 24, 40, 88, 152, 160, 168, 1},
	/* 11 */ {176, 16, 24, 40, 88, 128, 136, 144, 1},
	/* 12 */ {176, 16, 24, 40, 88, 128, 136, 144, 1},
	/* 13 */ {144, 16, 24, 40, 96, 112, 120, 128, 1},
};

static uint32_t minor_of(const struct py_build *build)
{
	return build->version_hex >> 16 & 0xff;
}

bool asyncio_objects_known(const struct py_build *build)
{
	return minor_of(build) >= FIRST_MINOR && minor_of(build) <= LAST_MINOR;
}

/* The first word of an object after its type. */
static remote_addr after_type(const struct py_offsets *offsets, remote_addr addr)
{
	return addr + offsets->object.ob_type + sizeof(remote_addr);
}

/* Objects of free-threaded builds begin with more words; the rest of a task is the same. */
static struct task_layout layout_of(const struct py_build *build)
{
	struct task_layout layout = layouts[minor_of(build) - FIRST_MINOR];
	const uint32_t more = (uint32_t)after_type(&build->offsets, 0) - layout.loop;

	layout.size += more;
	layout.loop += more;
	layout.callback0 += more;
	layout.callbacks += more;
	layout.state += more;
	layout.waiter += more;
	layout.coro += more;
	layout.name += more;
	return layout;
}

static int read_base(struct remote_memory *memory, const struct py_offsets *offsets,
		     remote_addr type_addr, remote_addr *ret_base_addr)
{
	return remote_memory_read_u64(
		memory, type_addr + offsets->type.flags + TYPE_BASE_AFTER_FLAGS, ret_base_addr);
}

/* Find the names in the module asyncio.tasks. */
static int find_names(const struct dict *names, struct asyncio_objects *objects)
{
	int err = dict_find(names, NAMES_MAX_KEYS, "_CTask", NULL, &objects->task_type_addr);

	if (!err)
		err = dict_find(names, NAMES_MAX_KEYS, "_current_tasks", NULL,
				&objects->current_addr);
	if (err)
		return err;
	err = dict_find(names, NAMES_MAX_KEYS, "_all_tasks", NULL, &objects->weak_set_addr);
	if (err != -ENOENT)
		return err;
	/* 3.12, 3.13. */
	err = dict_find(names, NAMES_MAX_KEYS, "_scheduled_tasks", NULL, &objects->weak_set_addr);
	return err ? err
		   : dict_find(names, NAMES_MAX_KEYS, "_eager_tasks", NULL,
			       &objects->eager_set_addr);
}

int asyncio_objects_find(struct remote_memory *memory, const struct py_build *build,
			 remote_addr interp_addr, struct asyncio_objects *ret_objects)
{
	struct asyncio_objects objects = {.interp_addr = interp_addr};
	const struct py_offsets *offsets = &build->offsets;
	struct dict modules, names;
	uint64_t size = 0;
	int err;

	if (!asyncio_objects_known(build))
		return -ENOTSUP;
	objects.layout = layout_of(build);
	err = dict_open_modules(memory, build, interp_addr, &modules);
	if (!err)
		err = dict_open_module(&modules, MODULES_MAX_KEYS, "asyncio.tasks", NULL, &names);
	if (!err)
		err = find_names(&names, &objects);
	if (!err)
		err = read_base(memory, offsets, objects.task_type_addr, &objects.future_type_addr);
	if (!err)
		err = remote_memory_read_u64(
			memory, objects.task_type_addr + offsets->type.basicsize, &size);
	if (err)
		return err;
	if (size != objects.layout.size)
		return -ENOTSUP;
	*ret_objects = objects;
	return 0;
}

/* The loop and the task that run. */

int asyncio_objects_loop(struct remote_memory *memory, const struct py_build *build,
			 remote_addr thread_addr, remote_addr *ret_loop_addr)
{
	const struct py_offsets *offsets = &build->offsets;
	remote_addr dict_addr, value_addr;
	struct dict dict;
	int err;

	if (offsets->thread.running_loop != OFFSET_ABSENT)
		return remote_memory_read_u64(memory, thread_addr + offsets->thread.running_loop,
					      ret_loop_addr);
	err = remote_memory_read_u64(memory, thread_addr + offsets->thread.dict, &dict_addr);
	if (!err && !dict_addr)
		err = -ENOENT;
	if (!err)
		err = dict_open(memory, build, dict_addr, &dict);
	if (!err)
		err = dict_find(&dict, THREAD_MAX_KEYS, "__asyncio_running_event_loop__", NULL,
				&value_addr);
	if (!err && minor_of(build) < FIRST_MINOR_WITHOUT_HOLDER)
		err = remote_memory_read_u64(
			memory, after_type(offsets, value_addr) + HOLDER_LOOP_AFTER_TYPE,
			&value_addr);
	if (err && err != -ENOENT)
		return err;
	*ret_loop_addr = err ? 0 : value_addr;
	return 0;
}

int asyncio_objects_running(struct remote_memory *memory, const struct py_build *build,
			    const struct asyncio_objects *objects, remote_addr loop_addr,
			    remote_addr *ret_task_addr)
{
	struct dict_walk walk = {.next = 0};
	struct dict_entry entry;
	int err = dict_open(memory, build, objects->current_addr, &walk.dict);

	for (uint32_t i = 0; !err && i < RUNNING_MAX; i++) {
		err = dict_next(&walk, &entry);
		if (!err && entry.key_addr == loop_addr) {
			*ret_task_addr = entry.value_addr;
			return 0;
		}
	}
	if (err && err != -ENOENT)
		return err;
	*ret_task_addr = 0;
	return 0;
}

/* All tasks. */

/* Whether the set is as it was when it was opened. */
static int check_same(const struct py_build *build, remote_addr set_addr, const struct set *set)
{
	struct set now;
	int err = set_open(set->memory, &build->offsets, set_addr, &now);

	if (!err && (now.table_addr != set->table_addr || now.nr_used != set->nr_used ||
		     now.nr_slots != set->nr_slots))
		err = -EAGAIN;
	return err;
}

/* Append the members of a set of tasks. */
static int list_eager(struct remote_memory *memory, const struct py_build *build,
		      remote_addr set_addr, struct addr_list *list)
{
	remote_addr task_addr;
	struct set set;
	int err = set_open(memory, &build->offsets, set_addr, &set);

	if (!err && set.nr_slots > 4ull * EAGER_MAX)
		err = -E2BIG;
	while (!err) {
		err = set_next(&set, &task_addr);
		if (!err)
			err = addr_list_append(list, task_addr);
	}
	return err == -ENOENT ? check_same(build, set_addr, &set) : err;
}

/* Append the task of a weak reference, unless it is among the first nr_eager, which are sorted. */
static int list_weak(struct remote_memory *memory, const struct py_offsets *offsets,
		     remote_addr ref_addr, uint32_t nr_eager, struct addr_list *list)
{
	const struct addr_list eager = {.addrs = list->addrs, .nr = nr_eager};
	remote_addr task_addr;
	int err = remote_memory_read_u64(
		memory, after_type(offsets, ref_addr) + WEAKREF_OBJECT_AFTER_TYPE, &task_addr);

	/* The set has changed. */
	if (err == -EFAULT)
		err = -EAGAIN;
	if (err)
		return err;
	/* A task is in both sets for a moment. */
	return addr_list_find(&eager, task_addr) == ADDR_LIST_NONE
		       ? addr_list_append(list, task_addr)
		       : 0;
}

int asyncio_objects_list(struct remote_memory *memory, const struct py_build *build,
			 const struct asyncio_objects *objects, uint32_t max_tasks,
			 struct addr_list *list)
{
	remote_addr set_addr = 0, ref_addr;
	uint32_t nr_eager = 0;
	struct dict attributes;
	struct set set;
	int err = objects->eager_set_addr ? list_eager(memory, build, objects->eager_set_addr, list)
					  : 0;

	addr_list_sort(list);
	nr_eager = list->nr;
	if (!err)
		err = dict_open_attributes(memory, build, objects->weak_set_addr, &attributes);
	if (!err)
		err = dict_find(&attributes, NAMES_MAX_KEYS, "data", NULL, &set_addr);
	if (!err)
		err = set_open(memory, &build->offsets, set_addr, &set);
	if (err)
		return err == -ENOENT ? -EBADMSG : err;
	/* The table of a set has at most four times as many slots as members, or so it had. */
	if (set.nr_slots > 4ull * max_tasks)
		return -E2BIG;
	while (!err) {
		err = set_next(&set, &ref_addr);
		if (!err && list->nr >= max_tasks)
			err = -E2BIG;
		if (!err)
			err = list_weak(memory, &build->offsets, ref_addr, nr_eager, list);
	}
	return err == -ENOENT ? check_same(build, set_addr, &set) : err;
}

/* One task or future. */

/* Whether objects of a type are tasks, or futures. Returns -EBADMSG if they are neither. */
static int find_class(struct remote_memory *memory, const struct py_offsets *offsets,
		      const struct asyncio_objects *objects, remote_addr type_addr,
		      bool *ret_is_task)
{
	for (int i = 0; i < BASES_MAX && type_addr; i++) {
		int err;

		*ret_is_task = type_addr == objects->task_type_addr;
		if (*ret_is_task || type_addr == objects->future_type_addr)
			return 0;
		err = (type_addr % sizeof(uint64_t))
			      ? -EBADMSG
			      : read_base(memory, offsets, type_addr, &type_addr);
		if (err)
			return err;
	}
	return -EBADMSG;
}

int asyncio_objects_read(struct remote_memory *memory, const struct py_offsets *offsets,
			 const struct asyncio_objects *objects, remote_addr addr,
			 struct asyncio_object *ret_object)
{
	const struct task_layout *layout = &objects->layout;
	uint8_t bytes[OBJECT_MAX_BYTES];
	struct asyncio_object object = {0};
	remote_addr type_addr;
	int err;

	if (!addr || addr % sizeof(uint64_t) || layout->size > sizeof(bytes))
		return -EBADMSG;
	err = remote_memory_read(memory, addr, bytes, layout->state + sizeof(uint32_t));
	if (err)
		return err;
	type_addr = field_u64(bytes, offsets->object.ob_type);
	err = find_class(memory, offsets, objects, type_addr, &object.is_task);
	if (!err && object.is_task)
		err = remote_memory_read(memory, addr, bytes, layout->size);
	/* Meanwhile something else may have taken its place. */
	if (!err && field_u64(bytes, offsets->object.ob_type) != type_addr)
		err = -EBADMSG;
	if (err)
		return err;
	object.is_done = field_u32(bytes, layout->state) != 0;
	object.loop_addr = field_u64(bytes, layout->loop);
	object.callback0_addr = field_u64(bytes, layout->callback0);
	object.callbacks_addr = field_u64(bytes, layout->callbacks);
	if (object.is_task) {
		object.waiter_addr = field_u64(bytes, layout->waiter);
		object.coro_addr = field_u64(bytes, layout->coro);
		object.name_addr = field_u64(bytes, layout->name);
	}
	*ret_object = object;
	return 0;
}
