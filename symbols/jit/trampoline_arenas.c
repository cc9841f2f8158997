/* SPDX-License-Identifier: MIT */
#include "symbols/jit/trampoline_arenas.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "symbols/jit/perf_trampoline.h"

/* code_arena_t. */
enum {
	CURRENT_OFFSET = 8,
	SIZE_OFFSET = 16,
	SIZE_LEFT_OFFSET = 24,
	CODE_SIZE_OFFSET = 32,
	PREV_OFFSET = 40,
	ARENA_BYTES = 48,
};

/*
 * In trampoline_api of 3.13 and newer, the room left after each trampoline is this far after the
 * word that points to the newest arena: CPython leaves 0x100 bytes for perf's ELF files. In 3.12
 * there is a pointer at this place; its trampolines are not aligned, and the perf map has each at
 * once.
 */
enum { PADDING_OFFSET = 40, MAX_PADDING_BYTES = 4096 };

/* Alignment of trampolines: 16 bytes, or 32 in newer releases such as 3.13.15; and of arenas. */
enum { MIN_ALIGNMENT_BYTES = 16, MAX_ALIGNMENT_BYTES = 32, PAGE_BYTES = 4096 };

struct arena {
	remote_addr start_addr;
	uint64_t used_bytes; /* in use, from start_addr on */
	uint64_t code_bytes; /* length of a trampoline */
	remote_addr prev_addr;
};

/* What _PyRuntime leads to. */
struct newest {
	struct arena arena;
	uint64_t padding_bytes;
};

/* Read the arena at addr. Returns 0; -ENOENT if there is none; or a fatal error. */
static int read_arena(struct remote_memory *memory, const struct maps *maps, remote_addr addr,
		      struct arena *ret_arena)
{
	uint8_t bytes[ARENA_BYTES];
	int err = remote_memory_read(memory, addr, bytes, sizeof(bytes));

	if (err)
		return remote_error_is_fatal(err) ? err : -ENOENT;
	const struct arena arena = {
		.start_addr = field_u64(bytes, 0),
		.used_bytes = field_u64(bytes, CURRENT_OFFSET) - field_u64(bytes, 0),
		.code_bytes = field_u64(bytes, CODE_SIZE_OFFSET),
		.prev_addr = field_u64(bytes, PREV_OFFSET),
	};
	const uint64_t nr_bytes = field_u64(bytes, SIZE_OFFSET);
	const struct mapping *mapping = maps_find(maps, arena.start_addr);

	/* An arena is executable memory that is in no file. */
	if (!mapping || !mapping->executable || mapping->inode || arena.start_addr % PAGE_BYTES ||
	    !nr_bytes || nr_bytes > TRAMPOLINE_ARENAS_MAX_BYTES ||
	    nr_bytes > mapping->end - arena.start_addr || arena.used_bytes > nr_bytes ||
	    field_u64(bytes, SIZE_LEFT_OFFSET) != nr_bytes - arena.used_bytes ||
	    arena.code_bytes > PAGE_BYTES)
		return -ENOENT;
	*ret_arena = arena;
	return 0;
}

/* Find the newest arena. Returns as read_arena(). */
static int find_newest(struct remote_memory *memory, const struct maps *maps,
		       remote_addr runtime_addr, struct newest *ret_newest)
{
	uint8_t runtime[TRAMPOLINE_ARENAS_RUNTIME_BYTES];
	int err = remote_memory_read(memory, runtime_addr, runtime, sizeof(runtime));

	if (err)
		return remote_error_is_fatal(err) ? err : -ENOENT;
	for (size_t i = 0; i + PADDING_OFFSET < sizeof(runtime); i += sizeof(remote_addr)) {
		const remote_addr addr = field_u64(runtime, i);
		const uint64_t padding_bytes = field_u64(runtime, i + PADDING_OFFSET);
		const struct mapping *mapping = maps_find(maps, addr);

		/* PyMem_RawCalloc() allocated the arena's struct. */
		if (!mapping || !mapping->writable || addr % sizeof(addr))
			continue;
		err = read_arena(memory, maps, addr, &ret_newest->arena);
		if (err == -ENOENT)
			continue;
		ret_newest->padding_bytes = padding_bytes <= MAX_PADDING_BYTES ? padding_bytes : 0;
		return err;
	}
	return -ENOENT;
}

/* Add the trampoline at addr unless a code is known there. Returns 0 or -ENOMEM. */
static int add_trampoline(struct jit_map *map, remote_addr addr, size_t nr_bytes, uint64_t from_ns)
{
	const struct jit_code code = {
		.start_addr = addr,
		.nr_bytes = nr_bytes,
		.from_ns = from_ns,
		.to_ns = JIT_MAP_OPEN_NS,
		.name = TRAMPOLINE_ARENAS_NAME,
		.source = JIT_SOURCE_TRAMPOLINE,
	};
	int err = jit_map_find(map, addr, JIT_MAP_NOW_NS)
			  ? 0
			  : jit_map_add(map, &code, strlen(code.name), NULL);

	return err == -ENOMEM ? err : 0;
}

/*
 * The distance between the trampolines of an arena, of which bytes are those in use: the one at
 * which the second trampoline is, or else the shortest that fits. 0: none.
 */
static uint64_t find_step(const struct arena *arena, uint64_t padding_bytes, const uint8_t *bytes)
{
	const uint64_t length = arena->code_bytes + padding_bytes;
	uint64_t shortest_bytes = 0;

	for (uint64_t alignment = MIN_ALIGNMENT_BYTES; alignment <= MAX_ALIGNMENT_BYTES;
	     alignment *= 2) {
		const uint64_t step_bytes = (length + alignment - 1) / alignment * alignment;

		if (!step_bytes || arena->used_bytes % step_bytes)
			continue;
		if (step_bytes < arena->used_bytes &&
		    perf_trampoline_bytes(bytes + step_bytes, arena->used_bytes - step_bytes))
			return step_bytes;
		if (!shortest_bytes)
			shortest_bytes = step_bytes;
	}
	return shortest_bytes;
}

static int add_trampolines(struct remote_memory *memory, const struct arena *arena,
			   uint64_t padding_bytes, struct jit_map *map, uint64_t from_ns)
{
	cleanup_free uint8_t *bytes = malloc(arena->used_bytes + 1);
	uint64_t step_bytes = 0;
	int err;

	if (!bytes)
		return -ENOMEM;
	err = remote_memory_read(memory, arena->start_addr, bytes, arena->used_bytes);
	if (!err)
		step_bytes = find_step(arena, padding_bytes, bytes);
	if (!step_bytes)
		return remote_error_is_fatal(err) ? err : 0;
	for (uint64_t i = 0; !err && i < arena->used_bytes; i += step_bytes) {
		const size_t nr_bytes = perf_trampoline_bytes(bytes + i, arena->used_bytes - i);

		if (nr_bytes)
			err = add_trampoline(map, arena->start_addr + i, nr_bytes, from_ns);
	}
	return err;
}

int trampoline_arenas_read(struct remote_memory *memory, const struct maps *maps,
			   remote_addr runtime_addr, struct jit_map *map, uint64_t from_ns)
{
	struct newest newest;
	struct arena *arena = &newest.arena;
	int err = find_newest(memory, maps, runtime_addr, &newest);

	for (uint32_t i = 0; !err && i < TRAMPOLINE_ARENAS_MAX; i++) {
		err = add_trampolines(memory, arena, newest.padding_bytes, map, from_ns);
		if (!err)
			err = read_arena(memory, maps, arena->prev_addr, arena);
	}
	return err == -ENOENT ? 0 : err;
}
