/* SPDX-License-Identifier: MIT */
#include "sampler/loop_places.h"

/* So many votes make a place known. */
enum { ENOUGH_VOTES = 6, ENOUGH_ENTRIES = 4 };

/* A place has a share of the best one's votes, or they are chance. */
enum { CHANCE_PART = 8 };

enum { WORD_BYTES = 8 };

/* Entries. */

void loop_places_vote_entry(struct loop_places *places, const struct loop_frame *frame,
			    remote_addr addr)
{
	const uint32_t distance_bytes = (uint32_t)(frame->cfa - addr);
	uint32_t least = 0;

	for (uint32_t i = 0; i < LOOP_PLACES_DISTANCES; i++) {
		if (places->distances[i].distance_bytes == distance_bytes) {
			if (++places->distances[i].votes >= ENOUGH_ENTRIES)
				places->entry_distance_bytes = distance_bytes;
			return;
		}
		if (places->distances[i].votes < places->distances[least].votes)
			least = i;
	}
	places->distances[least].distance_bytes = distance_bytes;
	places->distances[least].votes = 1;
}

/* Places. */

/* What is at a place. False: that is not known, or not part of the C frame. */
static bool value_at(const struct loop_frame *frame, uint32_t place, uint64_t *ret_value)
{
	remote_addr addr;

	if (place < NR_REGISTERS) {
		*ret_value = frame->registers->values[place];
		return registers_know(frame->registers, place);
	}
	addr = frame->cfa - WORD_BYTES * (uint64_t)(place - NR_REGISTERS + 1);
	return addr >= frame->sp && addr < frame->cfa &&
	       stack_window_u64(frame->window, addr, ret_value) == 0;
}

/* Keep best in order when a place has one vote more. */
static void vote(struct loop_votes *votes, uint32_t place)
{
	uint32_t rank = 0;

	votes->votes[place]++;
	while (rank < LOOP_PLACES_BEST - 1 && votes->best[rank] != place)
		rank++;
	if (votes->best[rank] != place && votes->votes[place] <= votes->votes[votes->best[rank]])
		return;
	votes->best[rank] = place;
	for (; rank > 0 && votes->votes[place] > votes->votes[votes->best[rank - 1]]; rank--) {
		votes->best[rank] = votes->best[rank - 1];
		votes->best[rank - 1] = place;
	}
}

/* Vote for all places whose value is in [start, end). Whether there is one. */
static bool vote_for_range(struct loop_votes *votes, const struct loop_frame *frame,
			   remote_addr start, remote_addr end)
{
	bool found = false;

	for (uint32_t place = 0; place < NR_REGISTERS + LOOP_PLACES_SLOTS; place++) {
		uint64_t value;

		if (!value_at(frame, place, &value) || value < start || value >= end)
			continue;
		vote(votes, place);
		found = true;
	}
	return found;
}

void loop_places_vote(struct loop_places *places, const struct loop_frame *frame,
		      remote_addr frame_addr, remote_addr code_start_addr,
		      remote_addr code_end_addr)
{
	if (vote_for_range(&places->frames[frame->is_innermost], frame, frame_addr, frame_addr + 1))
		(void)vote_for_range(&places->next_instrs[frame->is_innermost], frame,
				     code_start_addr, code_end_addr);
}

/*
 * What is in the place of a rank, of C frames of that kind or, as long as nothing is known of
 * them, of the other. A place that had few votes beside the best one had them by chance.
 */
static bool read_place(const struct loop_votes votes[2], const struct loop_frame *frame,
		       uint32_t rank, remote_addr *ret_addr)
{
	const struct loop_votes *own = &votes[frame->is_innermost];
	uint32_t nr;

	if (own->votes[own->best[0]] < ENOUGH_VOTES)
		own = &votes[!frame->is_innermost];
	nr = own->votes[own->best[rank]];
	return nr >= ENOUGH_VOTES && nr >= own->votes[own->best[0]] / CHANCE_PART &&
	       value_at(frame, own->best[rank], ret_addr);
}

bool loop_places_frame(const struct loop_places *places, const struct loop_frame *frame,
		       uint32_t rank, remote_addr *ret_addr)
{
	return read_place(places->frames, frame, rank, ret_addr);
}

bool loop_places_next_instr(const struct loop_places *places, const struct loop_frame *frame,
			    uint32_t rank, remote_addr *ret_addr)
{
	return read_place(places->next_instrs, frame, rank, ret_addr);
}
