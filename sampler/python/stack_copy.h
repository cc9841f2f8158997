/* SPDX-License-Identifier: MIT */
/*
 * What was copied of one thread's stack at one tick, and what is known of where
 * the next copy has to be taken: the data-stack chunks and how much of each is in
 * use, and the links (frames that live elsewhere).
 *
 * Source: CPython Python/pystate.c (push_chunk, _PyThreadState_PopFrame).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmem/memory.h"
#include "sampler/python/copy_budget.h"
#include "sampler/python/offsets.h"
#include "sampler/python/page_border.h"

/* More chunks than this are taken for damage: 16 KiB each, it is 256 MiB of stack. */
#define MAX_CHUNKS 16384

/* What all chunks of a thread together may claim; a stack of MAX_FRAMES has about 100 MB. */
#define STACK_MAX_BYTES (512u << 20)

/* So many links one thread may have (before 3.11, frames); each is a piece of the read. */
#define MAX_LINKS (1u << 14)

/*
 * So many steps the walks of one thread in one tick may take through links, chunks and
 * frames that do not follow one another; some 10 ns each. A stack of MAX_FRAMES can be
 * walked eight times, or all of MAX_LINKS be looked through 512 times. What takes more is
 * lost (LOSS_LINK).
 */
#define MAX_WALK_STEPS (1u << 23)

/* A copy of the first bytes of one data-stack chunk, and the copy before that. */
struct chunk_copy {
	remote_addr addr;
	uint8_t *bytes;	   /* owned; [from_bytes, done_bytes) of them are good */
	size_t from_bytes; /* where the copy begins: 0, or behind what was left out */
	size_t done_bytes;
	size_t border_bytes; /* what lies from there on was copied first; 0: nothing was */
	bool has_header;     /* the header was copied, too, if from_bytes is not 0 */
	size_t max_bytes;    /* room in bytes */
	uint8_t *before;     /* owned; the last copy, [before_from_bytes, before_bytes) good */
	size_t before_from_bytes;
	size_t before_bytes;
	size_t before_max_bytes;
	size_t size_bytes;    /* of the chunk in the target */
	size_t high_bytes[2]; /* furthest use seen in this epoch and the one before */
	uint64_t used_tick;   /* when it was last part of a stack */
	uint64_t spare_tick;  /* when it was last seen popped; 0: never */
	/*
	 * The last frame of the chunk below, by the last walk: its executable once more, behind
	 * this chunk.
	 */
	remote_addr below_addr; /* 0: not known */
	uint64_t below_executable;
	bool below_valid; /* it was copied */
};

/* What a frame that says it is a generator's lies in. */
enum link_container { CONTAINER_NOT_ASKED, CONTAINER_GENERATOR, CONTAINER_OTHER };

/*
 * A copy of one frame that is no data-stack frame: a generator's, an entry shim, or, before
 * 3.11, any frame.
 */
struct link_copy {
	remote_addr addr;
	uint8_t bytes[FRAME_MAX_BYTES];
	/*
	 * Once more: a generator's or an extension's behind the chunks, a frame object's before
	 * the thread state.
	 */
	uint8_t again[FRAME_MAX_BYTES];
	bool valid;	  /* bytes were read */
	bool twice;	  /* again is to be copied: of all but shims and frame objects that stay */
	bool again_valid; /* again was read */
	uint8_t nr_pairs; /* of its two copies, lately, where it runs in one of them */
	uint8_t nr_differing;	       /* of those, so many that differ */
	uint8_t last[FRAME_MAX_BYTES]; /* an extension's: behind the thread state */
	/*
	 * The data-stack frame that was called from an extension's, and its executable once
	 * more: while it is there the one below is linked, and not what was left over.
	 */
	remote_addr above_addr, next_above_addr; /* as copied; to be copied; 0: none */
	uint64_t above_executable;
	bool above_valid;
	bool foreign; /* an extension has linked it, by its executable when it was walked last */
	enum link_container container;
	bool last_valid; /* last was read */
	bool held;	 /* its caller's frame held it on its stack when it was seen to run */
	bool reused;	 /* generators of more than one function have been seen there */
	/*
	 * The `previous` of a generator when it was last seen to run, which it has no
	 * more once it is suspended, and its executable at that time.
	 */
	remote_addr driver_addr; /* 0: never seen */
	uint64_t driven_executable;
	/*
	 * The data-stack frame that drives it, through one shim at most: its executable
	 * once more, behind everything else.
	 */
	remote_addr below_addr; /* 0: not copied */
	uint64_t below_executable;
	bool below_valid;
	/* Of frame objects: the indices of the one that it calls, and of its caller's last time. */
	uint32_t callee, caller;
	uint64_t changed_tick; /* when it was last seen to be called by another one than before */
	uint64_t called_tick;  /* when it was last seen to call another one; 0: not lately */
	uint32_t depth;	       /* how many callers it had when it was last part of a stack */
	uint64_t used_tick;    /* when it was last part of a stack */
	uint64_t ran_tick;     /* when a copy last showed a generator running */
};

