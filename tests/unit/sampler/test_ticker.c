/* SPDX-License-Identifier: MIT */
#include "procmem/clock.h"
#include "sampler/ticker.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdbool.h>

#include "sampler/sample.h"

/* A clock that advances only when it is read or slept on. */
struct fake_clock {
	uint64_t now_ns;
	uint64_t look_ns; /* duration of one read */
	uint64_t wake_ns; /* delay at the end of a sleep */
	uint64_t slept_ns;
	uint64_t nr_sleeps;
	struct sampler_stats stats;
};

static uint64_t fake_now_ns(struct fake_clock *fake)
{
	fake->now_ns += fake->look_ns;
	return fake->now_ns;
}

static void fake_sleep_until(struct fake_clock *fake, uint64_t time_ns)
{
	uint64_t end_ns = time_ns + fake->wake_ns;

	fake->nr_sleeps++;
	if (end_ns <= fake->now_ns)
		return;
	fake->slept_ns += end_ns - fake->now_ns;
	fake->now_ns = end_ns;
}

enum { START_NS = 1000000007 };

static void fake_start(struct fake_clock *fake, struct ticker *ticker, double rate_hz)
{
	fake->now_ns = START_NS - fake->look_ns;
	ticker_start(ticker, rate_hz, 42, START_NS, fake_now_ns(fake), &fake->stats);
}

/* Sleep until the deadline or until_ns, and take the tick if it is due. Returns the time. */
static uint64_t fake_wait(struct fake_clock *fake, struct ticker *ticker, uint64_t until_ns,
			  bool *ret_due)
{
	const uint64_t wake_ns = ticker->deadline_ns < until_ns ? ticker->deadline_ns : until_ns;
	uint64_t now_ns = fake_now_ns(fake);

	if (wake_ns > now_ns) {
		fake_sleep_until(fake, wake_ns);
		now_ns = fake_now_ns(fake);
	}
	*ret_due = ticker_take(ticker, now_ns, until_ns);
	return now_ns;
}

/* Wait for a tick, and let it take work_ns. Returns its time. */
static uint64_t fake_tick(struct fake_clock *fake, struct ticker *ticker, uint64_t work_ns)
{
	bool due = false;
	uint64_t now_ns = 0;

	while (!due)
		now_ns = fake_wait(fake, ticker, UINT64_MAX, &due);
	fake->now_ns += work_ns;
	return now_ns;
}

Test(ticker, rate_sets_the_interval)
{
	static const struct {
		double rate_hz;
		uint64_t interval_ns;
	} cases[] = {
		{1, NS_PER_S}, {1000, 1000000}, {10000, 100000}, {0.5, 2 * (uint64_t)NS_PER_S}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sampler_stats stats = {0};
		struct ticker ticker;

		ticker_start(&ticker, cases[i].rate_hz, 0, START_NS, START_NS, &stats);
		cr_expect(eq(u64, ticker.interval_ns, cases[i].interval_ns));
		cr_expect(eq(u64, ticker.deadline_ns, START_NS));
		cr_expect(zero(u64, stats.late_ticks));
	}
}

/* The first tick is at once; each later one is anywhere in its own interval. */
Test(ticker, ticks_once_an_interval)
{
	enum { INTERVAL_NS = 100000, NR_TICKS = 20000 };
	struct fake_clock fake = {.look_ns = 20};
	struct ticker ticker;
	uint64_t sum_ns = 0;

	fake_start(&fake, &ticker, 1e9 / INTERVAL_NS);
	cr_expect(lt(u64, fake_tick(&fake, &ticker, 0) - START_NS, 1000));
	for (uint64_t i = 1; i < NR_TICKS; i++) {
		uint64_t place_ns = fake_tick(&fake, &ticker, 3000) - START_NS - i * INTERVAL_NS;

		cr_expect(lt(u64, place_ns, INTERVAL_NS + 100));
		sum_ns += place_ns;
	}
	cr_expect(zero(u64, fake.stats.late_ticks));
	cr_expect(le(u64, histogram_quantile(&fake.stats.lateness, 1000), 3100));
	/*
	 * The mean is the middle of the interval. Its standard error is 289 ns; a tick takes
	 * 3 µs.
	 */
	cr_expect(lt(u64, sum_ns / NR_TICKS - INTERVAL_NS / 2 + 2000, 4000));
}

