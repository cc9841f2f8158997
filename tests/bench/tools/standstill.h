/* SPDX-License-Identifier: MIT */
/*
 * Moments in which a process stands still. A real-time thread on each of its CPUs sleeps until the
 * same moment, by a timer of that CPU, and then keeps the CPU. No thread is woken or signalled, so
 * those that ran there go on as if nothing had happened. A real-time thread may be late without
 * harm: it is late only while the process is in the kernel and cannot be preempted, and there the
 * process changes no Python frame.
 *
 * A thread that is held may have the lock of the memory map, and then a caller that reads the
 * memory goes to sleep. In that case the standstill is lost, and the process is stopped: before a
 * CPU is let go, each of the process's threads has a SIGSTOP pending, which it takes on its way
 * out of the kernel.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/process.h"

struct standstill;

/*
 * Begin standstills of the process, the first at first_ns of CLOCK_MONOTONIC. The caller becomes
 * the real-time thread of one of the CPUs. process is borrowed until standstill_destroy().
 * Returns 0 or a negative errno (-EPERM: no privilege).
 */
int standstill_create(const struct process *process, uint64_t first_ns,
		      struct standstill **ret_still);

/* Wait for the next standstill, which lasts until standstill_end(). */
void standstill_wait(struct standstill *still);

/*
 * Whether the standstill was lost: the caller has slept since standstill_wait(), and what it read
 * last is not of one instant.
 */
bool standstill_is_lost(const struct standstill *still);

/*
 * After a standstill was lost, wait until the process has stopped. Returns 0, -ETIMEDOUT or another
 * negative errno.
 */
int standstill_regain(struct standstill *still);

/*
 * End the standstill. The next one is at next_ns, 0.3 ms later if this one was lost; 0: there is no
 * next one.
 */
void standstill_end(struct standstill *still, uint64_t next_ns);

/* Only after standstill_end() with 0. Accepts NULL. */
void standstill_destroy(struct standstill *still);
