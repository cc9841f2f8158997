/* SPDX-License-Identifier: MIT */
#include "output/source/run_sources.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Returns when the first run ended; 0: unknown. */
static uint64_t first_end_ns(const struct run *runs, uint32_t nr_runs)
{
	uint64_t end_ns = UINT64_MAX;

	for (uint32_t i = 0; i < nr_runs; i++) {
		const struct run *run = &runs[i];
		uint64_t length_ns = 0;

		if (run->stats.end_ns > run->stats.start_ns)
			length_ns = run->stats.end_ns - run->stats.start_ns;
		if (run->info.start_unix_ns && run->info.start_unix_ns + length_ns < end_ns)
			end_ns = run->info.start_unix_ns + length_ns;
	}
	return end_ns == UINT64_MAX ? 0 : end_ns;
}

/* Whether a run is known to be from another machine. */
static bool is_from_elsewhere(const struct run *runs, uint32_t nr_runs)
{
	char host[HOST_NAME_MAX + 1] = "";

	if (gethostname(host, sizeof(host)) < 0)
		return false;
	for (uint32_t i = 0; i < nr_runs; i++)
		if (runs[i].info.pysample.host &&
		    strncmp(runs[i].info.pysample.host, host, sizeof(host)) != 0)
			return true;
	return false;
}

bool run_sources_are_here(const struct run *runs, uint32_t nr_runs, uint64_t *ret_until_ns)
{
	*ret_until_ns = first_end_ns(runs, nr_runs);
	return !is_from_elsewhere(runs, nr_runs);
}
