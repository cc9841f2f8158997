/* SPDX-License-Identifier: MIT */
/*
 * Supplies the names of CPython's own types to a memory that lacks them. A core file has these
 * types, which are variables, but their names are constants of a file that may be missing. What the
 * interpreter's modules call a type takes the place of its name.
 *
 * Source: PyTypeObject.tp_name of CPython's Objects, and Lib/types.py, for the names that differ
 * from what a module calls the type.
 */
#pragma once

#include <stddef.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"

/* Longer names stay missing; the longest needed is builtin_function_or_method. */
#define TYPE_NAME_MAX_BYTES 48

/* Further names stay missing; CPython has 200 types in builtins and types. */
#define TYPE_NAMES_MAX 512

struct type_name {
	remote_addr addr; /* of the name in the target */
	char text[TYPE_NAME_MAX_BYTES];
};

struct type_names {
	struct remote_memory memory;  /* for callers: inner, completed by the names */
	struct remote_memory *inner;  /* borrowed for as long as memory is read */
	const struct py_build *build; /* borrowed while names are collected */
	struct type_name *names;      /* owned */
	size_t nr_names;
};

/*
 * Collect the names that inner lacks, from the interpreter at runtime_addr; fewer if its lists or
 * modules are damaged. Bytes after a name read as zeros. Returns 0, -ENOMEM, -ESRCH or -EPERM.
 * type_names_done() frees the names; it accepts a zeroed struct.
 */
int type_names_init(struct type_names *names, struct remote_memory *inner,
		    const struct py_build *build, remote_addr runtime_addr);
void type_names_done(struct type_names *names);
