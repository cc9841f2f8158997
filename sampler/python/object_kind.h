/* SPDX-License-Identifier: MIT */
/* What an object of the target is, as far as those who follow awaits have to know. */
#pragma once

#include "procmem/memory.h"
#include "sampler/python/offsets.h"

enum object_kind {
	OBJECT_OTHER,
	OBJECT_STRING,
	OBJECT_INTEGER,
	OBJECT_GENERATOR, /* generator, coroutine or asynchronous generator: has a frame */
	OBJECT_AWAITER,	  /* the word behind its type is the object that it drives */
	OBJECT_UNNAMED,	  /* its type's name is not there: it may be an awaiter */
};

/* So many types are known at once; which one it is goes by its address. */
enum { NR_KNOWN_KINDS = 64 };

/* What is known of types. All zero it is empty. */
struct object_kinds {
	struct {
		remote_addr type_addr;
		enum object_kind kind;
	} known[NR_KNOWN_KINDS];
};

/*
 * The kind of an object by its type, at type_addr. 0; -EFAULT (there is no type), -ESRCH, -EPERM.
 *
 * Source: CPython 3.14 and 3.15 Objects/genobject.c (PyCoroWrapper, PyAsyncGenASend,
 * PyAsyncGenAThrow), Objects/iterobject.c (anextawaitableobject).
 */
int object_kind_get(struct object_kinds *kinds, struct remote_memory *memory,
		    const struct py_offsets *offsets, remote_addr type_addr,
		    enum object_kind *ret_kind);
