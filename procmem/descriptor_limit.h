/* SPDX-License-Identifier: MIT */
/*
 * The limit on open descriptors of this process. The soft limit is usually 1024, for programs that
 * call select(2); the hard limit is far higher (getrlimit(2), RLIMIT_NOFILE).
 */
#pragma once

#include <stdbool.h>

/* Raise the soft limit to the hard one. Children inherit it. */
void descriptor_limit_raise(void);

/*
 * Whether fd is among the last few descriptors below the limit. Files that stay open for long must
 * not use these: outputs, /proc and the writers of formats need some for a short time.
 */
bool descriptor_limit_is_near(int fd);

/* Whether fd is in the upper half: what is merely useful must not use these. */
bool descriptor_limit_is_half(int fd);
