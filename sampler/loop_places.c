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

/*
 * Whether the loop has put a value there. One that is being called has in a register what its
 * caller had, and in its C frame what an older call has left.
 */
static bool is_own(const struct loop_frame *frame, uint32_t place, bool is_site)
{
	if (!frame->is_innermost)
		return true;
	if (place >= NR_REGISTERS)
		return is_site;
	return !frame->caller || !registers_know(frame->caller, place) ||
	       frame->caller->values[place] != frame->registers->values[place];
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

/* Whether the caller had that value in a register: then a place may be where it was saved. */
static bool is_callers(const struct loop_frame *frame, uint64_t value)
{
	for (uint32_t i = 0; frame->caller && i < NR_REGISTERS; i++)
		if (REGISTERS_KEPT >> i & 1 && registers_know(frame->caller, i) &&
		    frame->caller->values[i] == value)
			return true;
	return false;
}

/* Vote for all places whose value is in [start, end). Whether there is one. */
static bool vote_for_range(struct loop_votes *votes, struct loop_sites *sites,
			   const struct loop_frame *frame, remote_addr start, remote_addr end)
{
	uint16_t found[LOOP_SITE_PLACES];
	uint32_t nr_found = 0;

	for (uint32_t place = 0; place < NR_REGISTERS + LOOP_PLACES_SLOTS; place++) {
		uint64_t value;

		if (!value_at(frame, place, &value) || value < start || value >= end ||
		    is_callers(frame, value))
			continue;
		vote(votes, place);
		if (nr_found < LOOP_SITE_PLACES)
			found[nr_found++] = (uint16_t)place;
	}
	if (nr_found)
		loop_sites_vote(sites, frame->pc_addr, found, nr_found);
	return nr_found > 0;
}

void loop_places_vote(struct loop_places *places, const struct loop_frame *frame,
		      remote_addr frame_addr, remote_addr code_start_addr,
		      remote_addr code_end_addr)
{
	if (vote_for_range(&places->frames[frame->is_innermost], &places->frame_sites, frame,
			   frame_addr, frame_addr + 1))
		(void)vote_for_range(&places->next_instrs[frame->is_innermost],
				     &places->next_instr_sites, frame, code_start_addr,
				     code_end_addr);
}

/*
 * What is in the place of a rank, of C frames of that kind or, as long as nothing is known of
 * them, of the other. A place that had few votes beside the best one had them by chance.
 */
static bool read_place(const struct loop_votes votes[2], const struct loop_sites *sites,
		       const struct loop_frame *frame, uint32_t rank, remote_addr *ret_addr)
{
	const struct loop_votes *own = &votes[frame->is_innermost];
	uint32_t place;
	uint32_t nr;

	if (loop_sites_find(sites, frame->pc_addr, &place)) {
		if (rank == 0)
			return is_own(frame, place, true) && value_at(frame, place, ret_addr);
		rank--;
	}
	if (rank >= LOOP_PLACES_BEST)
		return false;

	if (own->votes[own->best[0]] < ENOUGH_VOTES)
		own = &votes[!frame->is_innermost];
	nr = own->votes[own->best[rank]];
	return nr >= ENOUGH_VOTES && nr >= own->votes[own->best[0]] / CHANCE_PART &&
	       is_own(frame, own->best[rank], false) && value_at(frame, own->best[rank], ret_addr);
}

bool loop_places_frame(const struct loop_places *places, const struct loop_frame *frame,
		       uint32_t rank, remote_addr *ret_addr)
{
	return read_place(places->frames, &places->frame_sites, frame, rank, ret_addr);
}

bool loop_places_next_instr(const struct loop_places *places, const struct loop_frame *frame,
			    uint32_t rank, remote_addr *ret_addr)
{
	return read_place(places->next_instrs, &places->next_instr_sites, frame, rank, ret_addr);
}