/* Another seed gives other places. */
Test(ticker, different_seeds_give_different_ticks)
{
	struct fake_clock fake = {0};
	struct ticker tickers[2];

	fake_start(&fake, &tickers[0], 1000);
	ticker_start(&tickers[1], 1000, 43, START_NS, START_NS, &fake.stats);
	(void)fake_tick(&fake, &tickers[0], 0);
	(void)fake_tick(&fake, &tickers[1], 0);
	cr_expect(ne(u64, tickers[0].deadline_ns, tickers[1].deadline_ns));
}

/*
 * A program that spends 30 % of each period in one function. The period is the tick's, a fraction
 * or a multiple of it. The function has its share of samples in all cases.
 */
Test(ticker, periodic_programs_get_their_shares)
{
	enum { INTERVAL_NS = 1000000, NR_TICKS = 40000, FROM = 35, SHARE = 30 };
	static const uint64_t periods_ns[] = {INTERVAL_NS, INTERVAL_NS / 2, INTERVAL_NS / 7,
					      2 * INTERVAL_NS, 3 * INTERVAL_NS};

	for (size_t p = 0; p < sizeof(periods_ns) / sizeof(*periods_ns); p++) {
		struct fake_clock fake = {.look_ns = 20, .wake_ns = 25000};
		struct ticker ticker;
		unsigned int nr_seen = 0;

		fake_start(&fake, &ticker, 1e9 / INTERVAL_NS);
		for (int i = 0; i < NR_TICKS; i++) {
			uint64_t now_ns = fake_tick(&fake, &ticker, 4000) - START_NS;
			uint64_t place = now_ns % periods_ns[p] * 100 / periods_ns[p];

			nr_seen += place >= FROM && place < FROM + SHARE;
		}
		/* The standard error is 0.23 %. */
		double percent = 100.0 * nr_seen / NR_TICKS;
		cr_expect(percent > SHARE - 1.2 && percent < SHARE + 1.2, "period %zu: %.2f %%", p,
			  percent);
	}
}

/* Intervals stay on the first one's grid. Missed intervals are counted once. */
Test(ticker, missed_intervals_are_skipped_and_counted)
{
	enum { INTERVAL_NS = 1000000 };
	struct fake_clock fake = {0};
	struct ticker ticker;
	uint64_t now_ns;

	fake_start(&fake, &ticker, 1e9 / INTERVAL_NS);
	fake.now_ns += 7 * INTERVAL_NS + INTERVAL_NS / 2;
	now_ns = fake_tick(&fake, &ticker, 0);
	cr_expect(eq(u64, now_ns, START_NS + 7 * INTERVAL_NS + INTERVAL_NS / 2));
	cr_expect(zero(u64, fake.nr_sleeps));
	/* The seventh interval is not over yet. */
	cr_expect(eq(u64, fake.stats.late_ticks, 6));
	cr_expect(eq(u64, fake.stats.lateness.max, now_ns - START_NS));
	cr_expect(eq(u64, ticker.late_ns, now_ns - START_NS));
	cr_expect(eq(u64, ticker.begin_ns, START_NS + (uint64_t)7 * INTERVAL_NS));
	cr_expect(ge(u64, ticker.deadline_ns, now_ns));
	cr_expect(lt(u64, ticker.deadline_ns, ticker.begin_ns + INTERVAL_NS));
}

