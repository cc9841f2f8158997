/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/objects/lock_object.h"

#include <errno.h>
#include <string.h>

#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/objects/dict.h"
#include "sampler/cpython/objects/object.h"

/* What the values of a type can be. */
enum type_kind {
	TYPE_OTHER,
	TYPE_LOCK,
	TYPE_RLOCK,
	TYPE_SEMLOCK,
	TYPE_BUILTIN,	 /* a bound method written in C */
	TYPE_METHOD,	 /* a bound method written in Python */
	TYPE_DESCRIPTOR, /* a method written in C, not bound */
	TYPE_FUNCTION,	 /* of Python */
	TYPE_WRAPPER,	 /* may be a class of multiprocessing.synchronize */
};

static const struct {
	const char *name;
	enum type_kind kind;
} type_names[] = {
	{"_thread.lock", TYPE_LOCK},
	{"_thread.RLock", TYPE_RLOCK},
	{"_multiprocessing.SemLock", TYPE_SEMLOCK},
	{"builtin_function_or_method", TYPE_BUILTIN},
	{"method", TYPE_METHOD},
	{"method_descriptor", TYPE_DESCRIPTOR},
	{"function", TYPE_FUNCTION},
	{"Lock", TYPE_WRAPPER},
	{"RLock", TYPE_WRAPPER},
};

/* Longer than any of these names. */
enum { TYPE_NAME_BYTES = 32 };

/* The attributes of a Lock of multiprocessing: _semlock, acquire, release. */
enum { WRAPPER_MAX_ATTRIBUTES = 16 };

/* A search; everything is borrowed. */
struct search {
	struct remote_memory *memory;
	const struct py_build *build;
	struct lock_types *types;
};

/* The address of an object's own data. */
static remote_addr data_of(const struct search *search, remote_addr addr)
{
	return addr + search->build->offsets.object.ob_type + sizeof(remote_addr);
}

/* Whether an error only means that there is no such object. */
static bool is_absence(int err)
{
	return err == -EFAULT || err == -EBADMSG || err == -ENOENT || err == -ENOTSUP ||
	       err == -EAGAIN;
}

/* Read the kind of the type of the object at addr; TYPE_OTHER if there is none. */
static int read_kind(const struct search *search, remote_addr addr, enum type_kind *ret_kind)
{
	const struct py_offsets *offsets = &search->build->offsets;
	struct lock_type *slot;
	char name[TYPE_NAME_BYTES];
	remote_addr type_addr;
	int err;

	*ret_kind = TYPE_OTHER;
	if (!addr || addr % sizeof(remote_addr))
		return 0;
	err = remote_memory_read_u64(search->memory, addr + offsets->object.ob_type, &type_addr);
	if (err || !type_addr || type_addr % sizeof(remote_addr))
		return is_absence(err) ? 0 : err;
	slot = &search->types->types[type_addr / 64 % NR_LOCK_TYPES];
	if (slot->addr == type_addr) {
		*ret_kind = (enum type_kind)slot->kind;
		return 0;
	}
	err = type_name_read(search->memory, offsets, type_addr, name, sizeof(name));
	if (err)
		return is_absence(err) ? 0 : err;
	for (size_t i = 0; i < sizeof(type_names) / sizeof(*type_names); i++)
		if (strcmp(name, type_names[i].name) == 0)
			*ret_kind = type_names[i].kind;
	*slot = (struct lock_type){.addr = type_addr, .kind = (int)*ret_kind};
	return 0;
}

/* Fill *lock from a lock of the C modules. */
static int read_lock(const struct search *search, enum type_kind kind, remote_addr addr,
		     struct lock_object *lock)
{
	uint8_t data[SEMLOCK_BYTES_AFTER_TYPE];
	const size_t size = kind == TYPE_SEMLOCK ? SEMLOCK_BYTES_AFTER_TYPE
			    : kind == TYPE_RLOCK ? RLOCK_OWNER_AFTER_TYPE + 8
						 : LOCK_WORD_AFTER_TYPE + 8;
	int err = remote_memory_read(search->memory, data_of(search, addr), data, size);

	if (err)
		return err;
	lock->mutex_addr = data_of(search, addr);
	lock->semaphore_addr = field_u64(data, LOCK_WORD_AFTER_TYPE);
	if (kind == TYPE_RLOCK) {
		lock->kind = LOCK_OBJECT_RLOCK;
		lock->owner_ident = field_u64(data, RLOCK_OWNER_AFTER_TYPE);
	} else if (kind == TYPE_LOCK) {
		lock->kind = LOCK_OBJECT_LOCK;
	} else if (field_i32(data, SEMLOCK_MAXVALUE_AFTER_TYPE) == 1) {
		/* A semaphore of more than one has no holder. */
		lock->kind = LOCK_OBJECT_SEMLOCK;
		if (field_i32(data, SEMLOCK_COUNT_AFTER_TYPE) > 0)
			lock->owner_ident = field_u64(data, SEMLOCK_LAST_AFTER_TYPE);
	}
	return 0;
}

