/* SPDX-License-Identifier: MIT */
#include "sampler/python/code_place.h"

#include <errno.h>

/* Whether an address is in the bytecode behind the object; 3.11's first one is a unit before. */
static bool code_holds(const struct code *code, remote_addr instr_addr)
{
	return instr_addr + 2 >= code->code_start_addr && instr_addr < code->code_end_addr;
}

static bool find_in_copies(const struct code *code, remote_addr instr_addr, remote_addr *ret_addr)
{
	uint64_t offset;

	if (!code_copies_find(&code->copies, code->code_end_addr - code->code_start_addr,
			      instr_addr, &offset))
		return false;
	*ret_addr = code->code_start_addr + offset;
	return true;
}

/* Read where the copies are, once a tick, and count what that takes. 0, -ENOENT, -E2BIG, … */
static int read_copies(struct code_cache *cache, struct code *code, const struct code_clock *clock)
{
	size_t before_bytes = code->copies.nr * sizeof(remote_addr);
	size_t bytes;
	int err;

	if (code->copies.tick == clock->tick)
		return -ENOENT;
	err = code_copies_read(&code->copies, cache->memory, cache->build, code->addr);
	bytes = code->copies.nr * sizeof(remote_addr);
	code->copies.tick = clock->tick;
	code->copies.generation = clock->tlbc_generation;
	code->table_bytes -= before_bytes;
	cache->table_bytes -= before_bytes;
	if (bytes > CODE_TABLES_MAX_BYTES - cache->table_bytes) {
		code_copies_done(&code->copies);
		cache->tables_full = true;
		return -E2BIG;
	}
	code->table_bytes += bytes;
	cache->table_bytes += bytes;
	return err == -EBADMSG || err == -EFAULT ? -ENOENT : err;
}

int code_place(struct code_cache *cache, struct code *code, const struct code_clock *clock,
	       remote_addr instr_addr, remote_addr *ret_addr)
{
	int err;

	if (code_holds(code, instr_addr)) {
		*ret_addr = instr_addr;
		return 0;
	}
	if (!cache->build->tlbc.code_array)
		return -ENOENT;
	if (code->copies.generation == clock->tlbc_generation &&
	    find_in_copies(code, instr_addr, ret_addr))
		return 0;
	err = read_copies(cache, code, clock);
	if (err)
		return err;
	return find_in_copies(code, instr_addr, ret_addr) ? 0 : -ENOENT;
}

bool code_known_place(const struct code *code, remote_addr instr_addr, remote_addr *ret_addr)
{
	if (!code_holds(code, instr_addr))
		return find_in_copies(code, instr_addr, ret_addr);
	*ret_addr = instr_addr;
	return true;
}
