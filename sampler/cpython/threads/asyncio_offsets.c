/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/threads/asyncio_offsets.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/cleanup.h"

/* Modules are searched in pieces of this size. */
#define PIECE_BYTES (1u << 20)

/* The first version that has the variable: 3.14. */
enum { FIRST_VERSION = 0x030e };

/* The variable has this alignment. */
enum { ALIGN_BYTES = 8 };

/* The width of each field in bytes; 0 for the size of the struct whose fields follow. */
static const uint8_t widths[NR_ASYNCIO_WORDS] = {
	0, 8,  8, 1,  1, 8, 16, /* task; the last is a node */
	0, 16,			/* interpreter state */
	0, 8,  8, 16,		/* thread state */
};

/* Whether a field of that many bytes is naturally aligned and inside [start, size). */
static bool fits(uint32_t offset, uint32_t bytes, uint32_t start, uint32_t size)
{
	const uint32_t align = bytes > ALIGN_BYTES ? ALIGN_BYTES : bytes;

	return offset >= start && offset % align == 0 && offset <= size && size - offset >= bytes;
}

bool asyncio_offsets_parse(const uint8_t bytes[ASYNCIO_DEBUG_BYTES],
			   const struct py_offsets *offsets, struct asyncio_offsets *ret_asyncio)
{
	/* After an object's type; anywhere; after the public part of a thread state. */
	const uint32_t starts[] = {offsets->object.ob_type + (uint32_t)sizeof(remote_addr), 0,
				   offsets->thread.datastack_chunk};
	struct asyncio_offsets asyncio;
	uint32_t *numbers = (uint32_t *)&asyncio;
	size_t nr_structs = 0;
	uint32_t size = 0;

	for (size_t i = 0; i < NR_ASYNCIO_WORDS; i++) {
		const uint64_t word = field_u64(bytes, i * sizeof(word));

		if (word > STRUCT_MAX_BYTES)
			return false;
		numbers[i] = (uint32_t)word;
		if (!widths[i]) {
			size = numbers[i];
			nr_structs++;
		} else if (!fits(numbers[i], widths[i], starts[nr_structs - 1], size)) {
			return false;
		}
	}
	if (asyncio.task.size > TASK_MAX_BYTES ||
	    asyncio.interpreter.size != offsets->interpreter.size)
		return false;
	*ret_asyncio = asyncio;
	return true;
}

/*
 * Search one mapping. Returns 0, -ENOENT, -ESRCH or -EPERM. Clears *is_whole if a part cannot be
 * read.
 */
static int find_in_mapping(struct remote_memory *memory, const struct mapping *mapping,
			   const struct py_offsets *offsets, uint8_t *buffer,
			   struct asyncio_offsets *ret_asyncio, bool *is_whole)
{
	/* Pieces overlap: the variable may begin in one and end in the next. */
	for (remote_addr addr = mapping->start; addr < mapping->end;
	     addr += PIECE_BYTES - ASYNCIO_DEBUG_BYTES) {
		const uint64_t left_bytes = mapping->end - addr;
		struct remote_range range = {
			.addr = addr,
			.buffer = buffer,
			.size = left_bytes < PIECE_BYTES ? left_bytes : PIECE_BYTES,
		};
		int err = remote_memory_read_ranges(memory, &range, 1);

		if (err)
			return err;
		for (size_t at = 0; at + ASYNCIO_DEBUG_BYTES <= range.done_bytes; at += ALIGN_BYTES)
			if (asyncio_offsets_parse(buffer + at, offsets, ret_asyncio))
				return 0;
		if (range.done_bytes < range.size)
			*is_whole = false;
	}
	return -ENOENT;
}

int asyncio_offsets_find(struct remote_memory *memory, const struct maps *maps,
			 const struct py_build *build, struct asyncio_offsets *ret_asyncio,
			 bool *ret_whole)
{
	cleanup_free uint8_t *buffer = NULL;
	uint64_t left_bytes = ASYNCIO_SEARCH_MAX_BYTES;
	bool is_whole = true;
	int err = -ENOENT;

	if (build->version_hex >> 16 < FIRST_VERSION ||
	    !build->traits.generator_states.awaited_words)
		return -ENOTSUP;
	buffer = malloc(PIECE_BYTES);
	if (!buffer)
		return -ENOMEM;
	for (size_t i = 0; err == -ENOENT && i < maps->nr_mappings; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		const uint64_t bytes = mapping->end - mapping->start;

		/* Only such mappings hold initialised variables of a module. */
		if (!mapping->readable || !mapping->writable || !mapping->inode)
			continue;
		if (bytes > ASYNCIO_MAPPING_MAX_BYTES || bytes > left_bytes) {
			is_whole = false;
			continue;
		}
		left_bytes -= bytes;
		err = find_in_mapping(memory, mapping, &build->offsets, buffer, ret_asyncio,
				      &is_whole);
	}
	*ret_whole = is_whole;
	return err;
}
