/* SPDX-License-Identifier: MIT */
#include "sampler/histogram.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

Test(histogram, empty_histogram_has_no_quantiles)
{
	const struct histogram empty = {0};

	cr_expect(zero(u64, histogram_quantile(&empty, 500)));
	cr_expect(zero(u64, histogram_quantile(&empty, 990)));
}

/* A class is at most an eighth wide, and a quantile is never too small. */
Test(histogram, classes_are_an_eighth_wide)
{
	for (unsigned int shift = 0; shift < 64; shift++) {
		for (int off = -1; off <= 1; off++) {
			uint64_t value = ((uint64_t)1 << shift) + (uint64_t)off;
			struct histogram histogram = {0};
			uint64_t median;

			histogram_add(&histogram, value);
			/* A larger value, so that the quantile is the bound of its class. */
			histogram_add(&histogram, UINT64_MAX);
			median = histogram_quantile(&histogram, 499);
			cr_expect(eq(u64, histogram.max, UINT64_MAX));
			cr_expect(ge(u64, median, value));
			if (value < (uint64_t)1 << (HISTOGRAM_MAX_EXPONENT + 1))
				cr_expect(le(u64, median - value, value / 8), "%llu: %llu",
					  (unsigned long long)value, (unsigned long long)median);
		}
	}
}

Test(histogram, finds_quantiles_of_many_values)
{
	static const struct {
		unsigned int thousandths;
		uint64_t least, most;
	} cases[] = {
		{1, 1, 1}, {500, 500, 563}, {900, 900, 1000}, {990, 990, 1000}, {1000, 1000, 1000}};
	struct histogram histogram = {0}, sum = {0};

	for (uint64_t value = 1; value <= 1000; value++)
		histogram_add(&histogram, value);
	histogram_merge(&sum, &histogram);
	histogram_merge(&sum, &histogram);
	cr_expect(eq(u64, sum.nr, 2000));
	cr_expect(eq(u64, sum.max, 1000));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t one = histogram_quantile(&histogram, cases[i].thousandths);
		uint64_t two = histogram_quantile(&sum, cases[i].thousandths);

		cr_expect(ge(u64, one, cases[i].least), "%u", cases[i].thousandths);
		cr_expect(le(u64, one, cases[i].most), "%u", cases[i].thousandths);
		cr_expect(eq(u64, one, two), "%u", cases[i].thousandths);
	}
}
