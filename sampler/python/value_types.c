/* SPDX-License-Identifier: MIT */
#include "sampler/python/value_types.h"

#include <errno.h>
#include <string.h>

#include "sampler/python/type_flags.h"
#include "sampler/python/value_offsets.h"

static const struct {
	uint64_t flag;
	enum value_kind kind;
} kinds_by_flag[] = {
	{TYPE_IS_INT, VALUE_INT},
	{TYPE_IS_LIST, VALUE_LIST},
	{TYPE_IS_TUPLE, VALUE_TUPLE},
	{TYPE_IS_BYTES, VALUE_BYTES},
	{TYPE_IS_STR, VALUE_STR},
	{TYPE_IS_DICT, VALUE_DICT},
	{TYPE_IS_EXCEPTION, VALUE_EXCEPTION},
	{TYPE_IS_TYPE, VALUE_TYPE},
};
enum { NR_KINDS_BY_FLAG = sizeof(kinds_by_flag) / sizeof(*kinds_by_flag) };

/* What CPython calls its static types. */
static const struct {
	const char *type_name;
	enum value_kind kind;
} kinds_by_name[] = {
	{"NoneType", VALUE_NONE},
	{"ellipsis", VALUE_ELLIPSIS},
	{"NotImplementedType", VALUE_NOT_IMPLEMENTED},
	{"bool", VALUE_BOOL},
	{"int", VALUE_INT},
	{"float", VALUE_FLOAT},
	{"complex", VALUE_COMPLEX},
	{"str", VALUE_STR},
	{"bytes", VALUE_BYTES},
	{"bytearray", VALUE_BYTEARRAY},
	{"list", VALUE_LIST},
	{"tuple", VALUE_TUPLE},
	{"set", VALUE_SET},
	{"frozenset", VALUE_FROZENSET},
	{"dict", VALUE_DICT},
	{"module", VALUE_MODULE},
	{"builtin_function_or_method", VALUE_BUILTIN},
	{"function", VALUE_FUNCTION},
	{"method", VALUE_METHOD},
	{"cell", VALUE_CELL},
};
enum { NR_KINDS_BY_NAME = sizeof(kinds_by_name) / sizeof(*kinds_by_name) };

/* The longest of these names and its end. */
enum { NAME_BYTES = sizeof("builtin_function_or_method") };

/* Classes are not derived deeper; what is goes in a circle, or is odd. */
enum { BASES_MAX = 64 };

struct type_head {
	uint64_t flags;
	remote_addr base_addr;
	remote_addr name_addr;
};

bool value_types_are_known(const struct py_offsets *offsets)
{
	return offsets->type.flags != OFFSET_ABSENT && offsets->code.names != OFFSET_ABSENT;
}

static int read_type_head(struct remote_memory *memory, const struct py_offsets *offsets,
			  remote_addr addr, struct type_head *ret_head)
{
	const remote_addr flags_addr = addr + offsets->type.flags;
	int err = (addr % sizeof(uint64_t)) ? -EBADMSG : 0;

	if (!err)
		err = remote_memory_read_u64(memory, flags_addr, &ret_head->flags);
	if (!err)
		err = remote_memory_read_u64(memory, flags_addr + TYPE_BASE_AFTER_FLAGS,
					     &ret_head->base_addr);
	if (!err)
		err = remote_memory_read_u64(memory, addr + offsets->object.tp_name,
					     &ret_head->name_addr);
	return err;
}

/* The kind that one of the flags tells; VALUE_OBJECT if none does. */
static enum value_kind kind_by_flags(uint64_t flags)
{
	for (unsigned int i = 0; i < NR_KINDS_BY_FLAG; i++)
		if (flags & kinds_by_flag[i].flag)
			return kinds_by_flag[i].kind;
	return VALUE_OBJECT;
}

/* As much of the C string at addr as is there and can matter. Whether anything is. */
static bool read_name(struct remote_memory *memory, remote_addr addr, char ret_name[NAME_BYTES])
{
	size_t length = 0;

	if (remote_memory_read(memory, addr, ret_name, NAME_BYTES) == 0)
		return true;
	/* It may be the last thing in a mapping. */
	while (length < NAME_BYTES &&
	       remote_memory_read(memory, addr + length, ret_name + length, 1) == 0)
		length++;
	return length > 0;
}

/*
 * The kind that a static type's name tells; VALUE_OBJECT if it is none of those. False if it
 * has no name that can be read.
 */
static bool kind_by_name(struct remote_memory *memory, const struct type_head *head,
			 enum value_kind *ret_kind)
{
	char name[NAME_BYTES] = "";

	*ret_kind = VALUE_OBJECT;
	if (!read_name(memory, head->name_addr, name))
		return false;
	for (size_t i = 0; i < NR_KINDS_BY_NAME; i++)
		if (strncmp(name, kinds_by_name[i].type_name, NAME_BYTES) == 0)
			*ret_kind = kinds_by_name[i].kind;
	return true;
}

/* The kind of what is derived from a static type that is known by its name. */
static enum value_kind kind_by_bases(struct remote_memory *memory, const struct py_offsets *offsets,
				     struct type_head head)
{
	enum value_kind kind = VALUE_OBJECT;

	for (int i = 0; i < BASES_MAX && head.base_addr && kind == VALUE_OBJECT; i++) {
		if (read_type_head(memory, offsets, head.base_addr, &head) != 0)
			break;
		if (!(head.flags & TYPE_HEAP))
			(void)kind_by_name(memory, &head, &kind);
	}
	return kind;
}

int value_type_of(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		  struct value_type *ret_type)
{
	const struct py_offsets *offsets = &build->offsets;
	struct value_type type = {.kind = VALUE_OBJECT};
	struct type_head head;
	bool has_name = true;
	int err = (addr % sizeof(uint64_t)) ? -EBADMSG : 0;

	if (!err)
		err = remote_memory_read_u64(memory, addr + offsets->object.ob_type, &type.addr);
	if (!err)
		err = read_type_head(memory, offsets, type.addr, &head);
	if (err)
		return err;
	type.is_heap = head.flags & TYPE_HEAP;
	if (!type.is_heap)
		has_name = kind_by_name(memory, &head, &type.kind);
	type.is_exact = type.kind != VALUE_OBJECT || !has_name;
	if (type.kind == VALUE_OBJECT)
		type.kind = kind_by_flags(head.flags);
	if (type.kind == VALUE_OBJECT)
		type.kind = kind_by_bases(memory, offsets, head);
	*ret_type = type;
	return 0;
}
