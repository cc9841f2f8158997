/* SPDX-License-Identifier: MIT */
/*
 * Finding CPython's list of interpreters among a module's variables by its structure
 * alone, where neither a symbol, nor a section, nor debug offsets lead to it: stripped
 * programs with a CPython before 3.13 in them.
 */
#pragma once

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "sampler/cpython/find/modules.h"
#include "sampler/cpython/layout/offsets.h"

/*
 * Words that look right at first sight are followed to the end so often, then no more; a
 * list without an end leaves an eighth of the tries that were left.
 */
#define INTERPRETER_SCAN_MAX_TRIES 64

/*
 * Find the head of the list in the variables of module: a word that points to an
 * interpreter state whose thread states all name it. Where the runtime is a struct, the
 * word behind it must be its interpreters.main, one of the list and with the id 0. A word
 * that leads to a thread with a stack goes before one that does not, and the lowest of
 * them is taken; where there is no struct (3.6: runtime.size ends with the head), that
 * from which most interpreters are reached, the lowest of those. So in a 3.6 without
 * symbols interpreters that begin later may be missed.
 *
 * ret_runtime_addr is what build's offsets count from. 0; -ENOENT (none, or nothing runs
 * in it now), -E2BIG (memory has a budget, and that was used up before
 * one was found), -ENOMEM, -ESRCH, -EPERM.
 *
 * Source: struct pyinterpreters in Include/internal/pycore_runtime.h of 3.7 to 3.12;
 * interp_head in Python/pystate.c of 3.6.
 */
int interpreter_scan(struct remote_memory *memory, const struct maps *maps,
		     const struct module *module, const struct py_build *build,
		     remote_addr *ret_runtime_addr);
