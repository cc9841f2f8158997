/* SPDX-License-Identifier: MIT */
#include "symbols/jit/look_pace.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define MS 1000000ull

#define START (5000 * MS)

/* Milliseconds from the last look, at START, until the next one is due. */
static uint64_t wait_ms(const struct look_pace *pace, bool is_covered)
{
	uint64_t ms = 0;

	while (ms < 1000000 && !look_pace_is_due(pace, is_covered, START + ms * MS))
		ms++;
	return ms;
}

Test(look_pace, first_look_is_due_at_once)
{
	const struct look_pace pace = {0};

	cr_expect(zero(u64, wait_ms(&pace, false)));
	cr_expect(zero(u64, wait_ms(&pace, true)));
}

Test(look_pace, unsuccessful_looks_double_the_wait)
{
	static const uint64_t waits_ms[] = {200, 400, 800, 1000, 1000};
	struct look_pace pace = {0};

	for (size_t i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); i++) {
		look_pace_record(&pace, false, START, MS);
		cr_expect(eq(u64, wait_ms(&pace, false), waits_ms[i]), "look %zu", i);
		cr_expect(eq(u64, wait_ms(&pace, true), 1000), "look %zu", i);
	}
	look_pace_record(&pace, true, START, MS);
	cr_expect(eq(u64, wait_ms(&pace, false), 100));
	cr_expect(not(look_pace_is_due(&pace, false, START - 1000 * MS)), "before the look");
}

/* Looks take at most a twentieth of the time, whatever is_covered says. */
Test(look_pace, expensive_looks_are_less_frequent)
{
	static const struct {
		uint64_t took_ms, wait_ms, covered_wait_ms;
	} cases[] = {
		{4, 100, 1000},	  {5, 100, 1000},   {6, 120, 1000},
		{50, 1000, 1000}, {51, 1020, 1020}, {2000, 40000, 40000},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct look_pace pace = {0};

		look_pace_record(&pace, true, START, 3600000 * MS);
		cr_expect(eq(u64, wait_ms(&pace, false), 100), "case %zu: the first", i);
		look_pace_record(&pace, true, START, cases[i].took_ms * MS);
		cr_expect(eq(u64, wait_ms(&pace, false), cases[i].wait_ms), "case %zu", i);
		cr_expect(eq(u64, wait_ms(&pace, true), cases[i].covered_wait_ms), "case %zu", i);
		look_pace_record(&pace, true, START, MS);
		cr_expect(eq(u64, wait_ms(&pace, false), 100), "case %zu: the next", i);
	}
}
