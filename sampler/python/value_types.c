/* SPDX-License-Identifier: MIT */
#include "sampler/python/value_types.h"

#include <errno.h>
#include <string.h>

#include "sampler/python/dict.h"
#include "sampler/python/value_offsets.h"

/* In tp_flags: from this bit on they say of which builtin type a type is a subclass. */
enum { TYPE_SUBCLASS_BIT = 24 };

static const enum value_kind kinds_by_flag[] = {
	VALUE_INT, VALUE_LIST, VALUE_TUPLE,	VALUE_BYTES,
	VALUE_STR, VALUE_DICT, VALUE_EXCEPTION, VALUE_TYPE,
};
enum { NR_KINDS_BY_FLAG = sizeof(kinds_by_flag) / sizeof(*kinds_by_flag) };

/* Classes are not derived deeper; what is goes in a circle, or is odd. */
enum { BASES_MAX = 64 };

/* So many keys are looked at: builtins has 160, and those looked for come first. */
enum { BUILTINS_MAX_KEYS = 512, MODULES_MAX_KEYS = 64 };

struct type_head {
	uint64_t flags;
	remote_addr base_addr;
};

bool value_types_are_known(const struct py_offsets *offsets)
{
	return offsets->type.flags != OFFSET_ABSENT && offsets->code.names != OFFSET_ABSENT;
}

static int read_type_head(struct remote_memory *memory, const struct py_offsets *offsets,
			  remote_addr addr, struct type_head *ret_head)
{
	const remote_addr flags_addr = addr + offsets->type.flags;
	struct remote_range ranges[] = {
		{.addr = flags_addr, .buffer = &ret_head->flags, .size = 8},
		{.addr = flags_addr + TYPE_BASE_AFTER_FLAGS,
		 .buffer = &ret_head->base_addr,
		 .size = 8},
	};
	int err = (addr % sizeof(uint64_t)) ? -EBADMSG : 0;

	if (!err)
		err = remote_memory_read_ranges(memory, ranges, 2);
	if (!err && (ranges[0].done_bytes != 8 || ranges[1].done_bytes != 8))
		err = -EFAULT;
	return err;
}

static int read_type_addr(struct remote_memory *memory, const struct py_offsets *offsets,
			  remote_addr addr, remote_addr *ret_type_addr)
{
	if (addr % sizeof(uint64_t))
		return -EBADMSG;
	return remote_memory_read_u64(memory, addr + offsets->object.ob_type, ret_type_addr);
}

/* The kind that one of the flags tells; VALUE_OBJECT if none does. */
static enum value_kind kind_by_flags(uint64_t flags)
{
	for (unsigned int i = 0; i < NR_KINDS_BY_FLAG; i++)
		if (flags >> (TYPE_SUBCLASS_BIT + i) & 1)
			return kinds_by_flag[i];
	return VALUE_OBJECT;
}

/* The kind whose type is at addr; VALUE_OBJECT if it is none of those known. */
static enum value_kind kind_by_addr(const struct value_types *types, remote_addr addr)
{
	for (enum value_kind kind = VALUE_NONE; kind < NR_VALUE_KINDS; kind++)
		if (types->addrs[kind] == addr)
			return kind;
	return VALUE_OBJECT;
}

/* The kinds that no address tells, as static types are called. */
static const struct {
	const char *type_name;
	enum value_kind kind;
} named_kinds[] = {
	{"function", VALUE_FUNCTION},
	{"method", VALUE_METHOD},
	{"cell", VALUE_CELL},
};

static enum value_kind kind_by_name(struct remote_memory *memory, const struct py_offsets *offsets,
				    remote_addr type_addr)
{
	char name[sizeof("function")] = {0};
	remote_addr name_addr;

	if (remote_memory_read_u64(memory, type_addr + offsets->object.tp_name, &name_addr) != 0)
		return VALUE_OBJECT;
	for (size_t i = 0; i < sizeof(named_kinds) / sizeof(*named_kinds); i++) {
		const size_t size = strlen(named_kinds[i].type_name) + 1;

		if (remote_memory_read(memory, name_addr, name, size) == 0 &&
		    memcmp(name, named_kinds[i].type_name, size) == 0)
			return named_kinds[i].kind;
	}
	return VALUE_OBJECT;
}

/* The kind of what is derived from a type that is known by its address. */
static enum value_kind kind_by_bases(struct remote_memory *memory, const struct py_offsets *offsets,
				     const struct value_types *types, struct type_head head)
{
	enum value_kind kind = VALUE_OBJECT;

	for (int i = 0; i < BASES_MAX && head.base_addr && kind == VALUE_OBJECT; i++) {
		kind = kind_by_addr(types, head.base_addr);
		if (read_type_head(memory, offsets, head.base_addr, &head) != 0)
			break;
	}
	return kind;
}