/* Fill *lock from the attribute _semlock of an instance. */
static int read_wrapper(const struct search *search, remote_addr addr, struct lock_object *lock)
{
	enum type_kind kind = TYPE_OTHER;
	remote_addr inner_addr = 0;
	struct dict attributes;
	int err = dict_open_attributes(search->memory, search->build, addr, &attributes);

	if (!err)
		err = dict_find(&attributes, WRAPPER_MAX_ATTRIBUTES, "_semlock", NULL, &inner_addr);
	if (!err)
		err = read_kind(search, inner_addr, &kind);
	return err || kind != TYPE_SEMLOCK ? err : read_lock(search, kind, inner_addr, lock);
}

/* Whether a method written in C, at addr, is __exit__: its C name is behind a pointer. */
static int is_exit(const struct search *search, remote_addr addr, bool *ret_is_exit)
{
	char name[sizeof("__exit__") + 1] = "";
	remote_addr def_addr, name_addr;
	int err = remote_memory_read_u64(search->memory, data_of(search, addr), &def_addr);

	if (!err)
		err = remote_memory_read_u64(search->memory, def_addr + METHOD_DEF_NAME,
					     &name_addr);
	if (!err)
		err = c_string_read(search->memory, name_addr, name, sizeof(name));
	*ret_is_exit = !err && strcmp(name, "__exit__") == 0;
	return err;
}

/* Fill *lock from an object that is no method. */
static int read_object(const struct search *search, enum type_kind kind, remote_addr addr,
		       struct lock_object *lock)
{
	if (kind == TYPE_LOCK || kind == TYPE_RLOCK || kind == TYPE_SEMLOCK)
		return read_lock(search, kind, addr, lock);
	return kind == TYPE_WRAPPER ? read_wrapper(search, addr, lock) : 0;
}

/* Fill *lock from the object that a method, written in C or in Python, is bound to. */
static int read_method(const struct search *search, enum type_kind kind, remote_addr addr,
		       struct lock_object *lock)
{
	const uint32_t self_offset =
		kind == TYPE_BUILTIN ? BUILTIN_SELF_AFTER_TYPE : METHOD_SELF_AFTER_TYPE;
	enum type_kind self_kind;
	remote_addr self_addr;
	int err = remote_memory_read_u64(search->memory, data_of(search, addr) + self_offset,
					 &self_addr);

	if (!err)
		err = read_kind(search, self_addr, &self_kind);
	if (!err)
		err = read_object(search, self_kind, self_addr, lock);
	if (err || lock->kind == LOCK_OBJECT_NONE)
		return err;
	if (kind == TYPE_BUILTIN)
		return is_exit(search, addr, &lock->is_exit);
	lock->is_exit = true;
	return 0;
}

/* Whether the value below an object on the stack is the method __exit__ for it. */
static int is_below_exit(const struct search *search, remote_addr below_addr, bool *ret_is_exit)
{
	remote_addr name_addr;
	uint8_t bytes[128];
	enum type_kind kind;
	size_t size = string_compare_bytes(&search->build->offsets, strlen("__exit__"));
	int err = read_kind(search, below_addr, &kind);

	*ret_is_exit = !err && kind == TYPE_FUNCTION;
	if (err || kind != TYPE_DESCRIPTOR || size > sizeof(bytes))
		return err;
	err = remote_memory_read_u64(search->memory,
				     data_of(search, below_addr) + DESCRIPTOR_NAME_AFTER_TYPE,
				     &name_addr);
	if (!err)
		err = remote_memory_read(search->memory,
					 name_addr + search->build->offsets.unicode.length, bytes,
					 size);
	*ret_is_exit = !err && string_is(&search->build->offsets, bytes, "__exit__");
	return err;
}

int lock_object_read(struct remote_memory *memory, const struct py_build *build,
		     struct lock_types *types, remote_addr value_addr, remote_addr below_addr,
		     struct lock_object *ret_lock)
{
	const struct search search = {.memory = memory, .build = build, .types = types};
	struct lock_object lock = {.kind = LOCK_OBJECT_NONE};
	enum type_kind kind;
	int err = read_kind(&search, value_addr, &kind);

	if (!err && (kind == TYPE_BUILTIN || kind == TYPE_METHOD))
		err = read_method(&search, kind, value_addr, &lock);
	else if (!err)
		err = read_object(&search, kind, value_addr, &lock);
	if (!err && below_addr && lock.kind != LOCK_OBJECT_NONE && !lock.is_exit)
		err = is_below_exit(&search, below_addr, &lock.is_exit);
	if (err && !is_absence(err))
		return err;
	if (err)
		lock = (struct lock_object){.kind = LOCK_OBJECT_NONE};
	*ret_lock = lock;
	return 0;
}
