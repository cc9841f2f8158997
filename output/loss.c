/* SPDX-License-Identifier: MIT */
#include "output/loss.h"

#include <assert.h>

const char *loss_name(enum sample_loss loss)
{
	static const char *const names[] = {
		[LOSS_MOVED] = "moved", [LOSS_LOCK] = "lock",
		[LOSS_LATE] = "late",	[LOSS_UNFINISHED] = "unfinished",
		[LOSS_CODE] = "code",	[LOSS_TOO_DEEP] = "too_deep",
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

double loss_percent(const struct sampler_stats *stats)
{
	double lost = (double)loss_total(stats);
	double tried = lost + (double)stats->samples;

	return tried > 0 ? 100 * lost / tried : 0;
}
