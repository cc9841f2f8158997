/* SPDX-License-Identifier: MIT */
#include "procmem/sched/sched_policy.h"

#include <limits.h>
#include <sched.h>
#include <sys/resource.h>

static int policy_of(pid_t tid)
{
	return sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK;
}

/*
 * Returns the rank of a thread: its real-time priority, 0 for other policies, and INT_MAX for
 * SCHED_DEADLINE; -1 if unknown. A thread preempts any thread of lower rank.
 */
static int rank_of(pid_t tid)
{
	struct sched_param param;

	if (policy_of(tid) == SCHED_DEADLINE)
		return INT_MAX;
	if (sched_getparam(tid, &param))
		return -1;
	return param.sched_priority;
}

bool sched_policy_is_real_time(void)
{
	return rank_of(0) > 0;
}

bool sched_policy_is_outranked(pid_t tid)
{
	const int rank = rank_of(tid);

	return rank > 0 && rank >= rank_of(0);
}

bool sched_policy_may_preempt(pid_t tid)
{
	const int rank = rank_of(tid), own_rank = rank_of(0);

	if (rank < 0 || sched_policy_is_outranked(tid))
		return false;
	if (own_rank > 0)
		return true;
	if (policy_of(0) == SCHED_IDLE || policy_of(tid) == SCHED_IDLE)
		return policy_of(tid) == SCHED_IDLE;
	return getpriority(PRIO_PROCESS, (id_t)tid) >= getpriority(PRIO_PROCESS, 0);
}