/* Each wait for a tick is one sleep, however late sleeps end and however close ticks are. */
Test(ticker, waits_by_sleeping_only)
{
	static const struct {
		double rate_hz;
		uint64_t wake_ns;
	} cases[] = {{1000, 25000}, {10000, 0}, {10000, 60000}, {10000, 250000}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		enum { NR_TICKS = 20000 };
		struct fake_clock fake = {.look_ns = 20, .wake_ns = cases[i].wake_ns};
		struct ticker ticker;

		fake_start(&fake, &ticker, cases[i].rate_hz);
		(void)fake_tick(&fake, &ticker, 2000);
		for (int tick = 0; tick < NR_TICKS; tick++)
			(void)fake_tick(&fake, &ticker, 2000);
		/* A tick whose time comes during the previous one needs no sleep. */
		cr_expect(le(u64, fake.nr_sleeps, NR_TICKS), "case %zu", i);
		cr_expect(ge(u64, fake.nr_sleeps, NR_TICKS - NR_TICKS / 8), "case %zu", i);
		cr_expect(lt(u64, ticker.late_ns, cases[i].wake_ns + 2100), "case %zu", i);
		/* Each interval had its tick, or is counted as late. */
		cr_expect(eq(u64, NR_TICKS + 1 + fake.stats.late_ticks,
			     (ticker.begin_ns - START_NS) / ticker.interval_ns),
			  "case %zu", i);
	}
}

/* One tick in each new interval, from the first one that begins later. */
Test(ticker, the_rate_can_change)
{
	enum { MS = 1000000 };
	struct fake_clock fake = {.look_ns = 1};
	struct ticker ticker;
	uint64_t now_ns;

	fake_start(&fake, &ticker, 400);
	fake_tick(&fake, &ticker, 0);
	fake_tick(&fake, &ticker, 0);
	ticker_set_rate(&ticker, 100, fake.now_ns);
	for (uint64_t i = 1; i < 100; i++) {
		fake_tick(&fake, &ticker, 0);
		now_ns = fake.now_ns - START_NS;
		cr_expect(ge(u64, now_ns, i * 10 * MS));
		cr_expect(lt(u64, now_ns, (i + 1) * 10 * MS));
	}
	cr_expect(zero(u64, fake.stats.late_ticks));
}

/* Each span has one time, which is anywhere in it and the same for all tickers of a seed. */
Test(ticker, spans_have_a_random_time_each)
{
	enum { MS = 1000000, SPAN_NS = 80 * MS, NR_SPANS = 1000 };
	struct fake_clock fake = {.look_ns = 1};
	struct ticker ticker, other;
	uint64_t sum_ns = 0;

	fake_start(&fake, &ticker, 100);
	ticker_start(&other, 100, 42, START_NS, START_NS + 777 * MS, &fake.stats);
	for (uint64_t i = 0; i < NR_SPANS; i++) {
		const uint64_t begin_ns = START_NS + i * SPAN_NS;
		const uint64_t time_ns = ticker_time_in_span(&ticker, begin_ns, SPAN_NS);

		cr_expect(ge(u64, time_ns, begin_ns + SPAN_NS));
		cr_expect(lt(u64, time_ns, begin_ns + 2 * SPAN_NS));
		cr_expect(eq(u64, ticker_time_in_span(&other, begin_ns + SPAN_NS - 1, SPAN_NS),
			     time_ns));
		sum_ns += time_ns - begin_ns - SPAN_NS;
	}
	/* The mean, within five standard deviations. */
	cr_expect(lt(u64, SPAN_NS / 2 - 4 * MS, sum_ns / NR_SPANS));
	cr_expect(lt(u64, sum_ns / NR_SPANS, SPAN_NS / 2 + 4 * MS));
}

