/* SPDX-License-Identifier: MIT */
/*
 * How many descriptors this process may have at once. The soft limit is 1024 mostly, for the
 * sake of programs that call select(2), and the hard one far more (getrlimit(2), RLIMIT_NOFILE).
 */
#pragma once

#include <stdbool.h>

/* Allow this process as many as it may allow itself. A child that is made later inherits it. */
void descriptor_limit_raise(void);

/*
 * Whether fd is one of the last that there are: what is kept open does not take these, since
 * outputs, /proc, and what a format is made of need some for a moment.
 */
bool descriptor_limit_is_near(int fd);
