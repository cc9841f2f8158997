/* SPDX-License-Identifier: MIT */
/* Which instruction of a code object an address is: threads may have copies of them. */
#pragma once

#include "sampler/python/code.h"

/*
 * The address in the code object's own bytecode that instr_addr stands for: itself, or
 * where the same instruction is if it lies in a thread's copy (free-threaded builds, 3.14
 * and newer). 0; -ENOENT (it lies in neither), -E2BIG (no room for so many copies),
 * -ENOMEM, -ESRCH, -EPERM. The copies are read again when threads came or went, and at
 * most once a tick for an address that lies in none.
 */
int code_place(struct code_cache *cache, struct code *code, const struct code_clock *clock,
	       remote_addr instr_addr, remote_addr *ret_addr);

/*
 * The same by what code_place() has read. False if the address lies nowhere by that: then
 * *ret_addr stays.
 */
bool code_known_place(const struct code *code, remote_addr instr_addr, remote_addr *ret_addr);
