/* SPDX-License-Identifier: MIT */
/*
 * Finds CPython's list of interpreters among a module's variables by its structure alone. This is
 * for stripped programs with a CPython before 3.13, where no symbol, section or debug offsets lead
 * to the list.
 */
#pragma once

#include "procmem/maps.h"
#include "procmem/memory.h"
#include "sampler/cpython/find/elf_modules.h"
#include "sampler/cpython/layout/offsets.h"

/*
 * Number of words whose lists are followed to their ends. A list without an end costs seven eighths
 * of the tries that are left.
 */
#define INTERPRETER_SCAN_MAX_TRIES 64

/*
 * Find the head of the list in the variables of module: a word that points to an interpreter state
 * whose thread states all name it. If the runtime is a struct, the word after the head must be its
 * interpreters.main, which is in the list and has id 0. A word that leads to a thread with a stack
 * is preferred, then the lowest address. In 3.6 the runtime is no struct (runtime.size ends with
 * the head): there the word from which most interpreters are reached is preferred, then the lowest
 * address. So in a 3.6 without symbols, interpreters that begin later may be missed.
 *
 * *ret_runtime_addr is the address that build's offsets are relative to. Returns 0; -ENOENT (there
 * is none, or no interpreter runs in it now); -E2BIG (the budget of memory was used up before one
 * was found); -ENOMEM, -ESRCH, -EPERM.
 *
 * Source: struct pyinterpreters in Include/internal/pycore_runtime.h of 3.7 to 3.12; interp_head in
 * Python/pystate.c of 3.6.
 */
int interpreter_scan(struct remote_memory *memory, const struct maps *maps,
		     const struct elf_module *module, const struct py_build *build,
		     remote_addr *ret_runtime_addr);
