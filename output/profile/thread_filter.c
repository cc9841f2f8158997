/* SPDX-License-Identifier: MIT */
#include "output/profile/thread_filter.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

bool thread_filter_passes(const struct thread_filter *filter, const char *name, pid_t tid)
{
	char id[16];

	(void)snprintf(id, sizeof(id), "%d", tid);
	for (uint32_t i = 0; i < filter->nr; i++) {
		const char *pattern = filter->patterns[i];

		if (strcmp(pattern, name) == 0 || (tid && strcmp(pattern, id) == 0) ||
		    fnmatch(pattern, name, FNM_NOESCAPE) == 0)
			return true;
	}
	return filter->nr == 0;
}
