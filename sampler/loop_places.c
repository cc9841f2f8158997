/* SPDX-License-Identifier: MIT */
#include "sampler/loop_places.h"

/* So many votes make a place known. */
enum { ENOUGH_VOTES = 6, ENOUGH_ENTRIES = 4 };

/* Of the first ones some may be of a loop that is over: so many are counted, and the most win. */
enum { ENOUGH_LENGTHS = 64 };

/* The loop pushes what a call takes beyond six words, and up to eight more to align the stack. */
enum { PUSHED_MAX_BYTES = 64 };

/* A place has a share of the best one's votes, or they are chance. */
enum { CHANCE_PART = 8 };

/* And a greater one, or it takes more to believe that it is there at one instruction. */
enum { RIVAL_PART = 2 };

enum { WORD_BYTES = 8 };

/*
 * The longest instruction, LOAD_ATTR, with what it caches: before and behind it is the same call.
 */
enum { CALL_BYTES = 20 };

/* Entries and lengths. */

/* Count a vote, in place of the number that had the fewest if it is new. */
static const struct loop_number *vote_number(struct loop_number numbers[LOOP_PLACES_NUMBERS],
					     uint32_t bytes)
{
	struct loop_number *least = &numbers[0];

	for (uint32_t i = 0; i < LOOP_PLACES_NUMBERS; i++) {
		if (numbers[i].bytes == bytes) {
			numbers[i].votes++;
			return &numbers[i];
		}
		if (numbers[i].votes < least->votes)
			least = &numbers[i];
	}
	*least = (struct loop_number){.bytes = bytes, .votes = 1};
	return least;
}

void loop_places_vote_entry(struct loop_places *places, uint32_t distance_bytes)
{
	if (vote_number(places->distances, distance_bytes)->votes >= ENOUGH_ENTRIES)
		places->entry_distance_bytes = distance_bytes;
}

void loop_places_vote_length(struct loop_places *places, uint32_t frame_bytes)
{
	const uint32_t votes = vote_number(places->lengths, frame_bytes)->votes;

	if (votes < ENOUGH_ENTRIES || votes <= places->nr_frame_votes)
		return;
	places->frame_bytes = frame_bytes;
	places->nr_frame_votes = votes;
}

bool loop_places_wants_entries(const struct loop_places *places)
{
	return !places->entry_distance_bytes || places->nr_frame_votes < ENOUGH_LENGTHS;
}

bool loop_places_is_length(const struct loop_places *places, uint64_t frame_bytes)
{
	return !places->frame_bytes ||
	       frame_bytes - (places->frame_bytes - PUSHED_MAX_BYTES) <= 2ull * PUSHED_MAX_BYTES;
}

/* Places. */

static bool is_other(const struct loop_frame *frame, remote_addr addr)
{
	for (uint32_t i = 0; i < frame->nr_others; i++)
		if (frame->other_addrs[i] == addr)
			return true;
	return false;
}

/* What is at a place. False: that is not known, or not part of the C frame. */
static bool value_at(const struct loop_frame *frame, uint32_t place, uint64_t *ret_value)
{
	remote_addr addr;

	if (place < NR_REGISTERS) {
		*ret_value = frame->registers->values[place];
		return registers_know(frame->registers, place);
	}
	addr = frame->cfa - WORD_BYTES * (uint64_t)(place - NR_REGISTERS + 1);
	return addr >= frame->sp && addr < frame->cfa && !is_other(frame, addr) &&
	       stack_window_u64(frame->window, addr, ret_value) == 0;
}

/*
 * Whether the loop has put a value there. One that is being called has in a register what its
 * caller had, and in its C frame what an older call has left.
 */
