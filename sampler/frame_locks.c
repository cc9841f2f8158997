/* SPDX-License-Identifier: MIT */
#include "sampler/frame_locks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/bounded_memory.h"
#include "procmem/cleanup.h"
#include "procmem/clock.h"
#include "sampler/cpython/base/cached_memory.h"
#include "sampler/cpython/frames/value_stack.h"
#include "sampler/cpython/objects/dict.h"
#include "sampler/cpython/objects/lock_object.h"

/* Innermost frames that are read: a recursion need not be followed to its end. */
enum { MAX_FRAMES_READ = 512 };

/* Limits on what one thread may cost: some 10,000 values, or half a second. */
enum { MAX_READS = 65536 };
#define MAX_NS 500000000u

/* Conditions that one thread can wait for: a signal handler may wait within a wait. */
enum { MAX_GIVEN_UP = 8 };

/* The attributes of a Condition: _lock comes first. */
enum { CONDITION_MAX_ATTRIBUTES = 16 };

/* A reading of one thread. */
struct reader {
	struct cached_memory cached;
	struct bounded_memory bounded; /* reads cached */
	const struct py_build *build;
	struct lock_types types;
	struct value_stack stack;
	struct sample_lock *locks; /* borrowed, like nr_locks */
	uint32_t nr_locks;
	/* the locks of conditions that frames further in wait for, by mutex_addr */
	uint64_t given_up[MAX_GIVEN_UP];
	uint32_t nr_given_up;
	bool gave_up_any; /* some of these locks are not known */
};

static bool is_given_up(const struct reader *reader, uint64_t mutex_addr)
{
	for (uint32_t i = 0; i < reader->nr_given_up; i++)
		if (reader->given_up[i] == mutex_addr)
			return true;
	return reader->gave_up_any;
}

/* Add a lock, or what else is known about one that was found before. */
static void add(struct reader *reader, const struct lock_object *found, bool is_inside)
{
	static const enum sample_lock_kind kinds[] = {
		[LOCK_OBJECT_LOCK] = SAMPLE_LOCK_THREAD,
		[LOCK_OBJECT_RLOCK] = SAMPLE_LOCK_RECURSIVE,
		[LOCK_OBJECT_SEMLOCK] = SAMPLE_LOCK_PROCESS,
	};

	for (uint32_t i = 0; i < reader->nr_locks; i++) {
		if (reader->locks[i].mutex_addr != found->mutex_addr)
			continue;
		reader->locks[i].is_inside = reader->locks[i].is_inside || is_inside;
		return;
	}
	if (reader->nr_locks < FRAME_LOCKS_MAX)
		reader->locks[reader->nr_locks++] = (struct sample_lock){
			.kind = kinds[found->kind],
			.mutex_addr = found->mutex_addr,
			.semaphore_addr = found->semaphore_addr,
			.owner_ident = found->owner_ident,
			.is_inside = is_inside,
		};
}

/* Whether a frame may be in Condition.wait(). */
static bool may_wait_for_condition(const struct walked_frame *frame)
{
	const struct function *function = frame->code->function;
	const char *file = function ? strrchr(function->path, '/') : NULL;
	const char *name = function ? strrchr(function->qualname, '.') : NULL;

	return function && strcmp(file ? file + 1 : function->path, "threading.py") == 0 &&
	       strcmp(name ? name + 1 : function->qualname, "wait") == 0;
}

/* Read the attribute _lock of the object at addr. Errors of dict_find(). */
static int read_lock_of(struct reader *reader, remote_addr addr, struct lock_object *ret_lock)
{
	struct remote_memory *memory = &reader->bounded.memory;
	remote_addr lock_addr = 0;
	struct dict attributes;
	int err = dict_open_attributes(memory, reader->build, addr, &attributes);

	if (!err)
		err = dict_find(&attributes, CONDITION_MAX_ATTRIBUTES, "_lock", NULL, &lock_addr);
	return err ? err
		   : lock_object_read(memory, reader->build, &reader->types, lock_addr, 0,
				      ret_lock);
}

/*
 * Note the lock that Condition.wait() has given up, if the frame whose stack was read is in that.
 * Other functions of threading.py with the name belong to objects without a lock of their own.
 * Returns 0, -E2BIG (a limit is reached), or a fatal error.
 */
static int note_condition(struct reader *reader, const struct walked_frame *frame)
{
	struct lock_object lock = {.kind = LOCK_OBJECT_NONE};
	int err;

	if (!may_wait_for_condition(frame))
		return 0;
	err = reader->stack.nr_variables ? read_lock_of(reader, reader->stack.words[0], &lock)
					 : -EBADMSG;
	if (!err && lock.kind != LOCK_OBJECT_NONE && reader->nr_given_up < MAX_GIVEN_UP)
		reader->given_up[reader->nr_given_up++] = lock.mutex_addr;
	else if (err != -ENOENT && (err || lock.kind != LOCK_OBJECT_NONE))
		reader->gave_up_any = true;
	return err == -E2BIG || remote_error_is_fatal(err) ? err : 0;
}

/* Add the locks of a frame. Returns 0, -E2BIG (a limit is reached), or a fatal error. */
static int read_frame(struct reader *reader, const struct walked_frame *frame, bool is_innermost)
{
	struct value_stack *stack = &reader->stack;
	uint32_t nr;
	int err = value_stack_read(&reader->bounded.memory, reader->build, frame, stack);

	if (err) {
		reader->gave_up_any |= may_wait_for_condition(frame);
		return remote_error_is_fatal(err) ? err : 0;
	}
	err = note_condition(reader, frame);
	/* What the innermost frame calls is above what is certainly alive. */
	nr = is_innermost ? stack->nr_words : stack->nr_alive;
	for (uint32_t i = 0; !err && i < nr; i++) {
		const bool is_alive = i >= stack->nr_variables && i < stack->nr_alive;
		const bool has_below = i > stack->nr_variables;
		struct lock_object lock;

		err = lock_object_read(&reader->bounded.memory, reader->build, &reader->types,
				       stack->words[i], has_below ? stack->words[i - 1] : 0, &lock);
		if (!err && lock.kind != LOCK_OBJECT_NONE)
			add(reader, &lock,
			    is_alive && lock.is_exit && !is_given_up(reader, lock.mutex_addr));
	}
	return err;
}

int frame_locks_read(struct remote_memory *memory, const struct py_build *build,
		     const struct frame_list *list, struct sample_lock locks[FRAME_LOCKS_MAX],
		     uint32_t *ret_nr_locks)
{
	struct reader reader = {.build = build, .locks = locks};
	bool is_innermost = true;
	uint32_t nr_read = 0;
	int err = 0;

	cached_memory_init(&reader.cached, memory);
	bounded_memory_init(&reader.bounded, &reader.cached.memory, MAX_READS, NULL,
			    clock_now_ns() + MAX_NS);
	for (uint32_t i = list->nr_frames; !err && i > 0 && nr_read < MAX_FRAMES_READ; i--) {
		const struct walked_frame *frame = &list->frames[i - 1];

		if (!frame_visible(list, i - 1))
			continue;
		err = read_frame(&reader, frame, is_innermost);
		is_innermost = false;
		nr_read++;
	}
	cached_memory_done(&reader.cached);
	*ret_nr_locks = reader.nr_locks;
	return err == -E2BIG ? 0 : err;
}
