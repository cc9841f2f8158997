/* SPDX-License-Identifier: MIT */
#include "sampler/thread_state.h"

#include <string.h>

/* Whether the object at addr is of type NoneType. */
static bool object_is_none(const struct snapshot *snapshot, remote_addr addr)
{
	static const char none_type[] = "NoneType";
	const struct py_offsets *offsets = &snapshot->build->offsets;
	uint64_t type_addr, name_addr;
	char name[sizeof(none_type)];

	return remote_memory_read_u64(snapshot->memory, addr + offsets->object.ob_type,
				      &type_addr) == 0 &&
	       remote_memory_read_u64(snapshot->memory, type_addr + offsets->object.tp_name,
				      &name_addr) == 0 &&
	       remote_memory_read(snapshot->memory, name_addr, name, sizeof(name)) == 0 &&
	       memcmp(name, none_type, sizeof(name)) == 0;
}

/* Whether what an item holds is an exception. */
static bool is_exception(const struct snapshot *snapshot, remote_addr addr, struct known_none *none)
{
	if (!addr || addr == none->addr)
		return false;
	if (!snapshot->build->traits.handled_none || none->addr || addr == none->other_addr)
		return true;
	if (!object_is_none(snapshot, addr)) {
		none->other_addr = addr;
		return true;
	}
	none->addr = addr;
	return false;
}

/*
 * Find the innermost item that holds an exception, out of the list of those of a thread, up to the
 * one at end_addr (0: to the last): *ret_addr is the exception, or its type up to 3.10 if it has no
 * object. False: there is none, or it cannot be read.
 */
static bool find_handled(const struct snapshot *snapshot, const struct snapshot_thread *thread,
			 remote_addr end_addr, struct known_none *none, remote_addr *ret_addr)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	const uint32_t value = offsets->exc_item.value;
	/* Until 3.10 its type is before it, and is what is NULL or None. */
	const uint32_t behind = snapshot->build->traits.frames_on_heap ? sizeof(remote_addr) : 0;
	const bool is_list = offsets->thread.exc_info != OFFSET_ABSENT;
	const size_t size =
		(is_list ? offsets->exc_item.previous : value + behind) + sizeof(remote_addr);
	remote_addr addr = is_list ? field_u64(thread->state, offsets->thread.exc_info)
				   : thread->ref.addr + offsets->thread.exc_state;
	uint8_t item[EXC_ITEM_MAX_BYTES];

	for (int i = 0; i < EXC_ITEMS_MAX && addr && addr != end_addr; i++) {
		if (remote_memory_read(snapshot->memory, addr, item, size) != 0)
			return false;
		if (is_exception(snapshot, field_u64(item, value), none)) {
			*ret_addr = field_u64(item, value + behind);
			return true;
		}
		addr = is_list ? field_u64(item, offsets->exc_item.previous) : 0;
	}
	return false;
}

static bool handles_exception(const struct snapshot *snapshot, const struct snapshot_thread *thread,
			      bool follow, struct known_none *none)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	const uint32_t outermost = offsets->thread.exc_state;
	remote_addr addr;

	if (offsets->thread.raised == OFFSET_ABSENT || outermost == OFFSET_ABSENT)
		return false;
	if (field_u64(thread->state, offsets->thread.raised) ||
	    is_exception(snapshot, field_u64(thread->state, outermost + offsets->exc_item.value),
			 none))
		return true;
	/* What is left are the items around the running generators. */
	return follow && offsets->thread.exc_info != OFFSET_ABSENT &&
	       find_handled(snapshot, thread, thread->ref.addr + outermost, none, &addr);
}

remote_addr thread_state_exception(const struct snapshot *snapshot,
				   const struct snapshot_thread *thread, struct known_none *none)
{
	enum { LAST_MINOR_WITH_TYPE = 11 };
	const struct py_offsets *offsets = &snapshot->build->offsets;
	const uint32_t minor = snapshot->build->version_hex >> 16 & 0xff;
	const uint32_t behind = minor <= LAST_MINOR_WITH_TYPE ? sizeof(remote_addr) : 0;
	remote_addr addr = 0;

	if (offsets->thread.raised == OFFSET_ABSENT || offsets->thread.exc_state == OFFSET_ABSENT)
		return 0;
	(void)find_handled(snapshot, thread, 0, none, &addr);
	if (!addr &&
	    remote_memory_read_u64(snapshot->memory,
				   thread->ref.addr + offsets->thread.raised + behind, &addr) != 0)
		return 0;
	return addr;
}

uint32_t thread_state_flags(const struct snapshot *snapshot, const struct snapshot_thread *thread,
			    bool follow, struct known_none *none)
{
	const uint32_t requested = snapshot->build->offsets.thread.gil_requested;
	uint32_t flags = 0;

	if (thread->holds_gil)
		flags |= SAMPLE_HOLDS_GIL;
	else if (requested != OFFSET_ABSENT && field_i32(thread->state, requested) == 1)
		flags |= SAMPLE_WAITS_FOR_GIL;
	if (handles_exception(snapshot, thread, follow, none))
		flags |= SAMPLE_EXCEPTION;
	return flags;
}

uint32_t thread_state_collector(const struct snapshot *snapshot,
				const struct snapshot_thread *thread, const struct frame_list *list)
{
	const struct snapshot_interpreter *interpreter =
		&snapshot->interpreters[thread->ref.interpreter];
	uint32_t nr = list->nr_frames;

	if (!interpreter->collecting)
		return NOT_COLLECTING;
	if (snapshot->build->offsets.gc.frame != OFFSET_ABSENT) {
		nr = frame_list_find(list, interpreter->gc_frame_addr);
		if (!nr)
			return NOT_COLLECTING;
	} else if (!thread->holds_gil) {
		return NOT_COLLECTING;
	}
	return nr ? list->frames[nr - 1].nr_begun : 0;
}
