/* SPDX-License-Identifier: MIT */
#include "sampler/recent_maps.h"

int recent_maps_read(struct recent_maps *recent, const struct process *process, uint64_t now_ns,
		     const struct perf_events_stats *events, struct maps *ret_before)
{
	struct maps maps;
	int err = maps_read(process, &maps);

	if (err)
		return err;
	*ret_before = recent->maps;
	*recent = (struct recent_maps){
		.maps = maps,
		.read_ns = now_ns,
		.nr_mapped = events->nr_mapped,
		.nr_anonymous = events->nr_anonymous,
	};
	return 0;
}

bool recent_maps_are_due(const struct recent_maps *recent, uint64_t now_ns,
			 const struct perf_events_stats *events)
{
	const uint64_t age_ns = now_ns - recent->read_ns;

	if (!recent->read_ns)
		return true;
	if (age_ns < RECENT_MAPS_REST_PER_READ * recent->cost_ns)
		return false;
	if (events->nr_mapped != recent->nr_mapped && age_ns >= RECENT_MAPS_AFTER_MAPPED_NS)
		return true;
	return (recent->are_stale || events->nr_anonymous != recent->nr_anonymous) &&
	       age_ns >= RECENT_MAPS_EVERY_NS;
}
