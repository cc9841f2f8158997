/* SPDX-License-Identifier: MIT */
#include "sampler/loop_sites.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static void vote(struct loop_sites *sites, remote_addr pc_addr, uint16_t place, int nr)
{
	for (int i = 0; i < nr; i++)
		loop_sites_vote(sites, pc_addr, &place, 1);
}

/* The place that is found there; its number and a hundred times its trust. 0: none. */
static uint32_t find(const struct loop_sites *sites, remote_addr pc_addr)
{
	uint32_t place;
	const enum loop_site_trust trust = loop_sites_find(sites, pc_addr, &place);

	return trust == LOOP_SITE_UNKNOWN ? 0 : 100 * (uint32_t)trust + place;
}

enum { LIKELY = 100 * LOOP_SITE_LIKELY, SURE = 100 * LOOP_SITE_SURE };

Test(loop_sites, three_votes_of_most)
{
	static struct loop_sites sites;

	cr_expect(zero(u32, find(&sites, 0x1000)));
	vote(&sites, 0x1000, 7, 2);
	cr_expect(zero(u32, find(&sites, 0x1000)));
	vote(&sites, 0x1000, 7, 1);
	cr_expect(eq(u32, find(&sites, 0x1000), LIKELY + 7));
	/* As often elsewhere: none of both is the place. */
	vote(&sites, 0x1000, 8, 3);
	cr_expect(zero(u32, find(&sites, 0x1000)));
	vote(&sites, 0x1000, 8, 1);
	cr_expect(eq(u32, find(&sites, 0x1000), LIKELY + 8));
	cr_expect(zero(u32, find(&sites, 0x1004)));
}

Test(loop_sites, sure_are_sixteen_of_most)
{
	static struct loop_sites sites;

	vote(&sites, 0x1000, 7, 15);
	cr_expect(eq(u32, find(&sites, 0x1000), LIKELY + 7));
	vote(&sites, 0x1000, 7, 1);
	cr_expect(eq(u32, find(&sites, 0x1000), SURE + 7));
	/* A quarter elsewhere is too much. */
	vote(&sites, 0x1000, 8, 4);
	cr_expect(eq(u32, find(&sites, 0x1000), SURE + 7));
	vote(&sites, 0x1000, 8, 1);
	cr_expect(eq(u32, find(&sites, 0x1000), LIKELY + 7));
}

/* A thing that is in two places at a time is in either. */
Test(loop_sites, places_that_are_the_same)
{
	static const uint16_t both[] = {3, 30};
	static struct loop_sites sites;
	uint32_t found;

	for (int i = 0; i < 100; i++)
		loop_sites_vote(&sites, 0x1000, both, 2);
	found = find(&sites, 0x1000);
	cr_expect(found == SURE + 3 || found == SURE + 30);
}

/* Places of chance, one each time, neither make one known nor hide one. */
Test(loop_sites, places_of_chance)
{
	static struct loop_sites sites;

	for (uint16_t i = 0; i < 1000; i++)
		vote(&sites, 0x1000, (uint16_t)(100 + i), 1);
	cr_expect(zero(u32, find(&sites, 0x1000)));
	vote(&sites, 0x1000, 7, 2000);
	cr_expect(eq(u32, find(&sites, 0x1000), LIKELY + 7));
	vote(&sites, 0x1000, 7, 2000);
	cr_expect(eq(u32, find(&sites, 0x1000), SURE + 7));
}

/* More votes than are counted; and more instructions than there is room for. */
Test(loop_sites, room)
{
	static struct loop_sites sites;
	uint32_t place;
	uint32_t nr_found = 0;

	vote(&sites, 0x1000, 7, 100000);
	cr_expect(eq(u32, find(&sites, 0x1000), SURE + 7));
	for (int round = 0; round < 200; round++)
		for (uint32_t i = 0; i < 4 * LOOP_SITES_MAX; i++)
			vote(&sites, 0x400000 + 4ull * i, (uint16_t)(i % 100), 1);
	for (uint32_t i = 0; i < 4 * LOOP_SITES_MAX; i++) {
		if (!loop_sites_find(&sites, 0x400000 + 4ull * i, &place))
			continue;
		cr_expect(eq(u32, place, i % 100));
		nr_found++;
	}
	cr_expect(le(u32, nr_found, LOOP_SITES_MAX));
}
