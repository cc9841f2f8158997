/* SPDX-License-Identifier: MIT */
/*
 * Moments in which nothing but this process runs on the CPUs of another: a real-time thread
 * on each of them sleeps until the same moment, by a timer of that CPU, and then keeps it.
 * Nobody is woken or signalled, so whoever ran there goes on as if nothing had been.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct standstill;

/*
 * A standstill of the CPUs that process pid may run on, at first_ns of CLOCK_MONOTONIC. The
 * caller becomes one of the real-time threads. 0 or negative errno (-EPERM: no privilege).
 */
int standstill_create(pid_t pid, uint64_t first_ns, struct standstill **ret_still);

/*
 * Wait for the next standstill. How much later than its moment the last of the CPUs came into
 * our hands, in ns.
 */
uint64_t standstill_wait(struct standstill *still);

/* Whether the caller has slept since: somebody else may have run then. */
bool standstill_is_broken(const struct standstill *still);

/* End it, and have the next one at next_ns; 0: there is none. */
void standstill_end(struct standstill *still, uint64_t next_ns);

/* Behind the last standstill_end(). It accepts NULL. */
void standstill_destroy(struct standstill *still);
