/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/base/cached_memory.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "tests/support/fake_memory.h"

enum { ADDR = 0x10000, NR_PAGES = 3 };

/* NR_PAGES pages from ADDR on, each beginning with its number. */
static void setup(struct fake_memory *fake)
{
	fake_memory_init(fake);
	for (uint32_t i = 0; i < NR_PAGES; i++) {
		(void)fake_memory_map(fake, ADDR + i * CACHED_PAGE_BYTES, CACHED_PAGE_BYTES);
		fake_memory_write_u64(fake, ADDR + i * CACHED_PAGE_BYTES, i);
	}
}

static uint64_t read_word(struct cached_memory *cached, remote_addr addr)
{
	uint64_t word = UINT64_MAX;

	cr_expect(zero(int, remote_memory_read_u64(&cached->memory, addr, &word)));
	return word;
}

Test(cached_memory, reads_each_page_once)
{
	struct fake_memory fake;
	struct cached_memory cached;

	setup(&fake);
	cached_memory_init(&cached, &fake.memory);
	for (uint32_t i = 0; i < NR_PAGES; i++) {
		cr_expect(eq(u64, read_word(&cached, ADDR + i * CACHED_PAGE_BYTES), i));
		(void)read_word(&cached, ADDR + i * CACHED_PAGE_BYTES + 64);
	}
	cr_expect(eq(u64, fake.nr_calls, NR_PAGES));
	fake_memory_write_u64(&fake, ADDR, 7);
	cr_expect(zero(u64, read_word(&cached, ADDR)), "as old as its page");
	cached_memory_clear(&cached);
	cr_expect(eq(u64, read_word(&cached, ADDR), 7));
	cached_memory_done(&cached);
	fake_memory_done(&fake);
}

Test(cached_memory, renews_what_was_used_at_once)
{
	struct fake_memory fake;
	struct cached_memory cached;

	setup(&fake);
	cached_memory_init(&cached, &fake.memory);
	for (uint32_t i = 0; i < NR_PAGES; i++)
		(void)read_word(&cached, ADDR + i * CACHED_PAGE_BYTES);
	fake_memory_write_u64(&fake, ADDR, 7);
	fake.nr_calls = fake.nr_ranges = 0;
	cr_expect(zero(int, cached_memory_renew(&cached)));
	cr_expect(eq(u64, fake.nr_calls, 1));
	cr_expect(eq(u64, fake.nr_ranges, NR_PAGES));
	cr_expect(eq(u64, read_word(&cached, ADDR), 7));
	cr_expect(eq(u64, fake.nr_calls, 1), "nothing is read again");

	/* Only that page was used since. */
	cr_expect(zero(int, cached_memory_renew(&cached)));
	cr_expect(eq(u64, fake.nr_ranges, NR_PAGES + 1));
	cr_expect(eq(u64, read_word(&cached, ADDR + CACHED_PAGE_BYTES), 1));
	cr_expect(eq(u64, fake.nr_ranges, NR_PAGES + 2));

	/* A page that is gone is no error for the others. */
	fake_memory_unmap(&fake, ADDR);
	cr_expect(zero(int, cached_memory_renew(&cached)));
	cr_expect(eq(u64, read_word(&cached, ADDR + CACHED_PAGE_BYTES), 1));
	cr_expect(eq(int, remote_memory_read_u64(&cached.memory, ADDR, &(uint64_t){0}), -EFAULT));

	fake.error = -ESRCH;
	cr_expect(eq(int, cached_memory_renew(&cached), -ESRCH));
	cached_memory_done(&cached);
	fake_memory_done(&fake);
}

Test(cached_memory, reads_parts_of_pages_and_across_them)
{
	struct fake_memory fake;
	struct cached_memory cached;
	uint64_t word;

	fake_memory_init(&fake);
	(void)fake_memory_map(&fake, ADDR, 64); /* no whole page */
	fake_memory_write_u64(&fake, ADDR + 8, 5);
	cached_memory_init(&cached, &fake.memory);
	cr_expect(eq(u64, read_word(&cached, ADDR + 8), 5));
	cr_expect(eq(int, remote_memory_read_u64(&cached.memory, ADDR + 64, &word), -EFAULT));
	cached_memory_done(&cached);
	fake_memory_done(&fake);

	setup(&fake);
	cached_memory_init(&cached, &fake.memory);
	(void)read_word(&cached, ADDR + CACHED_PAGE_BYTES - 4);
	(void)read_word(&cached, ADDR + CACHED_PAGE_BYTES - 4);
	cr_expect(eq(u64, fake.nr_calls, 2), "not cached");
	cached_memory_done(&cached);
	cached_memory_done(&cached);
	fake_memory_done(&fake);
}
