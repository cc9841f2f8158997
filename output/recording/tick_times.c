/* SPDX-License-Identifier: MIT */
#include "output/recording/tick_times.h"

#include <stdlib.h>

#include "output/recording/recording_format.h"
#include "procmem/array.h"
#include "sampler/sample.h"

enum { UNITS_PER_INTERVAL = 30, MAX_SHIFT = 5 };

/* Cost of a value in the other columns, with its gap. */
enum { EXCEPTION_BITS = 20 };

unsigned int tick_times_shift(uint64_t interval_ns)
{
	unsigned int shift = 0;

	while (shift < MAX_SHIFT && (UINT64_C(2000) << shift) * UNITS_PER_INTERVAL <= interval_ns)
		shift++;
	return shift;
}

void tick_times_done(struct tick_times *times)
{
	free(times->units);
	free(times->offsets);
	free(times->skips);
	*times = (struct tick_times){0};
}

/* Reserve room for one more tick. */
static bool times_reserve(struct tick_times *times)
{
	uint32_t max = times->max;
	uint64_t *units = array_reserve(times->units, times->nr + 1, &max, sizeof(*units));
	uint64_t *offsets;
	int64_t *skips;

	if (!units)
		return false;
	times->units = units;
	if (max == times->max)
		return true;
	offsets = reallocarray(times->offsets, max, sizeof(*offsets));
	if (offsets)
		times->offsets = offsets;
	skips = reallocarray(times->skips, max, sizeof(*skips));
	if (skips)
		times->skips = skips;
	if (offsets && skips)
		times->max = max;
	return offsets && skips;
}

bool tick_times_add(struct tick_times *times, uint64_t units)
{
	if (times->nr == times->max && !times_reserve(times))
		return false;
	times->units[times->nr++] = units;
	return true;
}

/* The number of offsets by their length in bits. */
struct bit_counts {
	uint32_t nr[65];
};

static void count_bits(struct bit_counts *counts, uint64_t offset)
{
	counts->nr[offset ? 64 - __builtin_clzll(offset) : 0]++;
}

/* Choose the width with the lowest cost for nr offsets; *ret_bits is that cost. */
static unsigned int choose_width(const struct bit_counts *counts, uint32_t nr, uint64_t *ret_bits)
{
	uint64_t nr_longer = nr;
	unsigned int best = 0;

	*ret_bits = UINT64_MAX;
	for (unsigned int width = 0; width <= SAMPLES_MAX_WIDTH; width++) {
		uint64_t bits;

		nr_longer -= counts->nr[width];
		bits = (uint64_t)nr * width + nr_longer * EXCEPTION_BITS;
		if (bits < *ret_bits) {
			*ret_bits = bits;
			best = width;
		}
	}
	return best;
}

/* Plan offsets from the previous tick. */
static struct tick_plan plan_distances(const struct tick_times *times, uint64_t *ret_bits)
{
	struct tick_plan plan = {.start_ns = times->units[0] * times->unit_ns};
	struct bit_counts counts = {{1}};

	for (uint32_t i = 1; i < times->nr; i++)
		count_bits(&counts, times->units[i] - times->units[i - 1]);
	plan.width = choose_width(&counts, times->nr, ret_bits);
	return plan;
}

static void compute_distances(struct tick_times *times)
{
	for (uint32_t i = 0; i < times->nr; i++) {
		times->offsets[i] = i ? times->units[i] - times->units[i - 1] : 0;
		times->skips[i] = 0;
	}
}

/*
 * Returns the index of a tick's interval, counted from the phase. A tick up to a quarter of an
 * interval late still belongs to the expected one.
 */
static uint64_t tick_cell(const struct tick_times *times, uint64_t time_ns, uint64_t expected)
{
	const uint64_t since_ns = time_ns - times->phase_ns;
	const uint64_t cell = since_ns / times->interval_ns;

	if (cell == expected + 1 && since_ns % times->interval_ns < times->interval_ns / 4)
		return expected;
	return cell;
}

