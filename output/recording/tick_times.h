/* SPDX-License-Identifier: MIT */
/* The times of ticks, in as few bits as they take: column "offsets" in docs/formats.md. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/text/byte_buffer.h"

/* The ticks of one record. All zero but unit_ns and interval_ns it is empty. */
struct tick_times {
	uint64_t unit_ns;     /* that times are multiples of: 1000 << shift */
	uint64_t interval_ns; /* asked for; 0 if there is none */
	bool has_phase;
	uint64_t phase_ns; /* where the grid of the intervals begins */

	uint64_t *units;   /* owned; the times, by unit_ns; ascending */
	uint64_t *offsets; /* owned; room for as many */
	int64_t *skips;	   /* owned; the same */
	uint32_t nr, max;
};

/*
 * How many times 1 µs is doubled for the unit of ticks at that interval: to no more than a
 * thirtieth of it, and 32 µs. Where ticks come at random places of even intervals there is little
 * else to be saved, and one takes about as long.
 */
unsigned int tick_times_shift(uint64_t interval_ns);

/* Free what it holds. */
void tick_times_done(struct tick_times *times);

/* Another tick, at a time that is not before the last one's. False if out of memory. */
bool tick_times_add(struct tick_times *times, uint64_t units);

/* Ticks do not go on in the same grid. */
void tick_times_break(struct tick_times *times);

/* What a record says of all its ticks. */
struct tick_plan {
	uint64_t start_ns;
	uint64_t interval_ns;
	unsigned int width;
};

/* Append the columns of the ticks, at least one, and forget these. */
struct tick_plan tick_times_write(struct tick_times *times, struct byte_buffer *offsets,
				  struct byte_buffer *high_offsets, struct byte_buffer *skips);
