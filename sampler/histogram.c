/* SPDX-License-Identifier: MIT */
#include "sampler/histogram.h"

#include <stddef.h>

enum { PER_POWER = 1 << HISTOGRAM_SHIFT };

/* Values below PER_POWER have a class each. */
static size_t class_of(uint64_t value)
{
	unsigned int exponent;

	if (value < PER_POWER)
		return (size_t)value;
	exponent = 63u - (unsigned int)__builtin_clzll(value);
	if (exponent > HISTOGRAM_MAX_EXPONENT)
		return HISTOGRAM_CLASSES - 1;
	return ((size_t)(exponent - HISTOGRAM_SHIFT + 1) << HISTOGRAM_SHIFT) +
	       ((value >> (exponent - HISTOGRAM_SHIFT)) & (PER_POWER - 1));
}

/* The largest value of a class. */
static uint64_t class_end(size_t index)
{
	unsigned int shift;

	if (index < PER_POWER)
		return index;
	shift = (unsigned int)(index >> HISTOGRAM_SHIFT) - 1;
	return ((uint64_t)(PER_POWER + (index & (PER_POWER - 1)) + 1) << shift) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
	histogram->counts[class_of(value)]++;
	histogram->nr++;
	if (histogram->max < value)
		histogram->max = value;
}

void histogram_merge(struct histogram *histogram, const struct histogram *other)
{
	for (size_t i = 0; i < HISTOGRAM_CLASSES; i++)
		histogram->counts[i] += other->counts[i];
	histogram->nr += other->nr;
	if (histogram->max < other->max)
		histogram->max = other->max;
}

void histogram_subtract(struct histogram *histogram, const struct histogram *earlier)
{
	size_t last = 0;

	for (size_t i = 0; i < HISTOGRAM_CLASSES; i++) {
		histogram->counts[i] -= earlier->counts[i];
		if (histogram->counts[i])
			last = i;
	}
	histogram->nr -= earlier->nr;
	if (!histogram->nr)
		histogram->max = 0;
	else if (last < HISTOGRAM_CLASSES - 1 && class_end(last) < histogram->max)
		histogram->max = class_end(last);
}

uint64_t histogram_quantile(const struct histogram *histogram, unsigned int thousandths)
{
	/* number of values that may be larger */
	uint64_t nr_above = (histogram->nr / 1000) * (1000 - thousandths) +
			    (histogram->nr % 1000) * (1000 - thousandths) / 1000;

	for (size_t i = HISTOGRAM_CLASSES; i-- > 0;) {
		if (histogram->counts[i] > nr_above) {
			uint64_t end = class_end(i);

			return end < histogram->max && i < HISTOGRAM_CLASSES - 1 ? end
										 : histogram->max;
		}
		nr_above -= histogram->counts[i];
	}
	return 0;
}