/* Compute offsets from the grid and skips. Returns the first tick's interval. */
static uint64_t compute_cells(struct tick_times *times)
{
	const uint64_t unit_ns = times->unit_ns;
	const uint64_t first = (times->units[0] * unit_ns - times->phase_ns) / times->interval_ns;
	uint64_t expected = first;

	for (uint32_t i = 0; i < times->nr; i++) {
		uint64_t cell = tick_cell(times, times->units[i] * unit_ns, expected);
		uint64_t grid_ns = times->phase_ns + cell * times->interval_ns;

		times->offsets[i] = times->units[i] - grid_ns / unit_ns;
		times->skips[i] = (int64_t)(cell - expected);
		expected = cell + 1;
	}
	return first;
}

/* Plan offsets from a grid, which is shifted by the smallest of them. */
static struct tick_plan plan_grid(struct tick_times *times, uint64_t *ret_bits)
{
	const uint64_t first = compute_cells(times);
	struct bit_counts counts = {{0}};
	uint64_t least = UINT64_MAX, nr_skips = 0;
	struct tick_plan plan = {.interval_ns = times->interval_ns};

	for (uint32_t i = 0; i < times->nr; i++)
		least = times->offsets[i] < least ? times->offsets[i] : least;
	for (uint32_t i = 0; i < times->nr; i++) {
		times->offsets[i] -= least;
		count_bits(&counts, times->offsets[i]);
		nr_skips += times->skips[i] != 0;
	}
	plan.start_ns = times->phase_ns + first * times->interval_ns - times->interval_ns +
			least * times->unit_ns;
	plan.width = choose_width(&counts, times->nr, ret_bits);
	*ret_bits += nr_skips * EXCEPTION_BITS;
	return plan;
}

/*
 * Set the phase if there is none before the first tick. Returns whether the grid can be used: it
 * begins one interval before the phase.
 */
static bool find_phase(struct tick_times *times)
{
	const uint64_t time_ns = times->units[0] * times->unit_ns;

	if (!times->has_phase || time_ns < times->phase_ns) {
		times->has_phase = true;
		times->phase_ns = time_ns;
	}
	return times->interval_ns && times->phase_ns >= times->interval_ns;
}

static struct tick_plan choose_plan(struct tick_times *times)
{
	uint64_t distance_bits, grid_bits = UINT64_MAX;
	struct tick_plan grid = {0};
	const struct tick_plan distances = plan_distances(times, &distance_bits);

	if (find_phase(times))
		grid = plan_grid(times, &grid_bits);
	if (grid_bits < distance_bits)
		return grid;
	compute_distances(times);
	return distances;
}

/* Pack the low bits of all offsets. */
static void pack(const struct tick_times *times, unsigned int width, struct byte_buffer *column)
{
	const uint64_t mask = (UINT64_C(1) << width) - 1;
	uint64_t bits = 0;
	unsigned int nr_bits = 0;

	for (uint32_t i = 0; i < times->nr; i++) {
		bits |= (times->offsets[i] & mask) << nr_bits;
		for (nr_bits += width; nr_bits >= 8; nr_bits -= 8, bits >>= 8)
			byte_buffer_fixed(column, bits & 0xff, 1);
	}
	if (nr_bits)
		byte_buffer_fixed(column, bits, 1);
}

struct tick_plan tick_times_write(struct tick_times *times, struct byte_buffer *offsets,
				  struct byte_buffer *high_offsets, struct byte_buffer *skips)
{
	const struct tick_plan plan = choose_plan(times);
	uint32_t high_gap = 0, skip_gap = 0;

	pack(times, plan.width, offsets);
	for (uint32_t i = 0; i < times->nr; i++, high_gap++, skip_gap++) {
		if (times->offsets[i] >> plan.width) {
			byte_buffer_uint(high_offsets, high_gap);
			byte_buffer_uint(high_offsets, times->offsets[i] >> plan.width);
			high_gap = UINT32_MAX; /* 0 for the next one */
		}
		if (times->skips[i]) {
			byte_buffer_uint(skips, skip_gap);
			byte_buffer_int(skips, times->skips[i]);
			skip_gap = UINT32_MAX;
		}
	}
	times->nr = 0;
	return plan;
}
