/* SPDX-License-Identifier: MIT */
/*
 * What kind of value an object is, told by its type. The types that matter are known by their
 * addresses, which the interpreter's module builtins tells: their names are constants of the
 * executable, which a core may not have. Types that are made of these (subclasses) are told by
 * their flags, or by following tp_base.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/python/offsets.h"

/* In tp_flags: the type was made at run time, by a class statement or an extension. */
#define TYPE_HEAP (1ull << 9)

enum value_kind {
	VALUE_OBJECT, /* whatever is none of the following */
	VALUE_NONE,
	VALUE_ELLIPSIS,
	VALUE_NOT_IMPLEMENTED,
	VALUE_BOOL,
	VALUE_INT,
	VALUE_FLOAT,
	VALUE_COMPLEX,
	VALUE_STR,
	VALUE_BYTES,
	VALUE_BYTEARRAY,
	VALUE_LIST,
	VALUE_TUPLE,
	VALUE_SET,
	VALUE_FROZENSET,
	VALUE_DICT,
	VALUE_EXCEPTION,
	VALUE_TYPE,
	VALUE_MODULE,
	VALUE_BUILTIN, /* a function or method in C */
	VALUE_FUNCTION,
	VALUE_METHOD,
	VALUE_CELL,
	NR_VALUE_KINDS,
};

/* The addresses of the types of some kinds; 0: not known. All zero, flags alone tell. */
struct value_types {
	remote_addr addrs[NR_VALUE_KINDS];
};

/* A type, and what its instances are. */
struct value_type {
	remote_addr addr;
	enum value_kind kind;
	bool is_exact; /* they are of that kind itself, and not of a subclass */
	bool is_heap;  /* TYPE_HEAP */
};

/*
 * Learn the types that the builtins of the interpreter at interp_addr have, which are those
 * of all interpreters. What a program has put there in place of a builtin is not believed.
 * 0; -ENOENT, -EBADMSG, -EFAULT, -E2BIG (there is none to be found), and nothing is learnt
 * then; -ESRCH, -EPERM.
 *
 * Source: bltinmodule.c of CPython 3.6 to 3.15, _PyBuiltin_Init().
 */
int value_types_learn(struct remote_memory *memory, const struct py_build *build,
		      remote_addr interp_addr, struct value_types *ret_types);

/*
 * The type of the object at addr. 0; -EBADMSG or -EFAULT (there is no object), -ESRCH, -EPERM.
 *
 * Source: tp_flags of CPython Include/object.h; best_base() of Objects/typeobject.c: an
 * instance is laid out as tp_base has it.
 */
int value_type_of(struct remote_memory *memory, const struct py_build *build,
		  const struct value_types *types, remote_addr addr, struct value_type *ret_type);

/* Whether values can be read at all: not of a build of which too little is known. */
bool value_types_are_known(const struct py_offsets *offsets);
