/* SPDX-License-Identifier: MIT */
/*
 * Which of two threads the scheduler prefers by their policies, priorities and nice values. Source:
 * sched(7), sched_getscheduler(2), getpriority(2).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Whether the calling thread has a real-time policy: it preempts any thread at once, except those
 * of a higher or equal priority.
 */
bool sched_policy_is_real_time(void);

/* Whether thread tid has a real-time policy that prevents the calling thread from preempting it. */
bool sched_policy_is_outranked(pid_t tid);

/*
 * Whether the scheduler lets the calling thread preempt thread tid: tid neither outranks it nor has
 * a better nice value, and the calling thread is not SCHED_IDLE unless tid is, too. False if
 * unknown.
 */
bool sched_policy_may_preempt(pid_t tid);
