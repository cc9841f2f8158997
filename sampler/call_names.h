/* SPDX-License-Identifier: MIT */
/*
 * Whether a function's code names another one, and so may call it: by the name of a global, of an
 * attribute or of a variable. It tells frames that call each other from those that have merely
 * been in the same place, one after the other.
 *
 * Names are interned: the same name is the same object. Source: CPython Objects/codeobject.c
 * (intern_strings, _PyCode_Validate); the fields are those of Include/cpython/code.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sampler/python/code.h"

/* Pairs that are remembered, each where its hash says. */
enum { CALL_NAMES_KNOWN = 1024 };

/* Names of one code object that are looked at; <module> of a large file has more. */
enum { CALL_NAMES_MAX = 1024 };

/* All zero nothing is known. */
struct call_names {
	struct call_pair {
		remote_addr caller_addr, callee_addr;
		uint32_t caller_loads, callee_loads; /* nr_loads of both */
		bool is_named;
	} known[CALL_NAMES_KNOWN];
};

/*
 * Whether caller's code names callee, or callee is called without a name: lambdas, and methods like
 * __init__(). Both are entries of codes, of CPython 3.11 or later, and not foreign. 0; -ESRCH,
 * -EPERM.
 */
int call_names_has(struct call_names *names, const struct code_cache *codes,
		   const struct code *caller, const struct code *callee, bool *ret_has);
