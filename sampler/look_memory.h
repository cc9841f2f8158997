/* SPDX-License-Identifier: MIT */
/*
 * The target's memory during one look. What recent looks read is read ahead in one call, so that
 * a look that finds the target where it was needs no other; missing memory is read on demand.
 * Each byte is read once per look: repeated reads return the same answer.
 *
 * Some words are sealed: they are read before and again after everything else. sampler/snapshot.h
 * and sampler/witness.h build their proofs on equal seals.
 *
 * Between looks every read goes straight to the underlying memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"

/*
 * Memory is kept in aligned blocks of this size, a few frames each. A block never crosses a page,
 * so it can be read if any byte of it can.
 */
enum { LOOK_BLOCK_BYTES = 512 };

/* Room for the longest sealed words, those of a free-threaded build's GIL. */
enum { LOOK_SEAL_BYTES = 40 };

struct look_block;

/* A sealed piece of memory. */
struct look_seal {
	remote_addr addr;
	size_t size; /* at most LOOK_SEAL_BYTES */
	uint8_t first[LOOK_SEAL_BYTES];
	uint8_t last[LOOK_SEAL_BYTES];
	bool is_read; /* both reads succeeded */
};

struct look_memory {
	struct remote_memory memory; /* the interface for readers */
	struct remote_memory *inner; /* borrowed while this is used */
	bool is_open;		     /* a look is in progress */
	bool has_unsealed_reads;     /* something was read after the last seals */
	bool is_narrow;	 /* the current or last look is narrow: the table has only its own blocks */
	bool is_changed; /* the ranges no longer match the blocks */
	uint64_t look;	 /* number of looks so far */
	/* owned; nr_ahead sorted ones, then the others in the order met */
	struct look_block *blocks;
	uint32_t nr_ahead, nr_blocks, max_blocks;
	uint8_t *bytes;		 /* owned; LOOK_BLOCK_BYTES for each block */
	uint16_t *table;	 /* owned; a hash table of block indices plus 1, 0: free */
	uint32_t nr_slots;	 /* of the table */
	remote_addr run_addr;	 /* of the last missing run: the next one may end here */
	uint32_t run_blocks;	 /* length of that run */
	struct look_seal *seals; /* owned */
	uint32_t nr_seals, max_seals;
	struct remote_range *ranges; /* owned */
	uint32_t nr_ranges, max_ranges;
};

/*
 * Make a memory on top of inner, with the errors of inner. look_memory_done() frees it and
 * accepts one that is all zero.
 */
void look_memory_init(struct look_memory *look, struct remote_memory *inner);
void look_memory_done(struct look_memory *look);

/* Forget the seals of the previous look. */
void look_memory_clear_seals(struct look_memory *look);

/* Seal size bytes at addr from the next look on; sets *ret_index. Returns 0 or -ENOMEM. */
int look_memory_seal(struct look_memory *look, remote_addr addr, size_t size, uint32_t *ret_index);

/*
 * Begin a look: read the seals, the read-ahead blocks, and the seals again. A seal that could not
 * be read has is_read == false. Returns 0; -ENOMEM, -ESRCH, -EPERM, with no look open.
 */
int look_memory_begin(struct look_memory *look);

/*
 * Begin a look at a small part of what other looks read: only the seals are read ahead, and its
 * reads do not change what the next looks read ahead.
 */
int look_memory_begin_narrow(struct look_memory *look);

/*
 * End the look: read the seals again if anything was read after them. Errors of
 * look_memory_begin().
 */
int look_memory_end(struct look_memory *look);

static inline const struct look_seal *look_memory_seal_at(const struct look_memory *look,
							  uint32_t index)
{
	return &look->seals[index];
}
