/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/objects/value_types.h"

#include <errno.h>
#include <string.h>

#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/objects/scalars.h"

/* The flag that tells each kind, or 0. */
static const uint64_t flag_of_kind[NR_VALUE_KINDS] = {
#define KIND(kind, flag, form) [VALUE_##kind] = (flag),
#include "sampler/cpython/objects/value_kinds.def"
};

static const struct {
	const char *name;
	enum value_kind kind;
} static_types[] = {
#define TYPE(kind, name) {name, VALUE_##kind},
#include "sampler/cpython/objects/value_kinds.def"
};

/* Room for the longest of these names, its end, and one more: of longer ones as much is read. */
enum { NAME_BYTES = sizeof("builtin_function_or_method") + 1 };

/* Classes are not derived deeper; what is goes in a circle, or is odd. */
enum { BASES_MAX = 64 };

struct type_head {
	remote_addr addr;
	uint64_t flags;
	remote_addr name_addr;
};

bool value_types_are_known(const struct py_offsets *offsets)
{
	return offsets->type.flags != OFFSET_ABSENT && offsets->code.names != OFFSET_ABSENT;
}

static int read_type_head(struct remote_memory *memory, const struct py_offsets *offsets,
			  remote_addr addr, struct type_head *ret_head)
{
	int err = (addr % sizeof(uint64_t)) ? -EBADMSG : 0;

	*ret_head = (struct type_head){.addr = addr};
	if (!err && offsets->type.flags != OFFSET_ABSENT)
		err = remote_memory_read_u64(memory, addr + offsets->type.flags, &ret_head->flags);
	if (!err)
		err = remote_memory_read_u64(memory, addr + offsets->object.tp_name,
					     &ret_head->name_addr);
	return err;
}

/*
 * The kind that a static type's name tells; VALUE_OBJECT if it is none of those. False if it
 * has no name that can be read.
 */
static bool kind_by_name(struct remote_memory *memory, const struct type_head *head,
			 enum value_kind *ret_kind)
{
	char name[NAME_BYTES];

	*ret_kind = VALUE_OBJECT;
	if (c_string_read(memory, head->name_addr, name, sizeof(name)) != 0)
		return false;
	for (size_t i = 0; i < sizeof(static_types) / sizeof(*static_types); i++)
		if (strcmp(name, static_types[i].name) == 0)
			*ret_kind = static_types[i].kind;
	return true;
}

/* The kind of what is derived from a static type that is known by its name. */
static enum value_kind kind_by_bases(struct remote_memory *memory, const struct py_offsets *offsets,
				     struct type_head head)
{
	enum value_kind kind = VALUE_OBJECT;
	remote_addr base_addr;

	if (offsets->type.flags == OFFSET_ABSENT)
		return kind;
	for (int i = 0; i < BASES_MAX && kind == VALUE_OBJECT; i++) {
		if (remote_memory_read_u64(memory,
					   head.addr + offsets->type.flags + TYPE_BASE_AFTER_FLAGS,
					   &base_addr) != 0 ||
		    !base_addr || read_type_head(memory, offsets, base_addr, &head) != 0)
			break;
		if (!(head.flags & TYPE_HEAP))
			(void)kind_by_name(memory, &head, &kind);
	}
	return kind;
}

static int read_type(struct remote_memory *memory, const struct py_offsets *offsets,
		     remote_addr addr, struct value_type *ret_type)
{
	struct value_type type = {.addr = addr, .kind = VALUE_OBJECT, .has_name = true};
	struct type_head head;
	int err = read_type_head(memory, offsets, addr, &head);

	if (err)
		return err;
	type.is_heap = head.flags & TYPE_HEAP;
	type.is_ready = head.flags & TYPE_READY;
	if (!type.is_heap)
		type.has_name = kind_by_name(memory, &head, &type.kind);
	type.is_exact = type.kind != VALUE_OBJECT || !type.has_name;
	for (size_t i = 0; type.kind == VALUE_OBJECT && i < NR_VALUE_KINDS; i++)
		if (head.flags & flag_of_kind[i])
			type.kind = (enum value_kind)i;
	if (type.kind == VALUE_OBJECT)
		type.kind = kind_by_bases(memory, offsets, head);
	*ret_type = type;
	return 0;
}

int value_type_of(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		  struct value_type *ret_type)
{
	remote_addr type_addr;
	int err = (addr % sizeof(uint64_t)) ? -EBADMSG : 0;

	if (!err)
		err = remote_memory_read_u64(memory, addr + build->offsets.object.ob_type,
					     &type_addr);
	return err ? err : read_type(memory, &build->offsets, type_addr, ret_type);
}

int type_cache_get(struct type_cache *cache, struct remote_memory *memory,
		   const struct py_offsets *offsets, remote_addr addr, struct value_type *ret_type)
{
	/* Types are 16 bytes apart at the least. */
	struct value_type *cached = &cache->types[(addr >> 4) % NR_CACHED_TYPES];
	struct value_type type;
	int err;

	if (!addr || cached->addr != addr) {
		err = read_type(memory, offsets, addr, &type);
		if (err)
			return err;
		*cached = type;
	}
	*ret_type = *cached;
	return 0;
}
