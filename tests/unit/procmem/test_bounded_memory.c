/* SPDX-License-Identifier: MIT */
#include "procmem/bounded_memory.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "procmem/clock.h"
#include "tests/support/fake_memory.h"

enum { ADDR = 4096 };

/* Read nr ranges of eight bytes in one call. */
static int read_pieces(struct bounded_memory *bounded, size_t nr)
{
	struct remote_range ranges[4];
	uint64_t word;

	for (size_t i = 0; i < nr; i++)
		ranges[i] = (struct remote_range){.addr = ADDR, .buffer = &word, .size = 8};
	return remote_memory_read_ranges(&bounded->memory, ranges, nr);
}

Test(bounded_memory, refuses_reads_beyond_the_limit)
{
	struct fake_memory fake;
	struct bounded_memory bounded;

	fake_memory_init(&fake);
	(void)fake_memory_map(&fake, ADDR, 8);
	bounded_memory_init(&bounded, &fake.memory, 5, NULL, UINT64_MAX);
	cr_expect(zero(int, read_pieces(&bounded, 3)));
	cr_expect(eq(sz, bounded.nr_left, 2));
	cr_expect(zero(int, read_pieces(&bounded, 2)));
	cr_expect(eq(int, read_pieces(&bounded, 1), -E2BIG));
	cr_expect(eq(u64, fake.nr_ranges, 5), "no read beyond the limit");
	fake_memory_done(&fake);
}

Test(bounded_memory, oversized_read_uses_up_the_limit)
{
	struct fake_memory fake;
	struct bounded_memory bounded;

	fake_memory_init(&fake);
	(void)fake_memory_map(&fake, ADDR, 8);
	bounded_memory_init(&bounded, &fake.memory, 3, NULL, UINT64_MAX);
	cr_expect(eq(int, read_pieces(&bounded, 4), -E2BIG));
	cr_expect(eq(int, read_pieces(&bounded, 1), -E2BIG));
	cr_expect(zero(u64, fake.nr_ranges));
	fake_memory_done(&fake);
}

Test(bounded_memory, long_pieces_count_for_several)
{
	static uint8_t buffer[4 * BOUNDED_BYTES_PER_PIECE];
	struct fake_memory fake;
	struct bounded_memory bounded;

	fake_memory_init(&fake);
	(void)fake_memory_map(&fake, ADDR, sizeof(buffer));
	bounded_memory_init(&bounded, &fake.memory, 8, NULL, UINT64_MAX);
	cr_expect(zero(int, remote_memory_read(&bounded.memory, ADDR, buffer, sizeof(buffer))));
	cr_expect(eq(sz, bounded.nr_left, 3));
	cr_expect(
		eq(int, remote_memory_read(&bounded.memory, ADDR, buffer, sizeof(buffer)), -E2BIG));
	fake_memory_done(&fake);
}

Test(bounded_memory, stops_on_request_or_at_the_deadline)
{
	struct {
		sig_atomic_t stop;
		uint64_t deadline_ns;
		int err;
	} cases[] = {
		{0, UINT64_MAX, 0},
		{0, clock_now_ns() + 3600ull * 1000000000, 0},
		{1, UINT64_MAX, -E2BIG},
		{0, 1, -E2BIG},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		volatile sig_atomic_t stop = cases[i].stop;
		struct bounded_memory bounded;
		struct fake_memory fake;

		fake_memory_init(&fake);
		(void)fake_memory_map(&fake, ADDR, 8);
		bounded_memory_init(&bounded, &fake.memory, 5, &stop, cases[i].deadline_ns);
		cr_expect(eq(int, read_pieces(&bounded, 1), cases[i].err), "case %zu", i);
		fake_memory_done(&fake);
	}
}

Test(bounded_memory, forwards_errors)
{
	struct bounded_memory bounded;
	struct fake_memory fake;

	fake_memory_init(&fake);
	bounded_memory_init(&bounded, &fake.memory, 5, NULL, UINT64_MAX);
	cr_expect(zero(int, remote_memory_check(&bounded.memory)));
	fake.error = -ESRCH;
	cr_expect(eq(int, read_pieces(&bounded, 1), -ESRCH));
	fake_memory_done(&fake);
}
