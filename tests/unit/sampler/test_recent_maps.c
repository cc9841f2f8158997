/* SPDX-License-Identifier: MIT */
#include "sampler/recent_maps.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

enum { READ_NS = 1000, NR_MAPPED = 3 };

/* Maps were read at READ_NS, after NR_MAPPED mappings had been reported. */
struct due_case {
	const char *name;
	uint64_t cost_ns;
	bool are_stale;
	uint64_t nr_mapped, nr_anonymous;
	uint64_t age_ns;
	bool are_due;
};

Test(recent_maps, are_due_after_changes)
{
	static const struct due_case cases[] = {
		{"nothing new", 0, false, 3, 0, UINT64_C(1) << 40, false},
		{"just mapped", 100, false, 4, 0, 9999999, false},
		{"mapped", 100, false, 4, 0, 10000000, true},
		{"old, just read", 100, true, 3, 0, 999999999, false},
		{"old", 100, true, 3, 0, 1000000000, true},
		{"made, just read", 100, false, 3, 1, 999999999, false},
		{"made", 100, false, 3, 1, 1000000000, true},
		{"mapped, slow", 40000000, false, 4, 0, 799999999, false},
		{"mapped, slow, later", 40000000, false, 4, 0, 800000000, true},
		{"old, slow", 60000000, true, 3, 0, 1199999999, false},
		{"old, slow, later", 60000000, true, 3, 0, 1200000000, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct recent_maps recent = {.are_stale = cases[i].are_stale,
					     .read_ns = READ_NS,
					     .nr_mapped = NR_MAPPED,
					     .cost_ns = cases[i].cost_ns};
		const struct perf_events_stats events = {.nr_mapped = cases[i].nr_mapped,
							 .nr_anonymous = cases[i].nr_anonymous};

		cr_expect(eq(int, recent_maps_are_due(&recent, READ_NS + cases[i].age_ns, &events),
			     cases[i].are_due),
			  "%s", cases[i].name);
	}
}

Test(recent_maps, are_due_if_never_read)
{
	const struct recent_maps recent = {.read_ns = 0};
	const struct perf_events_stats events = {.nr_mapped = 0};

	cr_expect(recent_maps_are_due(&recent, READ_NS, &events));
}
