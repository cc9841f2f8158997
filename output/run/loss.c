/* SPDX-License-Identifier: MIT */
#include "output/run/loss.h"

#include <assert.h>

const char *loss_name(enum sample_loss loss)
{
	static const char *const names[] = {
		[LOSS_MOVED] = "moved",	    [LOSS_LOCK] = "lock",
		[LOSS_LATE] = "late",	    [LOSS_UNFINISHED] = "unfinished",
		[LOSS_CODE] = "code",	    [LOSS_FAULT] = "fault",
		[LOSS_SKIPPED] = "skipped", [LOSS_TOO_DEEP] = "too_deep",
	};

	_Static_assert(sizeof(names) / sizeof(names[0]) == NR_SAMPLE_LOSSES, "a name each");
	assert(loss < NR_SAMPLE_LOSSES);
	return names[loss];
}

uint64_t loss_total(const struct sampler_stats *stats)
{
	uint64_t total = 0;

	for (int i = 0; i < NR_SAMPLE_LOSSES; i++)
		total += stats->lost[i];
	return total;
}

static double percent_of_tried(uint64_t nr, const struct sampler_stats *stats)
{
	const double tried = (double)loss_total(stats) + (double)stats->samples;

	return tried > 0 ? 100 * (double)nr / tried : 0;
}

double loss_percent(const struct sampler_stats *stats)
{
	return percent_of_tried(loss_total(stats), stats);
}

bool loss_hides_bursts(const struct sampler_stats *stats)
{
	return percent_of_tried(stats->lost[LOSS_LATE], stats) > 2;
}
