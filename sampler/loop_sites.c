/* SPDX-License-Identifier: MIT */
#include "sampler/loop_sites.h"

#include "procmem/addr_slot.h"

/* So many findings in one place make it likely, if they are most of all at that instruction. */
enum { ENOUGH_VOTES = 3 };

/* And so many of chance, which has its favourites, do not come together without others. */
enum { SURE_VOTES = 16, SURE_PART = 4 };

/* Votes are halved when one has so many. */
enum { MAX_VOTES = 1 << 12 };

static void halve(struct loop_site *site)
{
	site->nr_seen /= 2;
	for (uint32_t i = 0; i < LOOP_SITE_PLACES; i++)
		site->places[i].votes /= 2;
}

/* A vote for a place; a new one takes the room of that with the fewest. */
static void vote(struct loop_site *site, uint16_t place)
{
	uint32_t least = 0;

	for (uint32_t i = 0; i < LOOP_SITE_PLACES; i++) {
		if (site->places[i].votes && site->places[i].place == place) {
			site->places[i].votes++;
			return;
		}
		if (site->places[i].votes < site->places[least].votes)
			least = i;
	}
	site->places[least].place = place;
	site->places[least].votes = 1;
}

void loop_sites_vote(struct loop_sites *sites, remote_addr pc_addr, const uint16_t *places,
		     uint32_t nr_places)
{
	struct loop_site *site = &sites->sites[addr_slot(pc_addr, LOOP_SITES_MAX)];

	if (site->pc_addr != pc_addr && site->nr_seen > 0) {
		halve(site);
		return;
	}
	site->pc_addr = pc_addr;
	if (site->nr_seen == MAX_VOTES)
		halve(site);
	site->nr_seen++;
	for (uint32_t i = 0; i < nr_places; i++)
		vote(site, places[i]);
}

enum loop_site_trust loop_sites_find(const struct loop_sites *sites, remote_addr pc_addr,
				     uint32_t *ret_place)
{
	const struct loop_site *site = &sites->sites[addr_slot(pc_addr, LOOP_SITES_MAX)];
	uint32_t best = 0;
	uint32_t votes;

	if (site->pc_addr != pc_addr)
		return LOOP_SITE_UNKNOWN;
	for (uint32_t i = 1; i < LOOP_SITE_PLACES; i++)
		if (site->places[i].votes > site->places[best].votes)
			best = i;
	*ret_place = site->places[best].place;
	votes = site->places[best].votes;
	if (votes < ENOUGH_VOTES || votes <= site->nr_seen / 2)
		return LOOP_SITE_UNKNOWN;
	return votes >= SURE_VOTES && votes > site->nr_seen - site->nr_seen / SURE_PART
		       ? LOOP_SITE_SURE
		       : LOOP_SITE_LIKELY;
}