/* Zero-initialised nothing is known of the thread yet, and nothing bounds the copies. */
struct stack_copy {
	struct copy_budget *budget; /* shared with other threads; borrowed, may be NULL */
	struct chunk_copy *chunks;  /* oldest first; then spares, popped lately */
	size_t nr_chunks, max_chunks;
	size_t ended_chunk; /* where the last walk ended */
	bool reads_spares;  /* the next copy tries each, also behind one that is not mapped */
	struct link_copy *links;
	size_t nr_links, max_links;
	remote_addr walked_frame_addr; /* of frame objects, the innermost at the last walk */
	int32_t walked_lasti;	       /* and its instruction */
	/*
	 * The memory of the data stack below from_addr is to be left out of the copy; 0:
	 * nothing is. Of the copy that was taken it was left out up to from_bytes of the
	 * chunk first_chunk, older ones were not copied; it is proven that nr_kept outermost
	 * frames of the list that lie there are what they were.
	 */
	remote_addr from_addr;
	size_t first_chunk;
	uint32_t nr_kept;
	bool wants_header; /* that of the newest chunk is to be copied also where its begin is not */
	struct page_border border;
	uint32_t *link_order; /* indices in the order of copying, and as much again to sort */
	size_t next_link;     /* where the search for the next link starts */
	uint64_t nr_steps;    /* that walks took through links since the last tick */
	uint64_t tick;	      /* of this copy; 0: none yet */
	uint64_t epoch_tick;  /* when the epoch of the windows began */
	uint64_t before_tick; /* of the one before, which the chunks still hold */
	remote_addr root_chunk_addr; /* the oldest one, in which frames were found; or 0 */
	/* From the thread state, copied last: */
	remote_addr newest_chunk_addr;
	remote_addr datastack_top_addr;
	remote_addr current_frame_addr;
	remote_addr base_frame_addr; /* 3.15: the sentinel at the bottom; else 0 */
	/*
	 * The shim that was proven to be the bottom below the first frame of the
	 * oldest chunk. It lies on the C stack and calls that frame as long as it
	 * is named by it: it is learnt once and not copied again.
	 */
	remote_addr root_shim_addr;
};

/* Free the copies and give back what they took of the budget. NULL and a zeroed one are fine. */
void stack_copy_done(struct stack_copy *stack);

/*
 * Make a chunk of stack ready for its next copy, from the offset from_bytes on: what it
 * holds becomes the copy before, and there is room for the window in use. 0 and the window's
 * size, all of it if it does not reach behind from_bytes; -ENOMEM, or -E2BIG beyond the budget.
 */
int chunk_copy_begin(struct stack_copy *stack, struct chunk_copy *chunk, size_t from_bytes,
		     size_t *ret_window_bytes);

/* Find where the next copy begins: first_chunk, and *ret_from_bytes of that chunk. */
void stack_copy_choose_start(struct stack_copy *stack, size_t *ret_from_bytes);

/* Whether something was left out of the copy. */
static inline bool stack_copy_is_partial(const struct stack_copy *stack)
{
	return stack->first_chunk || (stack->nr_chunks && stack->chunks[0].from_bytes);
}

/* Whether the copy has the words at that offset of a chunk of stack. */
static inline bool chunk_copy_has(const struct stack_copy *stack, const struct chunk_copy *chunk,
				  size_t offset, size_t size)
{
	return chunk >= &stack->chunks[stack->first_chunk] && offset >= chunk->from_bytes &&
	       offset + size <= chunk->done_bytes;
}

/* Up to which offset the bytes that were copied equal those of the copy before, by whole words. */
size_t chunk_copy_same_bytes(const struct chunk_copy *chunk);

/*
 * After a tick: learn how much of the chunks is in use, follow those that were
 * added or dropped, forget links that are not used any more. grew: the walk came
 * to the end of the copy of ended_chunk. Errors of chunk_chain_learn().
 */
int stack_copy_learn(struct stack_copy *stack, struct remote_memory *memory,
		     const struct py_offsets *offsets, bool grew);

/*
 * Copy the frame at addr into the links now, and with every copy from now on as
 * long as it is used. 0; -E2BIG, -ENOMEM, -ESRCH, -EPERM. (A frame that cannot be
 * read is a link that is not valid.)
 */
int stack_copy_add_link(struct stack_copy *stack, struct remote_memory *memory,
			const struct py_offsets *offsets, remote_addr addr);

/*
 * Add the link at addr, and the generators that run it in turn if they are as new: a link that was
 * added since the copy proves nothing, so that a walk comes no further. What else runs it is asked
 * for by the next walk, which tells what has to be copied with it. At most max_links, at least one;
 * *ret_nr_added of them. Errors of stack_copy_add_link().
 */
int stack_copy_add_links(struct stack_copy *stack, struct remote_memory *memory,
			 const struct py_offsets *offsets, remote_addr addr, int max_links,
			 int *ret_nr_added);

/*
 * Make frame objects ready for the next copy: those that call others and have changed
 * lately are copied twice, and come first; of these and of the others the deepest do.
 */
void stack_copy_sort_frames(struct stack_copy *stack);

/* The data-stack chunk that addr lies in, or NULL. Counts its steps. */
const struct chunk_copy *stack_copy_chunk_of(struct stack_copy *stack, remote_addr addr);

/* Whether addr lies in one of the data-stack chunks. Each that is looked at counts as a step. */
bool stack_copy_holds(struct stack_copy *stack, remote_addr addr);

/*
 * The copy of the frame at addr, or NULL. Links are used in the order they are kept in:
 * what is looked for is nearly always the next one. Every link that is looked at counts
 * as a step.
 */
struct link_copy *stack_copy_find_link(struct stack_copy *stack, remote_addr addr);
