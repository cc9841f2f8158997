/* SPDX-License-Identifier: MIT */
/*
 * In free-threaded builds since 3.14 each thread but the first to run a code object has a copy of its
 * bytecode for itself, and a frame's instr_ptr lies in that. A copy is as long as the bytecode behind
 * the code object and has the same instructions at the same places (specialised on their own), so an
 * address in it stands for one in the code object, and tables are about that.
 *
 * Source: CPython 3.14 and 3.15 Include/cpython/code.h (_PyCodeArray), Objects/codeobject.c
 * (create_tlbc_lock_held).
 */
#include "sampler/cpython/code/code.h"

#include <errno.h>
#include <stdlib.h>

#include "sampler/cpython/layout/executable_offsets.h"

static int compare_addrs(const void *a, const void *b)
{
	remote_addr x = *(const remote_addr *)a;
	remote_addr y = *(const remote_addr *)b;

	return (x > y) - (x < y);
}

/*
 * Read where the copies lie. Those that were known are forgotten. 0; -EBADMSG (there is no array that
 * could be), -EFAULT, -ENOMEM, -ESRCH, -EPERM.
 */
static int read_copies(struct remote_memory *memory, const struct py_build *build,
		       remote_addr code_addr, struct code_copies *copies)
{
	remote_addr array_addr;
	uint64_t nr = 0;
	int err;

	free(copies->starts);
	*copies = (struct code_copies){0};
	err = remote_memory_read_u64(memory, code_addr + build->tlbc.code_array, &array_addr);
	if (!err && array_addr % sizeof(uint64_t))
		err = -EBADMSG;
	if (!err)
		err = remote_memory_read_u64(memory, array_addr + CODE_ARRAY_SIZE, &nr);
	if (!err && (!nr || nr > INT32_MAX))
		err = -EBADMSG;
	if (err)
		return err;
	if (nr > MAX_CODE_COPIES)
		nr = MAX_CODE_COPIES;
	copies->starts = malloc(nr * sizeof(*copies->starts));
	if (!copies->starts)
		return -ENOMEM;
	err = remote_memory_read(memory, array_addr + CODE_ARRAY_ENTRIES, copies->starts,
				 nr * sizeof(*copies->starts));
	copies->nr = err ? 0 : (size_t)nr;
	if (!err)
		qsort(copies->starts, copies->nr, sizeof(*copies->starts), compare_addrs);
	return err;
}

/* Whether an address is in the bytecode behind the object; 3.11's first one is a unit before. */
static bool code_holds(const struct code *code, remote_addr instr_addr)
{
	return instr_addr + 2 >= code->code_start_addr && instr_addr < code->code_end_addr;
}

/* Where the same instruction is as that at instr_addr, if that is in a copy. */
static bool find_in_copies(const struct code *code, remote_addr instr_addr, remote_addr *ret_addr)
{
	const struct code_copies *copies = &code->copies;
	size_t low = 0;
	size_t high = copies->nr;
	uint64_t offset;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (copies->starts[middle] <= instr_addr)
			low = middle + 1;
		else
			high = middle;
	}
	/* Entries of threads that have none are NULL. */
	if (!low || !copies->starts[low - 1])
		return false;
	offset = instr_addr - copies->starts[low - 1];
	if (offset >= code->code_end_addr - code->code_start_addr)
		return false;
	*ret_addr = code->code_start_addr + offset;
	return true;
}

/* Read where the copies are, once a tick, and count what that takes. 0, -ENOENT, -E2BIG, … */
static int renew_copies(struct code_cache *cache, struct code *code, const struct code_clock *clock)
{
	size_t before_bytes = code->copies.nr * sizeof(remote_addr);
	size_t bytes;
	int err;

	if (code->copies.tick == clock->tick)
		return -ENOENT;
	err = read_copies(cache->memory, cache->build, code->addr, &code->copies);
	bytes = code->copies.nr * sizeof(remote_addr);
	code->copies.tick = clock->tick;
	code->copies.generation = clock->tlbc_generation;
	code->table_bytes -= before_bytes;
	cache->table_bytes -= before_bytes;
	if (bytes > CODE_TABLES_MAX_BYTES - cache->table_bytes) {
		free(code->copies.starts);
		code->copies = (struct code_copies){0};
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
	err = renew_copies(cache, code, clock);
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

static struct linetable table_of(const struct code_cache *cache, const struct code *code)
{
	return (struct linetable){
		.format = cache->build->traits.linetable_format,
		.bytes = code->linetable,
		.nr_bytes = code->linetable_bytes,
		.first_line = code->function->first_line,
	};
}

/* The position of an instruction in the code's own bytecode. */
static struct linetable_position find_position(const struct code_cache *cache,
					       const struct code *code, remote_addr instr_addr)
{
	const struct linetable table = table_of(cache, code);

	if (!code->linetable)
		return (struct linetable_position){.column = -1, .end_line = -1, .end_column = -1};
	return linetable_position(&table, (int32_t)(instr_addr - code->code_start_addr));
}

int32_t code_line(const struct code_cache *cache, struct code *code, remote_addr instr_addr)
{
	size_t unit;

	if (code->foreign)
		return code->function->first_line;
	if (!code_known_place(code, instr_addr, &instr_addr))
		return 0;
	unit = (instr_addr - code->code_start_addr) / 2;
	if (instr_addr < code->code_start_addr)
		return find_position(cache, code, instr_addr).line;
	if (unit >= code->nr_lines)
		return 0;
	if (!code->lines) {
		const struct linetable table = table_of(cache, code);

		code->lines = malloc(code->nr_lines * sizeof(*code->lines));
		if (!code->lines)
			return find_position(cache, code, instr_addr).line;
		linetable_lines(&table, code->lines, code->nr_lines);
	}
	return code->lines[unit];
}

struct linetable_position code_position(const struct code_cache *cache, const struct code *code,
					remote_addr instr_addr)
{
	const struct linetable_position unknown = {.column = -1, .end_line = -1, .end_column = -1};

	if (code->foreign || !code_known_place(code, instr_addr, &instr_addr))
		return unknown;
	return find_position(cache, code, instr_addr);
}