int value_type_of(struct remote_memory *memory, const struct py_build *build,
		  const struct value_types *types, remote_addr addr, struct value_type *ret_type)
{
	const struct py_offsets *offsets = &build->offsets;
	struct value_type type = {0};
	struct type_head head;
	int err = read_type_addr(memory, offsets, addr, &type.addr);

	if (!err)
		err = read_type_head(memory, offsets, type.addr, &head);
	if (err)
		return err;
	type.is_heap = head.flags & TYPE_HEAP;
	type.kind = kind_by_addr(types, type.addr);
	type.is_exact = type.kind != VALUE_OBJECT;
	if (!type.is_exact) {
		type.kind = kind_by_flags(head.flags);
		type.is_exact = type.kind == VALUE_EXCEPTION || type.kind == VALUE_TYPE ||
				(!type.is_heap && !types->addrs[type.kind]);
	}
	if (type.kind == VALUE_OBJECT)
		type.kind = kind_by_bases(memory, offsets, types, head);
	if (type.kind == VALUE_OBJECT && !type.is_heap) {
		type.kind = kind_by_name(memory, offsets, type.addr);
		type.is_exact = type.kind != VALUE_OBJECT;
	}
	*ret_type = type;
	return 0;
}

/* How a kind's type is found in builtins. */
static const struct {
	const char *key;
	enum value_kind kind;
	bool by_instance; /* the value there is one, and not the type */
} builtins[] = {
	{"None", VALUE_NONE, true},
	{"Ellipsis", VALUE_ELLIPSIS, true},
	{"NotImplemented", VALUE_NOT_IMPLEMENTED, true},
	{"bool", VALUE_BOOL, false},
	{"int", VALUE_INT, false},
	{"float", VALUE_FLOAT, false},
	{"complex", VALUE_COMPLEX, false},
	{"str", VALUE_STR, false},
	{"bytes", VALUE_BYTES, false},
	{"bytearray", VALUE_BYTEARRAY, false},
	{"list", VALUE_LIST, false},
	{"tuple", VALUE_TUPLE, false},
	{"set", VALUE_SET, false},
	{"frozenset", VALUE_FROZENSET, false},
	{"dict", VALUE_DICT, false},
	{"len", VALUE_BUILTIN, true},
};
enum { NR_BUILTINS = sizeof(builtins) / sizeof(*builtins) };

/* A search in dicts of the target. */
struct search {
	struct remote_memory *memory;
	const struct py_build *build;
	struct dict dict;
	uint32_t hint; /* where the key is looked for first */
};

/* Open what open() makes of the object at addr, of which max_entries are looked at. */
static int search_in(struct search *search, remote_addr addr, uint32_t max_entries,
		     int (*open)(struct remote_memory *, const struct py_build *, remote_addr,
				 struct dict *))
{
	int err = open(search->memory, search->build, addr, &search->dict);

	if (!err && search->dict.nr_entries > max_entries)
		search->dict.nr_entries = max_entries;
	return err;
}

static int search_find(struct search *search, const char *key, remote_addr *ret_addr)
{
	return dict_find(search->memory, search->build, &search->dict, key, &search->hint,
			 ret_addr);
}

/* The module builtins of an interpreter. */
static int find_module(struct search *search, remote_addr interp_addr, remote_addr *ret_addr)
{
	const struct py_offsets *offsets = &search->build->offsets;
	remote_addr modules_addr;
	int err;

	if (offsets->interpreter.modules == OFFSET_ABSENT)
		return -ENOENT;
	err = remote_memory_read_u64(search->memory, interp_addr + offsets->interpreter.modules,
				     &modules_addr);
	if (!err)
		err = search_in(search, modules_addr, MODULES_MAX_KEYS, dict_open);
	search->hint = 1; /* sys is the first */
	return err ? err : search_find(search, "builtins", ret_addr);
}

/* Whether the type at addr can be CPython's own: a program's is made at run time. */
static bool is_static(const struct search *search, remote_addr addr)
{
	struct type_head head;

	return read_type_head(search->memory, &search->build->offsets, addr, &head) == 0 &&
	       !(head.flags & TYPE_HEAP);
}

/* Put one of the builtins into types, if it is there. */
static int learn_one(struct search *search, size_t index, struct value_types *types)
{
	remote_addr addr;
	int err = search_find(search, builtins[index].key, &addr);

	if (!err && builtins[index].by_instance)
		err = read_type_addr(search->memory, &search->build->offsets, addr, &addr);
	if (!err && is_static(search, addr))
		types->addrs[builtins[index].kind] = addr;
	return err == -ESRCH || err == -EPERM ? err : 0;
}

int value_types_learn(struct remote_memory *memory, const struct py_build *build,
		      remote_addr interp_addr, struct value_types *ret_types)
{
	struct search search = {.memory = memory, .build = build};
	struct value_types types = {0};
	remote_addr module_addr;
	int err = find_module(&search, interp_addr, &module_addr);

	if (!err)
		err = search_in(&search, module_addr, BUILTINS_MAX_KEYS, dict_open_attributes);
	if (!err)
		err = read_type_addr(memory, &build->offsets, module_addr,
				     &types.addrs[VALUE_MODULE]);
	for (size_t i = 0; !err && i < NR_BUILTINS; i++)
		err = learn_one(&search, i, &types);
	if (!err)
		*ret_types = types;
	return err;
}