/* Postponed ticks are in the first interval that has one in time, and none is skipped. */
Test(ticker, ticks_can_be_postponed)
{
	enum { MS = 1000000 };
	struct fake_clock fake = {.look_ns = 1};
	struct ticker ticker;
	uint64_t deadline_ns;

	fake_start(&fake, &ticker, 100);
	fake_tick(&fake, &ticker, 0);
	deadline_ns = ticker.deadline_ns;
	cr_expect(zero(u64, ticker_postpone(&ticker, 0)));
	cr_expect(zero(u64, ticker_postpone(&ticker, deadline_ns)));
	cr_expect(eq(u64, ticker.deadline_ns, deadline_ns));
	cr_expect(eq(u64, ticker_postpone(&ticker, deadline_ns + 1), 1));
	cr_expect(eq(u64, ticker_postpone(&ticker, deadline_ns + 40 * MS), 3));
	cr_expect(ge(u64, ticker.deadline_ns, deadline_ns + 40 * MS));
	cr_expect(lt(u64, ticker.deadline_ns, ticker.begin_ns + 10 * MS));
	fake_tick(&fake, &ticker, 0);
	/* The number of postponed ticks that were due after the end. */
	cr_expect(eq(u64, ticker_finish(&ticker, START_NS + 10 * MS), 5));
	cr_expect(zero(u64, ticker_finish(&ticker, START_NS + 60 * MS)));
	cr_expect(zero(u64, fake.stats.late_ticks));
	cr_expect(zero(u64, ticker_finish(&ticker, START_NS + 70 * MS)));
	cr_expect(eq(u64, fake.stats.late_ticks, 1));
}

/* A run of ten intervals has ten ticks in all cases, taken or late. */
Test(ticker, finish_counts_the_ticks_not_taken)
{
	enum { INTERVAL_NS = 1000000, NR_INTERVALS = 10 };

	for (uint64_t work_ns = 1; work_ns < 20ull * INTERVAL_NS; work_ns = work_ns * 3 + 7) {
		struct fake_clock fake = {.wake_ns = 25000};
		struct ticker ticker;
		uint64_t nr_taken = 0;
		const uint64_t end_ns = START_NS + NR_INTERVALS * (uint64_t)INTERVAL_NS;

		fake_start(&fake, &ticker, 1e9 / INTERVAL_NS);
		for (;;) {
			bool due;
			uint64_t now_ns = fake_wait(&fake, &ticker, end_ns, &due);

			if (now_ns >= end_ns)
				break;
			nr_taken += due;
			fake.now_ns += due ? work_ns : 0;
		}
		cr_expect(zero(u64, ticker_finish(&ticker, end_ns)));
		cr_expect(eq(u64, nr_taken + fake.stats.late_ticks, NR_INTERVALS),
			  "work %llu: %llu + %llu", (unsigned long long)work_ns,
			  (unsigned long long)nr_taken, (unsigned long long)fake.stats.late_ticks);
	}
}

/* Before the deadline there is no tick, and from until_ns on neither. */
Test(ticker, takes_ticks_between_the_deadline_and_the_end)
{
	struct sampler_stats stats = {0};
	struct ticker ticker;
	uint64_t deadline_ns;

	ticker_start(&ticker, 1, 42, START_NS, START_NS, &stats);
	cr_expect(ticker_take(&ticker, START_NS, UINT64_MAX));
	deadline_ns = ticker.deadline_ns;
	cr_expect(not(ticker_take(&ticker, deadline_ns - 1, UINT64_MAX)));
	cr_expect(not(ticker_take(&ticker, deadline_ns, deadline_ns)));
	cr_expect(eq(u64, ticker.deadline_ns, deadline_ns));
	cr_expect(ticker_take(&ticker, deadline_ns + 7, UINT64_MAX));
	cr_expect(eq(u64, ticker.late_ns, 7));
	cr_expect(zero(u64, stats.late_ticks));
}

/* Tickers of the same rate, seed and origin tick together, whatever happened to them before. */
Test(ticker, equal_seeds_tick_together)
{
	enum { MS = 1000000, NR_TICKS = 1000 };
	struct fake_clock fake = {0};
	struct ticker first, second;

	fake_start(&fake, &first, 100);
	for (int i = 0; i < NR_TICKS; i++)
		(void)fake_tick(&fake, &first, 0);
	ticker_start(&second, 100, 42, START_NS, fake.now_ns, &fake.stats);
	(void)fake_tick(&fake, &second, 0);
	while (first.begin_ns < second.begin_ns)
		(void)fake_tick(&fake, &first, 0);
	(void)ticker_postpone(&first, first.deadline_ns + 50 * MS);
	while (second.begin_ns < first.begin_ns)
		(void)fake_tick(&fake, &second, 0);
	cr_expect(eq(u64, first.deadline_ns, second.deadline_ns));
}
