/* SPDX-License-Identifier: MIT */
/*
 * What the kernel lets a thread do that its user may not: capabilities(7). A set has bit n for
 * capability n of linux/capability.h.
 *
 * Source: capget(2), prctl(2); kernel/capability.c, security/commoncap.c.
 */
#pragma once

#include <stdint.h>

#define CAPABILITY(number) (UINT64_C(1) << (number))

/* Those in effect for the calling thread; all, if the kernel does not say. */
uint64_t capabilities_effective(void);

/*
 * Have no others than these for the calling thread, and for those that it starts from now on: effective
 * ones, and permitted ones, among which they are, that can be made effective again. What it has not got
 * it does not get. 0 or the errno of capset(2): all is as it was.
 */
int capabilities_keep(uint64_t effective, uint64_t permitted);

/* Have no program that the thread executes get more than it has. */
void capabilities_gain_no_more(void);
