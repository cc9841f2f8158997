/* SPDX-License-Identifier: MIT */
/*
 * The target's memory during one look. What the last looks read is read ahead, all in one call,
 * so that a look which finds the target where it was needs no other; what is missing is read when
 * it is asked for. Each byte is read once a look: whoever asks again gets the same answer.
 *
 * Some words are sealed: they are read before everything else and once more behind everything
 * else. Equal seals are what sampler/snapshot.h and sampler/witness.h build their proofs on.
 *
 * Between looks every read goes straight to the memory behind.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"

/*
 * Memory is kept in aligned blocks of this size: a few frames each. A block never crosses a page,
 * so it can be read wherever one byte of it can.
 */
enum { LOOK_BLOCK_BYTES = 512 };

/* Room for the longest words that are sealed, those of a free-threaded build's GIL. */
enum { LOOK_SEAL_BYTES = 40 };

struct look_block;

/* A sealed piece of memory. */
struct look_seal {
	remote_addr addr;
	size_t size; /* at most LOOK_SEAL_BYTES */
	uint8_t first[LOOK_SEAL_BYTES];
	uint8_t last[LOOK_SEAL_BYTES];
	bool is_read; /* both times */
};

struct look_memory {
	struct remote_memory memory; /* what is handed on */
	struct remote_memory *inner; /* borrowed as long as this is read */
	bool is_open;		     /* a look is under way */
	bool is_late;		     /* something was read behind the seals */
	bool is_narrow;		     /* the last look is, or was: the table has its blocks only */
	bool is_changed;	     /* the blocks are not what the ranges were made of */
	uint64_t look;		     /* counts looks */
	struct look_block *blocks;   /* owned; nr_ahead of them sorted, the rest as they were met */
	uint32_t nr_ahead, nr_blocks;
	uint8_t *bytes;		 /* owned; LOOK_BLOCK_BYTES for each block */
	uint16_t *table;	 /* owned; a hash table of indices into blocks plus 1, 0: free */
	remote_addr run_addr;	 /* of the last run that was missing: where the next one may end */
	uint32_t run_blocks;	 /* and how many blocks it had */
	struct look_seal *seals; /* owned */
	uint32_t nr_seals, max_seals;
	struct remote_range *ranges; /* owned */
	uint32_t nr_ranges, max_ranges;
};

/*
 * A memory with the errors of inner. look_memory_done() frees it; it accepts one that is all zero.
 */
void look_memory_init(struct look_memory *look, struct remote_memory *inner);
void look_memory_done(struct look_memory *look);

/* Forget the seals of the look before. */
void look_memory_clear_seals(struct look_memory *look);

/* Seal size bytes at addr from the next look on: *ret_index. 0 or -ENOMEM. */
int look_memory_seal(struct look_memory *look, remote_addr addr, size_t size, uint32_t *ret_index);

/*
 * Begin a look: read the seals, what is read ahead, and the seals again. A seal that could not be
 * read has is_read == false. 0; -ENOMEM, -ESRCH, -EPERM; the look is not open then.
 */
int look_memory_begin(struct look_memory *look);

/*
 * The same of a look at a small part of what the others look at: only the seals are read ahead, and
 * what is read in it does not change what the next looks read ahead.
 */
int look_memory_begin_narrow(struct look_memory *look);

/*
 * End the look: read the seals once more if anything was read behind them. Errors of
 * look_memory_begin().
 */
int look_memory_end(struct look_memory *look);

static inline const struct look_seal *look_memory_seal_at(const struct look_memory *look,
							  uint32_t index)
{
	return &look->seals[index];
}
