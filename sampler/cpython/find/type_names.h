/* SPDX-License-Identifier: MIT */
/*
 * The names of CPython's own types, for a memory that lacks them: a core file has these types,
 * which are variables, but their names are constants of a file that may not be there. What
 * the interpreter's modules call a type is put in the place of its name.
 *
 * Source: PyTypeObject.tp_name of CPython's Objects, and Lib/types.py, for what differs from
 * what a module calls it.
 */
#pragma once

#include <stddef.h>

#include "procmem/memory.h"
#include "sampler/cpython/layout/offsets.h"

/* The longest is builtin_function_or_method; what is longer stays missing. */
#define TYPE_NAME_MAX_BYTES 48

/* CPython has 200 types in builtins and types; what comes on top stays missing. */
#define TYPE_NAMES_MAX 512

struct type_name {
	remote_addr addr; /* where the target has it */
	char text[TYPE_NAME_MAX_BYTES];
};

struct type_names {
	struct remote_memory memory;  /* what is handed on: that of inner, and the names */
	struct remote_memory *inner;  /* borrowed as long as this is read */
	const struct py_build *build; /* borrowed while they are collected */
	struct type_name *names;      /* owned */
	size_t nr_names;
};

/*
 * Collect the names that inner lacks, of the interpreter at runtime_addr. Where lists or
 * modules are damaged there are fewer. What lies behind a name reads as zeros. 0; -ENOMEM,
 * -ESRCH, -EPERM. type_names_done() frees the names; it accepts one that is zero.
 */
int type_names_init(struct type_names *names, struct remote_memory *inner,
		    const struct py_build *build, remote_addr runtime_addr);
void type_names_done(struct type_names *names);
