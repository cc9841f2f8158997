/* SPDX-License-Identifier: MIT */
#include "sampler/python/object_kind.h"

#include <errno.h>
#include <string.h>

#include "sampler/python/type_flags.h"

/* Longer names are none of those below. */
enum { NAME_BYTES = 32 };

static enum object_kind kind_by_name(const char *name)
{
	static const struct {
		const char *name;
		enum object_kind kind;
	} kinds[] = {
		{"generator", OBJECT_GENERATOR},
		{"coroutine", OBJECT_GENERATOR},
		{"async_generator", OBJECT_GENERATOR},
		{"coroutine_wrapper", OBJECT_AWAITER},
		{"async_generator_asend", OBJECT_AWAITER},
		{"async_generator_athrow", OBJECT_AWAITER},
		{"anext_awaitable", OBJECT_AWAITER},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(name, kinds[i].name) == 0)
			return kinds[i].kind;
	return OBJECT_OTHER;
}

/* Read up to NAME_BYTES - 1 characters of a name; what lies behind it may not be mapped. */
static int read_name(struct remote_memory *memory, remote_addr addr, char ret_name[NAME_BYTES])
{
	struct remote_range range = {.addr = addr, .buffer = ret_name, .size = NAME_BYTES - 1};
	int err;

	memset(ret_name, 0, NAME_BYTES);
	err = remote_memory_read_ranges(memory, &range, 1);
	return !err && !range.done_bytes ? -EFAULT : err;
}

static int read_kind(struct remote_memory *memory, const struct py_offsets *offsets,
		     remote_addr type_addr, enum object_kind *ret_kind)
{
	uint64_t flags, name_addr;
	char name[NAME_BYTES];
	int name_err;
	int err = remote_memory_read_u64(memory, type_addr + offsets->type.flags, &flags);

	if (!err)
		err = remote_memory_read_u64(memory, type_addr + offsets->object.tp_name,
					     &name_addr);
	if (err)
		return err;
	/* Names are constants of a file, which a core file may be without. */
	name_err = read_name(memory, name_addr, name);
	if (name_err && name_err != -EFAULT)
		return name_err;
	if (flags & TYPE_IS_INT)
		*ret_kind = OBJECT_INTEGER;
	else if (flags & TYPE_IS_STR)
		*ret_kind = OBJECT_STRING;
	else
		*ret_kind = name_err ? OBJECT_UNNAMED : kind_by_name(name);
	return 0;
}

int object_kind_get(struct object_kinds *kinds, struct remote_memory *memory,
		    const struct py_offsets *offsets, remote_addr type_addr,
		    enum object_kind *ret_kind)
{
	/* Types are 16 bytes apart at the least. */
	const size_t index = (type_addr >> 4) % NR_KNOWN_KINDS;
	enum object_kind kind;
	int err;

	if (type_addr && kinds->known[index].type_addr == type_addr) {
		*ret_kind = kinds->known[index].kind;
		return 0;
	}
	err = read_kind(memory, offsets, type_addr, &kind);
	if (err)
		return err;
	kinds->known[index].type_addr = type_addr;
	kinds->known[index].kind = kind;
	*ret_kind = kind;
	return 0;
}
