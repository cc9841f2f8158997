/* SPDX-License-Identifier: MIT */
#include "output/profile/name_filter.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

bool name_filter_passes(const struct name_filter *filter, const char *name, pid_t id)
{
	char digits[16];

	(void)snprintf(digits, sizeof(digits), "%d", id);
	for (uint32_t i = 0; i < filter->nr; i++) {
		const char *pattern = filter->patterns[i];

		if (strcmp(pattern, name) == 0 || (id && strcmp(pattern, digits) == 0) ||
		    fnmatch(pattern, name, FNM_NOESCAPE) == 0)
			return true;
	}
	return filter->nr == 0;
}
