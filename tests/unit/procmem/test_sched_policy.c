/* SPDX-License-Identifier: MIT */
#include "procmem/sched/sched_policy.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/pipe_waiter.h"

/* Priority depends on nice values and policies: the lower one yields. */
Test(sched_policy, lower_priority_yields, .timeout = 60)
{
	const struct sched_param none = {.sched_priority = 0};
	const int nice_value = getpriority(PRIO_PROCESS, 0);
	const int policy = sched_getscheduler(0);
	struct pipe_waiter waiter;
	pid_t tid;

	if ((policy != SCHED_OTHER && policy != SCHED_BATCH) || nice_value > 17)
		cr_skip("the test does not run at normal priority");
	pipe_waiter_begin(&waiter);
	while (!(tid = __atomic_load_n(&waiter.tid, __ATOMIC_ACQUIRE)))
		(void)usleep(1000);
	cr_expect(sched_policy_may_preempt(tid), "equal priority");
	cr_assert(zero(int, setpriority(PRIO_PROCESS, 0, nice_value + 1)));
	cr_expect(not(sched_policy_may_preempt(tid)), "higher priority");
	cr_assert(zero(int, setpriority(PRIO_PROCESS, (id_t)tid, nice_value + 2)));
	cr_expect(sched_policy_may_preempt(tid), "lower priority");
	cr_assert(zero(int, sched_setscheduler(tid, SCHED_IDLE, &none)));
	cr_expect(sched_policy_may_preempt(tid), "idle policy");
	pipe_waiter_end(&waiter);
	cr_expect(not(sched_policy_may_preempt(0x7fffffff)), "no such thread");
}
