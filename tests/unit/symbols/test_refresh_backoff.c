/* SPDX-License-Identifier: MIT */
#include "symbols/jit/refresh_backoff.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define MS 1000000ull

#define START (5000 * MS)

/* Milliseconds from the last refresh, at START, until the next one is due. */
static uint64_t wait_ms(const struct refresh_backoff *backoff, bool is_covered)
{
	uint64_t ms = 0;

	while (ms < 1000000 && !refresh_backoff_is_due(backoff, is_covered, START + ms * MS))
		ms++;
	return ms;
}

Test(refresh_backoff, first_refresh_is_due_at_once)
{
	const struct refresh_backoff backoff = {0};

	cr_expect(zero(u64, wait_ms(&backoff, false)));
	cr_expect(zero(u64, wait_ms(&backoff, true)));
}

Test(refresh_backoff, unsuccessful_refreshes_double_the_wait)
{
	static const uint64_t waits_ms[] = {200, 400, 800, 1000, 1000};
	struct refresh_backoff backoff = {0};

	for (size_t i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); i++) {
		refresh_backoff_record(&backoff, false, START, MS);
		cr_expect(eq(u64, wait_ms(&backoff, false), waits_ms[i]), "refresh %zu", i);
		cr_expect(eq(u64, wait_ms(&backoff, true), 1000), "refresh %zu", i);
	}
	refresh_backoff_record(&backoff, true, START, MS);
	cr_expect(eq(u64, wait_ms(&backoff, false), 100));
	cr_expect(not(refresh_backoff_is_due(&backoff, false, START - 1000 * MS)),
		  "a time before the last one");
}

/* Refreshes take at most a twentieth of the time, whatever is_covered says. */
Test(refresh_backoff, expensive_refreshes_are_less_frequent)
{
	static const struct {
		uint64_t took_ms, wait_ms, covered_wait_ms;
	} cases[] = {
		{4, 100, 1000},	  {5, 100, 1000},   {6, 120, 1000},
		{50, 1000, 1000}, {51, 1020, 1020}, {2000, 40000, 40000},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct refresh_backoff backoff = {0};

		refresh_backoff_record(&backoff, true, START, 3600000 * MS);
		cr_expect(eq(u64, wait_ms(&backoff, false), 100), "case %zu: the first", i);
		refresh_backoff_record(&backoff, true, START, cases[i].took_ms * MS);
		cr_expect(eq(u64, wait_ms(&backoff, false), cases[i].wait_ms), "case %zu", i);
		cr_expect(eq(u64, wait_ms(&backoff, true), cases[i].covered_wait_ms), "case %zu",
			  i);
		refresh_backoff_record(&backoff, true, START, MS);
		cr_expect(eq(u64, wait_ms(&backoff, false), 100), "case %zu: the next", i);
	}
}
