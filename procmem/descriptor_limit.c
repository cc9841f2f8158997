/* SPDX-License-Identifier: MIT */
#include "procmem/descriptor_limit.h"

#include <sys/resource.h>

/* Enough for the outputs that are usually open at once and a few files of /proc. */
enum { NR_KEPT = 16 };

void descriptor_limit_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

bool descriptor_limit_is_near(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)fd + NR_KEPT >= limit.rlim_cur;
}

bool descriptor_limit_is_half(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)fd >= limit.rlim_cur / 2;
}
