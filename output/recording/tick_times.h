/* SPDX-License-Identifier: MIT */
/* Stores the times of ticks in few bits: the column "offsets" in docs/formats.md. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/encoding/byte_buffer.h"

/* The ticks of one record. Empty when all but unit_ns and interval_ns is zero. */
struct tick_times {
	uint64_t unit_ns;     /* unit of the times: 1000 << shift */
	uint64_t interval_ns; /* requested; 0 if there is none */
	bool has_phase;
	uint64_t phase_ns; /* start of the grid of intervals */

	uint64_t *units;   /* owned; the times in units of unit_ns, ascending */
	uint64_t *offsets; /* owned; room for as many */
	int64_t *skips;	   /* owned; the same */
	uint32_t nr, max;
};

/*
 * Returns how often 1 µs is doubled for the unit of tick times at this interval, so that the unit
 * is at most a thirtieth of the interval, and 32 µs. Ticks at random places in even intervals
 * leave little else to save, and a tick itself takes about that long.
 */
unsigned int tick_times_shift(uint64_t interval_ns);

/* Free the arrays. */
void tick_times_done(struct tick_times *times);

/* Add a tick, at a time no earlier than the previous one's. Returns false if out of memory. */
bool tick_times_add(struct tick_times *times, uint64_t units);

/* What a record states once for all its ticks. */
struct tick_plan {
	uint64_t start_ns;
	uint64_t interval_ns;
	unsigned int width;
};

/* Append the columns of the ticks, at least one, and remove the ticks. */
struct tick_plan tick_times_write(struct tick_times *times, struct byte_buffer *offsets,
				  struct byte_buffer *high_offsets, struct byte_buffer *skips);
