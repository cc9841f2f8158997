/* SPDX-License-Identifier: MIT */
#include "sampler/python/asyncio_offsets.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/cleanup.h"

/* The words of the variable. */
enum {
	TASK_SIZE,
	TASK_NAME,
	TASK_AWAITED_BY,
	TASK_IS_TASK,
	TASK_AWAITED_BY_IS_SET,
	TASK_CORO,
	TASK_NODE,
	INTERPRETER_SIZE,
	INTERPRETER_TASKS_HEAD,
	THREAD_SIZE,
	THREAD_RUNNING_LOOP,
	THREAD_RUNNING_TASK,
	THREAD_TASKS_HEAD,
	NR_WORDS,
};

_Static_assert(NR_WORDS * sizeof(uint64_t) == ASYNCIO_DEBUG_BYTES, "all words");

/* The parts of a module are looked through in pieces of so many bytes. */
#define PIECE_BYTES (1u << 20)

/* The variable begins at such an address. */
enum { ALIGN_BYTES = 8 };

enum { POINTER_BYTES = 8, NODE_BYTES = 16 };

/* The words as numbers that no struct exceeds. */
static bool take_words(const uint8_t *bytes, uint32_t words[NR_WORDS])
{
	for (size_t i = 0; i < NR_WORDS; i++) {
		uint64_t word = field_u64(bytes, i * sizeof(word));

		if (word > STRUCT_MAX_BYTES)
			return false;
		words[i] = (uint32_t)word;
	}
	return true;
}

/* Whether a field of so many bytes, aligned as such have to be, lies in [start, size). */
static bool fits(uint32_t offset, uint32_t bytes, uint32_t start, uint32_t size)
{
	const uint32_t align = bytes > POINTER_BYTES ? POINTER_BYTES : bytes;

	return offset >= start && offset % align == 0 && offset <= size && size - offset >= bytes;
}

static bool task_fits(const uint32_t words[NR_WORDS], uint32_t head_bytes)
{
	const uint32_t size = words[TASK_SIZE];

	return size <= TASK_MAX_BYTES && fits(words[TASK_NAME], POINTER_BYTES, head_bytes, size) &&
	       fits(words[TASK_AWAITED_BY], POINTER_BYTES, head_bytes, size) &&
	       fits(words[TASK_IS_TASK], 1, head_bytes, size) &&
	       fits(words[TASK_AWAITED_BY_IS_SET], 1, head_bytes, size) &&
	       fits(words[TASK_CORO], POINTER_BYTES, head_bytes, size) &&
	       fits(words[TASK_NODE], NODE_BYTES, head_bytes, size);
}

static bool states_fit(const uint32_t words[NR_WORDS], const struct py_offsets *offsets)
{
	const uint32_t size = words[THREAD_SIZE];

	if (words[INTERPRETER_SIZE] != offsets->interpreter.size ||
	    !fits(words[INTERPRETER_TASKS_HEAD], NODE_BYTES, 0, words[INTERPRETER_SIZE]))
		return false;
	/* They are behind the part of a thread state that is public. */
	return fits(words[THREAD_RUNNING_LOOP], POINTER_BYTES, offsets->thread.datastack_chunk,
		    size) &&
	       fits(words[THREAD_RUNNING_TASK], POINTER_BYTES, offsets->thread.datastack_chunk,
		    size) &&
	       fits(words[THREAD_TASKS_HEAD], NODE_BYTES, offsets->thread.datastack_chunk, size);
}

bool asyncio_offsets_parse(const uint8_t bytes[ASYNCIO_DEBUG_BYTES],
			   const struct py_offsets *offsets, struct asyncio_offsets *ret_asyncio)
{
	uint32_t words[NR_WORDS];

	if (!take_words(bytes, words) || !states_fit(words, offsets) ||
	    !task_fits(words, offsets->object.ob_type + POINTER_BYTES))
		return false;
	*ret_asyncio = (struct asyncio_offsets){
		.task =
			{
				.size = words[TASK_SIZE],
				.name = words[TASK_NAME],
				.awaited_by = words[TASK_AWAITED_BY],
				.is_task = words[TASK_IS_TASK],
				.awaited_by_is_set = words[TASK_AWAITED_BY_IS_SET],
				.coro = words[TASK_CORO],
				.node = words[TASK_NODE],
			},
		.interpreter = {.tasks_head = words[INTERPRETER_TASKS_HEAD]},
		.thread =
			{
				.running_loop = words[THREAD_RUNNING_LOOP],
				.running_task = words[THREAD_RUNNING_TASK],
				.tasks_head = words[THREAD_TASKS_HEAD],
			},
	};
	return true;
}

static bool find_in_piece(const uint8_t *bytes, size_t nr_bytes, const struct py_offsets *offsets,
			  struct asyncio_offsets *ret_asyncio)
{
	for (size_t at = 0; at + ASYNCIO_DEBUG_BYTES <= nr_bytes; at += ALIGN_BYTES)
		if (field_u64(bytes + at, INTERPRETER_SIZE * sizeof(uint64_t)) ==
			    offsets->interpreter.size &&
		    asyncio_offsets_parse(bytes + at, offsets, ret_asyncio))
			return true;
	return false;
}

/* Look through one mapping; 0, -ENOENT, -ESRCH, -EPERM. What cannot be read clears *is_whole. */
static int find_in_mapping(struct remote_memory *memory, const struct mapping *mapping,
			   const struct py_offsets *offsets, uint8_t *buffer,
			   struct asyncio_offsets *ret_asyncio, bool *is_whole)
{
	/* What begins in one piece may end in the next. */
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
		if (find_in_piece(buffer, range.done_bytes, offsets, ret_asyncio))
			return 0;
		if (range.done_bytes < range.size)
			*is_whole = false;
	}
	return -ENOENT;
}

/* Whether variables of a module may lie there, which its file gave their values. */
static bool may_hold_variables(const struct mapping *mapping)
{
	return mapping->readable && mapping->writable && mapping->inode;
}

int asyncio_offsets_find(struct remote_memory *memory, const struct maps *maps,
			 const struct py_build *build, struct asyncio_offsets *ret_asyncio,
			 bool *ret_whole)
{
	cleanup_free uint8_t *buffer = NULL;
	uint64_t left_bytes = ASYNCIO_SEARCH_MAX_BYTES;
	bool is_whole = true;
	int err = -ENOENT;

	if (!build->traits.generator_states.awaited_words)
		return -ENOTSUP;
	buffer = malloc(PIECE_BYTES);
	if (!buffer)
		return -ENOMEM;
	for (size_t i = 0; err == -ENOENT && i < maps->nr_mappings; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		const uint64_t bytes = mapping->end - mapping->start;

		if (!may_hold_variables(mapping))
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