static bool is_own(const struct loop_frame *frame, uint32_t place, bool is_site)
{
	if (frame->kind != LOOP_RUNS)
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

/* What is in the places of a C frame: read once for all that is looked for. */
struct values {
	uint32_t nr;
	uint16_t places[NR_REGISTERS + LOOP_PLACES_SLOTS];
	uint64_t values[NR_REGISTERS + LOOP_PLACES_SLOTS];
};

static void read_values(const struct loop_frame *frame, struct values *values)
{
	values->nr = 0;
	for (uint32_t place = 0; place < NR_REGISTERS + LOOP_PLACES_SLOTS; place++)
		if (value_at(frame, place, &values->values[values->nr]))
			values->places[values->nr++] = (uint16_t)place;
}

/* What a place is looked for by: a value of [start, end), and not of another loop. */
struct wanted {
	remote_addr start, end;
	remote_addr not_near_addr; /* 0: it may be anywhere */
};

static bool is_near(remote_addr addr, remote_addr other_addr)
{
	return other_addr && addr - (other_addr - CALL_BYTES) <= 2ull * CALL_BYTES;
}

/* Vote for all places that have what is wanted. Whether there is one. */
static bool vote_for(struct loop_votes *votes, struct loop_sites *sites, remote_addr pc_addr,
		     const struct values *values, struct wanted wanted)
{
	uint16_t found[LOOP_SITE_PLACES];
	uint32_t nr_found = 0;

	for (uint32_t i = 0; i < values->nr; i++) {
		const uint64_t value = values->values[i];

		if (value < wanted.start || value >= wanted.end ||
		    is_near(value, wanted.not_near_addr))
			continue;
		vote(votes, values->places[i]);
		if (nr_found < LOOP_SITE_PLACES)
			found[nr_found++] = values->places[i];
	}
	if (nr_found)
		loop_sites_vote(sites, pc_addr, found, nr_found);
	return nr_found > 0;
}

void loop_places_vote(struct loop_places *places, const struct loop_frame *frame,
		      const struct loop_candidate *candidates, uint32_t nr_candidates)
{
	struct values values;

	if (!nr_candidates)
		return;
	read_values(frame, &values);
	for (uint32_t i = 0; i < nr_candidates; i++) {
		const struct loop_candidate *candidate = &candidates[i];
		const struct wanted the_frame = {.start = candidate->frame_addr,
						 .end = candidate->frame_addr + 1};
		/*
		 * The start of the code is no next instruction but of a frame that has just begun:
		 * 3.11's loop keeps that of the first code that it ran (first_instr). The end is
		 * that of a frame that returns.
		 */
		const struct wanted next_instr = {.start = candidate->code_start_addr + 1,
						  .end = candidate->code_end_addr + 1,
						  .not_near_addr = frame->outer_instr_addr};

		if (vote_for(&places->frames[frame->kind], &places->frame_sites, frame->pc_addr,
			     &values, the_frame))
			(void)vote_for(&places->next_instrs[frame->kind], &places->next_instr_sites,
				       frame->pc_addr, &values, next_instr);
	}
}

/*
 * Whether it is known where a thing is at the very instruction: chance soon finds it elsewhere
 * some times, where what a copy has is over whenever one looks.
 */
static bool find_site(const struct loop_sites *sites, const struct loop_votes *votes,
		      const struct loop_frame *frame, uint32_t *ret_place)
{
	const enum loop_site_trust trust = loop_sites_find(sites, frame->pc_addr, ret_place);

	return trust == LOOP_SITE_SURE ||
	       (trust == LOOP_SITE_LIKELY &&
		votes->votes[*ret_place] >= votes->votes[votes->best[0]] / RIVAL_PART);
}

/*
 * What is in the place of a rank, of C frames of that kind or, as long as nothing is known of
 * them, of the other. A place that had few votes beside the best one had them by chance.
 */
static bool read_place(const struct loop_votes votes[NR_LOOP_KINDS], const struct loop_sites *sites,
		       const struct loop_frame *frame, uint32_t rank, remote_addr *ret_addr)
{
	const struct loop_votes *own = &votes[frame->kind];
	uint32_t place;
	uint32_t nr;

	if (find_site(sites, own, frame, &place)) {
		if (rank == 0)
			return is_own(frame, place, true) && value_at(frame, place, ret_addr);
		rank--;
	}
	if (rank >= LOOP_PLACES_BEST)
		return false;

	if (own->votes[own->best[0]] < ENOUGH_VOTES && frame->kind != LOOP_IN_JIT)
		own = &votes[frame->kind == LOOP_RUNS ? LOOP_CALLS : LOOP_RUNS];
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
	return read_place(places->next_instrs, &places->next_instr_sites, frame, rank, ret_addr) &&
	       !is_near(*ret_addr, frame->outer_instr_addr);
}
