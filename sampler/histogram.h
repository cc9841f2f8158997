/* SPDX-License-Identifier: MIT */
/*
 * Counts of values by size, in eight classes for every power of two, so that a quantile is at
 * most an eighth too large. Adding a value takes a few instructions and never allocates.
 */
#pragma once

#include <stdint.h>

/* Values from 2^41 on, 36 minutes of nanoseconds, share the last class. */
enum { HISTOGRAM_SHIFT = 3, HISTOGRAM_MAX_EXPONENT = 40 };
#define HISTOGRAM_CLASSES (((HISTOGRAM_MAX_EXPONENT - HISTOGRAM_SHIFT + 2) << HISTOGRAM_SHIFT) + 1)

/* All zero: empty. */
struct histogram {
	uint64_t counts[HISTOGRAM_CLASSES];
	uint64_t nr;
	uint64_t max; /* the largest value, exact */
};

void histogram_add(struct histogram *histogram, uint64_t value);

/* Add all values of another histogram. */
void histogram_merge(struct histogram *histogram, const struct histogram *other);

/*
 * Remove the values of an earlier state of the same histogram. The largest remaining value is
 * known by its class only, unless it is that of the whole.
 */
void histogram_subtract(struct histogram *histogram, const struct histogram *earlier);

/*
 * The least class bound that at least thousandths / 1000 of the values do not exceed. thousandths
 * is at least 1; 500 gives the median. The result is at most the largest value, and 0 if there
 * are no values.
 */
uint64_t histogram_quantile(const struct histogram *histogram, unsigned int thousandths);
