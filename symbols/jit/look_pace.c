/* SPDX-License-Identifier: MIT */
#include "symbols/jit/look_pace.h"

bool look_pace_is_due(const struct look_pace *pace, bool is_covered, uint64_t time_ns)
{
	uint64_t wait_ns = is_covered ? LOOK_PACE_MAX_WAIT_NS : pace->wait_ns;

	if (wait_ns < pace->rest_ns)
		wait_ns = pace->rest_ns;
	return !pace->look_ns || (time_ns > pace->look_ns && time_ns - pace->look_ns >= wait_ns);
}

void look_pace_record(struct look_pace *pace, bool has_found, uint64_t time_ns, uint64_t took_ns)
{
	const bool is_first = !pace->look_ns;
	const uint64_t wait_ns = is_first ? LOOK_PACE_MIN_WAIT_NS : pace->wait_ns;

	pace->wait_ns = has_found ? LOOK_PACE_MIN_WAIT_NS : 2 * wait_ns;
	if (pace->wait_ns > LOOK_PACE_MAX_WAIT_NS)
		pace->wait_ns = LOOK_PACE_MAX_WAIT_NS;
	pace->rest_ns = is_first ? 0 : LOOK_PACE_REST_PER_LOOK * took_ns;
	pace->look_ns = time_ns;
}
