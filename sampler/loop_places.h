/* SPDX-License-Identifier: MIT */
/*
 * Where the interpreter's loop keeps what it works with, in a copy of its C frame: learnt, as each
 * compiler puts it elsewhere. The entry that the loop has there (dumped_entry.h) lies at the same
 * distance from the end of the C frame in all calls, and the C frame is as long in all of them: that
 * tells which C frames are loops. Others may have what an older loop has left in them. The Python
 * frame that runs and its next instruction are in a register or in a slot, told by many copies of
 * which that frame is known otherwise.
 *
 * What is learnt is a guess that every stack still has to prove.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/generator_calls.h"
#include "sampler/loop_sites.h"
#include "symbols/registers.h"
#include "symbols/stack_window.h"

/* Slots are looked at up to 2 KiB below the end of the C frame: 3.14's uses 616. */
#define LOOP_PLACES_SLOTS 256

/* Numbers that are voted for at a time; those of chance come once. */
#define LOOP_PLACES_NUMBERS 8

/* What a loop does decides where it keeps things. */
enum loop_kind {
	LOOP_CALLS,  /* it has called a function of C */
	LOOP_RUNS,   /* it is the innermost C frame */
	LOOP_IN_JIT, /* it has called code of the JIT, whose registers have them */
	NR_LOOP_KINDS,
};

/* A C frame, [sp, cfa), of a stack that was copied. */
struct loop_frame {
	const struct registers *registers;
	const struct registers *caller; /* its caller's; NULL: not known */
	struct stack_window *window;
	remote_addr sp, cfa;
	remote_addr pc_addr; /* of its next instruction */
	/* Words that are no place: saved registers of the caller, the link of the entry. */
	remote_addr other_addrs[NR_REGISTERS + 1];
	uint32_t nr_others;
	/*
	 * The next instruction of the loop around the innermost one: there is none of its own where
	 * one of that call stands, as functions called from there leave it behind. 0: not known.
	 */
	remote_addr outer_instr_addr;
	enum loop_kind kind;
};

/*
 * So many places of a thing are known at a time: between two calls a compiler may have it in
 * more than one.
 */
#define LOOP_PLACES_BEST 4

/* And that of the very instruction is asked for first. */
#define LOOP_PLACES_RANKS (1 + LOOP_PLACES_BEST)

/* Places are registers by their numbers, then slots by their distance from the CFA. */
struct loop_votes {
	uint32_t votes[NR_REGISTERS + LOOP_PLACES_SLOTS];
	uint32_t best[LOOP_PLACES_BEST]; /* indexes, that with the most first; 0 has no votes */
};

/* A number of bytes that is the same in all loops. */
struct loop_number {
	uint32_t bytes;
	uint32_t votes;
};

/* All zero nothing is known. */
struct loop_places {
	struct loop_number distances[LOOP_PLACES_NUMBERS];
	struct loop_number lengths[LOOP_PLACES_NUMBERS];
	uint32_t entry_distance_bytes; /* 0: not known yet */
	uint32_t frame_bytes;	       /* 0: likewise; how long its C frame is */
	uint32_t nr_frame_votes;       /* for that */
	remote_addr lookup_addr;       /* an instruction of a loop that has called; 0: likewise */
	struct generator_calls generator_calls;
	struct loop_votes frames[NR_LOOP_KINDS];
	struct loop_votes next_instrs[NR_LOOP_KINDS];
	struct loop_sites frame_sites;
	struct loop_sites next_instr_sites;
};

/* Vote for how far below the end of its C frame a loop has its entry. */
void loop_places_vote_entry(struct loop_places *places, uint32_t distance_bytes);

/* Vote for how long the C frame of a loop is that has called. */
void loop_places_vote_length(struct loop_places *places, uint32_t frame_bytes);

/* Whether more votes for either are wanted. */
bool loop_places_wants_entries(const struct loop_places *places);

/* Whether a C frame may be a loop's by its length. */
bool loop_places_is_length(const struct loop_places *places, uint64_t frame_bytes);

/* A Python frame that a loop may be at, and the instructions of its code, [start, end). */
struct loop_candidate {
	remote_addr frame_addr;
	remote_addr code_start_addr, code_end_addr;
};

/*
 * Vote by each of the frames for where its address is and, if that is anywhere, for where an
 * instruction of its code is.
 */
void loop_places_vote(struct loop_places *places, const struct loop_frame *frame,
		      const struct loop_candidate *candidates, uint32_t nr_candidates);

/*
 * What stands in the place of the Python frame, and of its next instruction, of a rank below
 * LOOP_PLACES_RANKS: that of the very instruction where it is known, then those that have the
 * most votes. False: there is none of that rank, or it is not part of the copy; or the loop may
 * not have put anything there yet, as it is being called.
 */
bool loop_places_frame(const struct loop_places *places, const struct loop_frame *frame,
		       uint32_t rank, remote_addr *ret_addr);
bool loop_places_next_instr(const struct loop_places *places, const struct loop_frame *frame,
			    uint32_t rank, remote_addr *ret_addr);
