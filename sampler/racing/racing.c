/* SPDX-License-Identifier: MIT */
#include "sampler/racing/racing.h"

#include <errno.h>
#include <stdlib.h>

#include "sampler/cpython/frames/frames.h"

/* How much a thread may push between the read of the chunk's size and the copy. */
enum { PUSHED_BYTES = 1024 };

struct racing_walk {
	struct frame_walk walk;
	struct racing *racing;
	const struct thread_ref *thread;
	remote_addr top_addr; /* end of the innermost frame */
	remote_addr chunk_addr;
	remote_addr below_addr; /* the last frame that was found */
	bool below_calls_none;	/* so a frame above it can only have been called by C */
};

void racing_done(struct racing *racing)
{
	free(racing->bytes);
	*racing = (struct racing){0};
}

bool racing_supports(const struct py_build *build)
{
	return !build->free_threaded && !build->traits.frames_on_heap;
}

/* Copying. */

/* Room for a chunk of size bytes. NULL: there is none. */
static struct racing_chunk *reserve(struct racing *racing, uint64_t size)
{
	struct racing_chunk *chunk = &racing->chunks[racing->nr_chunks];

	if (size > RACING_MAX_BYTES - racing->nr_bytes || racing->nr_chunks == RACING_MAX_CHUNKS)
		return NULL;
	*chunk = (struct racing_chunk){.bytes = racing->bytes + racing->nr_bytes};
	racing->nr_bytes += (uint32_t)size;
	racing->nr_chunks++;
	return chunk;
}

/* Evaluate the thread state, of which thread_head_bytes() were read. */
static int parse_state(struct racing_walk *self)
{
	const uint8_t *state = self->racing->state;
	const struct py_offsets *offsets = &self->walk.build->offsets;

	if (!thread_ref_matches(self->thread, offsets, state))
		return -ENOENT;
	self->chunk_addr = field_u64(state, offsets->thread.datastack_chunk);
	self->top_addr = field_u64(state, offsets->thread.datastack_top);
	if (self->chunk_addr % sizeof(uint64_t) || self->top_addr % sizeof(uint64_t) ||
	    (self->chunk_addr && (self->top_addr < self->chunk_addr + offsets->chunk.data)))
		return walk_lost(&self->walk, LOSS_MOVED);
	return 0;
}

/* Copy the thread state again, followed at once by the newest chunk. */
static int copy_newest(struct racing_walk *self)
{
	const size_t head_bytes = thread_head_bytes(&self->walk.build->offsets);
	const remote_addr addr = self->chunk_addr;
	struct racing_chunk *chunk = reserve(self->racing, self->top_addr - addr + PUSHED_BYTES);
	int err;

	if (!chunk)
		return walk_lost(&self->walk, LOSS_TOO_DEEP);
	struct remote_range ranges[] = {
		{.addr = self->thread->addr, .buffer = self->racing->state, .size = head_bytes},
		{.addr = addr, .buffer = chunk->bytes, .size = self->racing->nr_bytes},
	};

	err = remote_memory_read_ranges(self->walk.codes->memory, ranges, 2);
	if (err)
		return err;
	if (ranges[0].done_bytes < head_bytes)
		return -ENOENT;
	err = parse_state(self);
	if (err)
		return err;
	if (self->chunk_addr != addr || self->top_addr - addr > ranges[1].done_bytes)
		return walk_lost(&self->walk, LOSS_MOVED);
	chunk->addr = addr;
	chunk->end_addr = self->top_addr;
	return 0;
}

/* Copy the used part of the chunk at addr, which is not the newest. */
static int copy_older(struct racing_walk *self, remote_addr addr)
{
	const struct py_offsets *offsets = &self->walk.build->offsets;
	struct remote_memory *memory = self->walk.codes->memory;
	struct racing_chunk *chunk;
	uint64_t nr_words;
	int err = remote_memory_read_u64(memory, addr + offsets->chunk.top, &nr_words);

	if (err)
		return err;
	chunk = nr_words > RACING_MAX_BYTES / sizeof(uint64_t)
			? NULL
			: reserve(self->racing, offsets->chunk.data + nr_words * sizeof(uint64_t));
	if (!chunk)
		return walk_lost(&self->walk, LOSS_TOO_DEEP);
	chunk->addr = addr;
	chunk->end_addr = addr + offsets->chunk.data + nr_words * sizeof(uint64_t);
	return remote_memory_read(memory, addr, chunk->bytes, chunk->end_addr - addr);
}

