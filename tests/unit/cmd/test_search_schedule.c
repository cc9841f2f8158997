/* SPDX-License-Identifier: MIT */
#include "cmd/search_schedule.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#define MS 1000000ull

/* The looks and searches in one minute of waiting. */
struct wait {
	unsigned int nr_looks, nr_searches;
	uint64_t looked_ns;
	uint64_t max_pause_ns;
};

static struct wait wait_a_minute(int err, bool unchanged, uint64_t look_ns)
{
	struct wait wait = {0};
	struct search_schedule schedule;
	uint64_t now_ns = 5 * MS;

	search_schedule_init(&schedule, now_ns, 60000 * MS);
	while (wait.nr_looks < 100000) {
		bool is_last = now_ns >= schedule.end_ns;
		bool searches = search_schedule_is_due(&schedule, unchanged, now_ns);
		uint64_t pause_ns;

		wait.nr_looks++;
		wait.looked_ns += look_ns;
		now_ns += look_ns;
		if (searches) {
			wait.nr_searches++;
			search_schedule_record(&schedule, err, now_ns);
		}
		if (is_last) {
			cr_expect(searches, "the last look searches");
			return wait;
		}
		pause_ns = search_schedule_pause_ns(&schedule, now_ns, look_ns);
		cr_expect(le(u64, now_ns + pause_ns, schedule.end_ns + look_ns));
		if (wait.max_pause_ns < pause_ns)
			wait.max_pause_ns = pause_ns;
		now_ns += pause_ns;
	}
	return wait;
}

Test(search_schedule, searches_an_unchanged_process_rarely)
{
	static const struct {
		int err;
		bool unchanged;
		unsigned int min_searches, max_searches;
	} cases[] = {
		{-ENOENT, true, 2, 2},	   /* the first look and the last */
		{-EAGAIN, true, 100, 150}, /* twice a second, more often at the start */
		{-ENOENT, false, 1100, 1300}, {-EAGAIN, false, 1100, 1300},
		{-ESRCH, true, 1100, 1300},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wait wait = wait_a_minute(cases[i].err, cases[i].unchanged, 0);

		cr_expect(ge(uint, wait.nr_searches, cases[i].min_searches), "%zu", i);
		cr_expect(le(uint, wait.nr_searches, cases[i].max_searches), "%zu", i);
		cr_expect(ge(uint, wait.nr_looks, 1100), "%zu: a start is noticed soon", i);
		cr_expect(eq(u64, wait.max_pause_ns, 50 * MS), "%zu", i);
	}
}

/* Expensive looks are less frequent. */
Test(search_schedule, uses_at_most_a_twentieth_of_the_time)
{
	for (uint64_t look_ns = MS; look_ns <= 25 * MS; look_ns += MS) {
		struct wait wait = wait_a_minute(-EAGAIN, false, look_ns);

		cr_expect(le(u64, wait.looked_ns, 60000 * MS / 18), "%u looks", wait.nr_looks);
		cr_expect(ge(uint, wait.nr_looks, 120));
		cr_expect(le(u64, wait.max_pause_ns, 500 * MS));
	}
}

/* While the process may be starting, the next look comes soon, however expensive a look is. */
Test(search_schedule, starts_with_short_pauses)
{
	struct search_schedule schedule;
	uint64_t now_ns = 0;

	search_schedule_init(&schedule, now_ns, 10000 * MS);
	for (uint64_t pause_ns = MS; pause_ns <= 32 * MS; pause_ns *= 2) {
		cr_expect(search_schedule_is_due(&schedule, true, now_ns));
		search_schedule_record(&schedule, -EAGAIN, now_ns);
		cr_expect(eq(u64, search_schedule_pause_ns(&schedule, now_ns, 20 * MS), pause_ns));
		now_ns += pause_ns;
	}
}

/* Without --wait there is one look. */
Test(search_schedule, looks_once_without_wait)
{
	struct search_schedule schedule;

	search_schedule_init(&schedule, 7, 0);
	cr_expect(ge(u64, 7, schedule.end_ns));
	cr_expect(search_schedule_is_due(&schedule, true, 7));
	cr_expect(zero(u64, search_schedule_pause_ns(&schedule, 7, MS)));
}
