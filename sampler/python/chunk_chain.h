/* SPDX-License-Identifier: MIT */
/*
 * Which data-stack chunks a thread has: learnt by their headers, from the newest down, and
 * kept for a while after they were popped. A recursion that goes up and down takes the same
 * ones again, and what is known of a chunk is copied with the rest, at the tick's instant.
 *
 * Source: CPython Python/pystate.c (push_chunk, _PyThreadState_PopFrame).
 */
#pragma once

#include "sampler/python/offsets.h"
#include "sampler/python/stack_copy.h"

/* The index of the chunk at addr, or stack->nr_chunks. */
size_t chunk_chain_find(const struct stack_copy *stack, remote_addr addr);

/* Forget the chunks behind the oldest nr_kept; chunk_chain_learn() looks for them anew. */
void chunk_chain_drop(struct stack_copy *stack, size_t nr_kept);

/*
 * Learn the chunks from newest_addr down to one that is known, or to the oldest, by their
 * headers. Chunks that vanish meanwhile or go in a circle are looked for at the next copy. 0;
 * -ENOMEM, -ESRCH, -EPERM.
 */
int chunk_chain_follow(struct stack_copy *stack, struct remote_memory *memory,
		       const struct py_offsets *offsets, remote_addr newest_addr);

/* After a copy: follow chunks that were added, drop those that were popped long ago. As above. */
int chunk_chain_learn(struct stack_copy *stack, struct remote_memory *memory,
		      const struct py_offsets *offsets);
