/* SPDX-License-Identifier: MIT */
#include "sampler/python/stack_outline.h"

#include <errno.h>
#include <stdlib.h>

#include "procmem/array.h"
#include "sampler/python/circle.h"
#include "sampler/python/code_place.h"
#include "sampler/python/frame_walk.h"

/*
 * More chunks than this are taken for damage: 16 KiB each, it is 256 MiB of stack. No stack is
 * larger than STACK_MAX_BYTES: one of MAX_FRAMES has about 100 MB.
 */
#define MAX_CHUNKS	16384
#define STACK_MAX_BYTES (512u << 20)

/* A chunk: the part of it that is used, [start, end). */
struct chunk {
	remote_addr start;
	remote_addr end;
};

struct chunk_list {
	struct chunk *chunks; /* newest first; owned */
	uint32_t nr_chunks, max_chunks;
	bool is_whole; /* down to the oldest */
};

/* What is needed to tell frames. */
struct outline_walk {
	struct code_cache *codes;
	const struct code_clock *clock;
	struct stack_outline *outline;
	uint32_t max_frames;
	size_t nr_skips_left;
};

static bool is_fatal(int err)
{
	return err == -ENOMEM || err == -ESRCH || err == -EPERM;
}

/* Read the chunk at addr, whose frames end at top_addr (0: where it says itself). */
static int read_chunk(struct code_cache *codes, remote_addr addr, remote_addr top_addr,
		      struct chunk *ret_chunk, remote_addr *ret_previous_addr)
{
	const struct py_offsets *offsets = &codes->build->offsets;
	uint8_t header[40];
	uint64_t size, top;
	int err;

	if (addr % sizeof(uint64_t))
		return -EBADMSG;
	err = remote_memory_read(codes->memory, addr, header, offsets->chunk.data);
	if (err)
		return err;
	size = field_u64(header, offsets->chunk.size);
	top = field_u64(header, offsets->chunk.top);
	if (size > STACK_MAX_BYTES || __builtin_mul_overflow(top, sizeof(uint64_t), &top) ||
	    top > size)
		return -EBADMSG;
	if (!top_addr)
		top_addr = addr + offsets->chunk.data + top;
	if (top_addr < addr + offsets->chunk.data || top_addr > addr + size)
		return -EBADMSG;
	*ret_previous_addr = field_u64(header, offsets->chunk.previous);
	/* push_chunk() leaves the first word of the oldest chunk unused. */
	*ret_chunk = (struct chunk){
		.start = addr + offsets->chunk.data + (*ret_previous_addr ? 0 : sizeof(uint64_t)),
		.end = top_addr,
	};
	return 0;
}

/* List the chunks from the newest down, as far as they can be read. 0 or what is_fatal(). */
static int list_chunks(struct code_cache *codes, const struct stack_ends *ends,
		       struct chunk_list *list)
{
	remote_addr top_addr = ends->datastack_top_addr;
	remote_addr addr = ends->newest_chunk_addr;
	struct circle circle = {0};
	struct chunk *chunks;
	int err;

	while (addr && !circle_closes(&circle, addr) && list->nr_chunks < MAX_CHUNKS) {
		chunks = array_reserve(list->chunks, list->nr_chunks + 1, &list->max_chunks,
				       sizeof(*chunks));
		if (!chunks)
			return -ENOMEM;
		list->chunks = chunks;
		err = read_chunk(codes, addr, top_addr, &chunks[list->nr_chunks], &addr);
		if (err)
			return is_fatal(err) ? err : 0;
		list->nr_chunks++;
		top_addr = 0;
	}
	list->is_whole = !addr && list->nr_chunks;
	return 0;
}

/* The size of the frame at addr. 0, -EBADMSG (none is there), -EFAULT, … */
static int read_frame(const struct outline_walk *walk, remote_addr addr, uint32_t *ret_size_bytes)
{
	const struct py_offsets *offsets = &walk->codes->build->offsets;
	uint8_t bytes[FRAME_MAX_BYTES];
	struct frame_words words;
	remote_addr place_addr;
	struct code *code;
	int err = remote_memory_read(walk->codes->memory, addr, bytes, frame_head_bytes(offsets));

	if (err)
		return err;
	words = frame_words(offsets, bytes);
	if (!words.executable || words.owner != OWNED_BY_THREAD)
		return -EBADMSG;
	err = code_cache_get(walk->codes, words.executable, walk->clock, &code);
	if (!err)
		err = code_place(walk->codes, code, walk->clock, words.instr_ptr, &place_addr);
	if (!err)
		*ret_size_bytes = code->frame_size_bytes;
	return err;
}

static int add_frame(struct outline_walk *walk, remote_addr addr)
{
	struct stack_outline *outline = walk->outline;
	remote_addr *addrs = array_reserve(outline->frame_addrs, outline->nr_frames + 1,
					   &walk->max_frames, sizeof(*addrs));

	if (!addrs)
		return -ENOMEM;
	outline->frame_addrs = addrs;
	addrs[outline->nr_frames++] = addr;
	return 0;
}

/* Find the frames of a chunk, and go on behind what is none. 0 or what is_fatal(). */
static int walk_chunk(struct outline_walk *walk, const struct chunk *chunk)
{
	remote_addr addr = chunk->start;

	while (addr < chunk->end && walk->outline->nr_frames < MAX_FRAMES) {
		uint32_t size_bytes = 0;
		int err = read_frame(walk, addr, &size_bytes);

		if (!err && size_bytes && size_bytes <= chunk->end - addr) {
			err = add_frame(walk, addr);
			addr += size_bytes;
		} else if (!is_fatal(err)) {
			walk->outline->has_gaps = true;
			if (!walk->nr_skips_left)
				return 0;
			walk->nr_skips_left--;
			addr += sizeof(uint64_t);
			err = 0;
		}
		if (err)
			return err;
	}
	return 0;
}

remote_addr stack_outline_bottom(struct code_cache *codes, const struct stack_ends *ends)
{
	struct chunk_list list = {0};
	remote_addr bottom_addr = 0;

	if (list_chunks(codes, ends, &list) == 0 && list.is_whole)
		bottom_addr = list.chunks[list.nr_chunks - 1].start;
	free(list.chunks);
	return bottom_addr;
}

int stack_outline_learn(struct code_cache *codes, const struct code_clock *clock,
			const struct stack_ends *ends, struct stack_outline *ret_outline)
{
	struct stack_outline outline = {0};
	struct outline_walk walk = {.codes = codes,
				    .clock = clock,
				    .outline = &outline,
				    .nr_skips_left = OUTLINE_MAX_SKIPS};
	struct chunk_list list = {0};
	int err = list_chunks(codes, ends, &list);

	outline.has_gaps = !list.is_whole;
	while (!err && list.nr_chunks > 0)
		err = walk_chunk(&walk, &list.chunks[--list.nr_chunks]);
	free(list.chunks);
	if (err) {
		stack_outline_done(&outline);
		return err;
	}
	*ret_outline = outline;
	return 0;
}

void stack_outline_done(struct stack_outline *outline)
{
	free(outline->frame_addrs);
	*outline = (struct stack_outline){0};
}
