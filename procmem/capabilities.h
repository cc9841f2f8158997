/* SPDX-License-Identifier: MIT */
/*
 * The capabilities of the calling thread: capabilities(7). In a set, bit n is capability n of
 * linux/capability.h.
 *
 * Source: capget(2), prctl(2); kernel/capability.c, security/commoncap.c.
 */
#pragma once

#include <stdint.h>

#define CAPABILITY(number) (UINT64_C(1) << (number))

/* Returns the effective set of the calling thread, or all bits if the kernel does not report it. */
uint64_t capabilities_effective(void);

/*
 * Reduce the calling thread to these capabilities; threads that it starts later inherit them.
 * Capabilities in permitted can be made effective again later; effective is a subset of it. No
 * capability is added. Returns 0, or the errno of capset(2), and then nothing has changed.
 */
int capabilities_keep(uint64_t effective, uint64_t permitted);

/* Set no_new_privs: a program that the thread executes cannot gain privileges. */
void capabilities_set_no_new_privs(void);