/* Copy all chunks, newest first, since that one changes. */
static int copy_chunks(struct racing_walk *self)
{
	const struct py_offsets *offsets = &self->walk.build->offsets;
	int err = remote_memory_read(self->walk.codes->memory, self->thread->addr,
				     self->racing->state, thread_head_bytes(offsets));
	remote_addr addr;

	if (err)
		return err == -EFAULT ? -ENOENT : err;
	err = parse_state(self);
	if (!err && self->chunk_addr)
		err = copy_newest(self);
	for (addr = self->chunk_addr; !err && addr;) {
		struct racing_chunk *last = &self->racing->chunks[self->racing->nr_chunks - 1];

		addr = field_u64(last->bytes, offsets->chunk.previous);
		last->is_oldest = !addr;
		if (addr)
			err = copy_older(self, addr);
	}
	return err == -EFAULT ? walk_lost(&self->walk, LOSS_MOVED) : err;
}

/* Walking. */

/* Append the frames of a chunk. *ret_ended: it has a free place, so that nothing is above. */
static int walk_chunk(struct racing_walk *self, const struct racing_chunk *chunk, bool *ret_ended)
{
	const struct py_offsets *offsets = &self->walk.build->offsets;
	const uint8_t *bytes = chunk->bytes;
	const size_t head_bytes = frame_head_bytes(offsets);
	struct frame_list *list = self->walk.list;
	/* push_chunk() leaves the first word of the oldest chunk unused. */
	remote_addr addr =
		chunk->addr + offsets->chunk.data + (chunk->is_oldest ? sizeof(uint64_t) : 0);

	while (addr < chunk->end_addr) {
		const struct walked_frame *below;
		struct frame_words words;
		int err;

		if (chunk->end_addr - addr < head_bytes)
			return walk_lost(&self->walk, LOSS_MOVED);
		words = frame_words(offsets, bytes + (addr - chunk->addr));
		/*
		 * Detect the remains of a popped frame. Since 3.14 such a frame has lost its
		 * executable. Before, a frame above one that executes, has not begun or is being
		 * destroyed was popped, unless C called it: then its caller is an entry frame, or
		 * in 3.11 the frame itself is marked as an entry.
		 */
		*ret_ended = !words.executable ||
			     (self->below_calls_none && words.previous == self->below_addr &&
			      !words.is_entry);
		if (*ret_ended)
			return 0;
		err = words.owner == OWNED_BY_THREAD ? walk_frame(&self->walk, addr, &words)
						     : -ENOENT;
		if (err)
			return err == -ENOENT ? walk_lost(&self->walk, LOSS_MOVED) : err;
		below = &list->frames[list->nr_frames - 1];
		self->below_addr = addr;
		self->below_calls_none =
			below->hidden ||
			(offsets->frame.stacktop != OFFSET_ABSENT && words.stacktop == -1);
		addr += below->code->frame_size_bytes;
	}
	if (addr != chunk->end_addr)
		return walk_lost(&self->walk, LOSS_MOVED);
	return 0;
}

int racing_walk(struct racing *racing, struct code_cache *codes, const struct code_clock *clock,
		const struct thread_ref *thread, struct frame_list *list,
		enum sample_loss *ret_loss)
{
	struct racing_walk self = {
		.walk = {.build = codes->build,
			 .codes = codes,
			 .clock = clock,
			 .list = list,
			 .loss = LOSS_MOVED},
		.racing = racing,
		.thread = thread,
	};
	bool ended = false;
	int err;

	if (!racing->bytes)
		racing->bytes = malloc(RACING_MAX_BYTES);
	if (!racing->bytes)
		return -ENOMEM;
	racing->nr_bytes = 0;
	racing->nr_chunks = 0;
	frame_list_begin(list, 0);
	err = copy_chunks(&self);
	for (uint32_t i = racing->nr_chunks; !err && !ended && i-- > 0;)
		err = walk_chunk(&self, &racing->chunks[i], &ended);
	*ret_loss = self.walk.loss;
	return err;
}
