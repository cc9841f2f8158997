/* SPDX-License-Identifier: MIT */
/*
 * Moments in which a process stands still. A real-time thread on each of its CPUs sleeps until
 * the same moment, by a timer of that CPU, and then keeps it. Nobody is woken or signalled, so
 * whoever ran there goes on as if nothing had been. It makes no difference how late a thread of
 * ours comes: in the kernel, where it cannot be preempted, the process changes no Python frame.
 *
 * A thread that is held may have the lock of the memory map, and whoever reads that memory then
 * goes to sleep. The standstill is lost then, and the process stopped: before a CPU is let go each
 * of its threads has a SIGSTOP to take, which it does on its way out of the kernel.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/process.h"

struct standstill;

/*
 * Standstills of the process, borrowed, the first at first_ns of CLOCK_MONOTONIC. The caller
 * becomes the real-time thread of one of the CPUs. 0 or negative errno (-EPERM: no privilege).
 */
int standstill_create(const struct process *process, uint64_t first_ns,
		      struct standstill **ret_still);

/* Wait for the next one, which then goes on until standstill_end(). */
void standstill_wait(struct standstill *still);

/*
 * Whether the standstill was lost: the caller has slept since standstill_wait(), and what it read
 * last is of no moment.
 */
bool standstill_is_lost(const struct standstill *still);

/* Of a lost one: wait until the process stands still again. 0; -ETIMEDOUT or another errno. */
int standstill_regain(struct standstill *still);

/* End it, and have the next one at next_ns, behind a lost one 0.3 ms later; 0: there is none. */
void standstill_end(struct standstill *still, uint64_t next_ns);

/* Behind the last standstill_end(). It accepts NULL. */
void standstill_destroy(struct standstill *still);
