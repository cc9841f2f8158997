/* SPDX-License-Identifier: MIT */
/*
 * What kind of value an object is, told by its type: by the name of a static type, which no
 * Python code can make; for what is derived from one, by its flags, or by following tp_base.
 * Where names cannot be read, the flags still tell most kinds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"

/* VALUE_NONE, VALUE_INT, …: value_kinds.def says what they are. */
enum value_kind {
#define KIND(kind, flag, form) VALUE_##kind,
#include "sampler/cpython/objects/value_kinds.def"
	NR_VALUE_KINDS,
};

/* A type, and what its instances are. */
struct value_type {
	remote_addr addr;
	enum value_kind kind;
	bool is_exact; /* they are of that kind itself, and not of a subclass */
	bool is_heap;  /* TYPE_HEAP */
	bool is_ready; /* TYPE_READY, so far as flags are known */
	bool has_name; /* false: of a static type that could not be read */
};

/*
 * The type of the object at addr, by its name alone where nothing is known of flags. 0; -EBADMSG or -EFAULT (there is no type, no
 * object), -ESRCH, -EPERM.
 *
 * Source: best_base() of CPython Objects/typeobject.c: an instance is laid out as tp_base has
 * it; Objects/genobject.c (PyCoroWrapper, PyAsyncGenASend, PyAsyncGenAThrow) and
 * Objects/iterobject.c (anextawaitableobject) of 3.14 and 3.15.
 */
int value_type_of(struct remote_memory *memory, const struct py_build *build, remote_addr addr,
		  struct value_type *ret_type);

/* What is known of the types of objects, for those who meet many of few types. All zero it is empty. */
enum { NR_CACHED_TYPES = 64 };
struct type_cache {
	struct value_type types[NR_CACHED_TYPES];
};

/* The type at addr itself, from the cache if it is known. Errors of value_type_of(). */
int type_cache_get(struct type_cache *cache, struct remote_memory *memory,
		   const struct py_offsets *offsets, remote_addr addr, struct value_type *ret_type);

/* Whether values can be read at all: not of a build of which too little is known. */
bool value_types_are_known(const struct py_offsets *offsets);
