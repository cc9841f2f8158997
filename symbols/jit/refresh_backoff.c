/* SPDX-License-Identifier: MIT */
#include "symbols/jit/refresh_backoff.h"

bool refresh_backoff_is_due(const struct refresh_backoff *backoff, bool is_covered,
			    uint64_t time_ns)
{
	uint64_t wait_ns = is_covered ? REFRESH_MAX_WAIT_NS : backoff->wait_ns;

	if (wait_ns < backoff->rest_ns)
		wait_ns = backoff->rest_ns;
	return !backoff->refreshed_ns ||
	       (time_ns > backoff->refreshed_ns && time_ns - backoff->refreshed_ns >= wait_ns);
}

void refresh_backoff_record(struct refresh_backoff *backoff, bool has_found, uint64_t time_ns,
			    uint64_t took_ns)
{
	const bool is_first = !backoff->refreshed_ns;
	const uint64_t wait_ns = is_first ? REFRESH_MIN_WAIT_NS : backoff->wait_ns;

	backoff->wait_ns = has_found ? REFRESH_MIN_WAIT_NS : 2 * wait_ns;
	if (backoff->wait_ns > REFRESH_MAX_WAIT_NS)
		backoff->wait_ns = REFRESH_MAX_WAIT_NS;
	backoff->rest_ns = is_first ? 0 : REFRESH_REST_FACTOR * took_ns;
	backoff->refreshed_ns = time_ns;
}
