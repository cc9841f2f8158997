/* SPDX-License-Identifier: MIT */
#include "procmem/cpu_follower.h"

#include <errno.h>
#include <sys/resource.h>

/*
 * Going costs two system calls and a switch to another processor, as much as two looks or so: it is
 * done for a thread that stays, and the less readily the shorter the last ones stayed.
 */
enum { LEAST_NEEDED = 3, MOST_NEEDED = 96, LONG_STAY = 32 };

/* After so long without a dump nobody is followed. */
#define REST_NS 200000000u

/* So long the thread keeps away first, after it had to wait. */
#define PAUSE_NS 10000000000u

void cpu_follower_init(struct cpu_follower *follower, uint64_t late_ns)
{
	*follower = (struct cpu_follower){
		.late_ns = late_ns,
		.at_cpu = CPU_FOLLOWER_NOWHERE,
		.nr_needed = LEAST_NEEDED,
		.cpu = CPU_FOLLOWER_NOWHERE,
		.pause_ns = PAUSE_NS,
	};
	follower->is_on = !sched_getaffinity(0, sizeof(follower->usual), &follower->usual) &&
			  CPU_COUNT(&follower->usual) > 1;
}

/* Go to a processor. False: that is not allowed (any more). */
static bool enter(struct cpu_follower *follower, uint32_t cpu)
{
	cpu_set_t there;

	CPU_ZERO(&there);
	CPU_SET(cpu, &there);
	if (sched_setaffinity(0, sizeof(there), &there))
		return false;
	follower->at_cpu = cpu;
	follower->nr_there = 0;
	return true;
}

/* That fails where the usual ones were taken away, by which the thread is free, too. */
static void leave(struct cpu_follower *follower)
{
	const uint32_t nr_needed =
		follower->nr_there < LONG_STAY ? 2 * follower->nr_needed : LEAST_NEEDED;

	follower->nr_needed = nr_needed < MOST_NEEDED ? nr_needed : MOST_NEEDED;
	(void)sched_setaffinity(0, sizeof(follower->usual), &follower->usual);
	follower->at_cpu = CPU_FOLLOWER_NOWHERE;
}

void cpu_follower_rest(struct cpu_follower *follower)
{
	follower->nr_same = 0;
	if (follower->is_on && follower->at_cpu != CPU_FOLLOWER_NOWHERE)
		leave(follower);
}

static void keep_away(struct cpu_follower *follower, uint64_t now_ns)
{
	follower->resume_ns = now_ns + follower->pause_ns;
	if (follower->pause_ns < UINT64_MAX / 4)
		follower->pause_ns *= 2;
}

void cpu_follower_note(struct cpu_follower *follower, pid_t tid, uint32_t cpu, uint64_t time_ns,
		       uint64_t waited_ns)
{
	if (!follower->is_on)
		return;
	if (follower->at_cpu != CPU_FOLLOWER_NOWHERE) {
		follower->nr_there += follower->nr_there < LONG_STAY;
		if (waited_ns > follower->late_ns)
			keep_away(follower, time_ns + waited_ns);
	}
	follower->nr_same = follower->cpu != cpu	      ? 1
			    : follower->nr_same < MOST_NEEDED ? follower->nr_same + 1
							      : MOST_NEEDED;
	follower->cpu = cpu;
	follower->tid = tid;
	follower->last_ns = time_ns;
}

/* Where to run from now on, as far as dumps tell; CPU_FOLLOWER_NOWHERE: anywhere. */
static uint32_t choose(const struct cpu_follower *follower, uint64_t now_ns)
{
	const bool is_usual =
		follower->cpu < CPU_SETSIZE && CPU_ISSET(follower->cpu, &follower->usual);

	if (!is_usual || now_ns < follower->resume_ns ||
	    (now_ns > follower->last_ns && now_ns - follower->last_ns >= REST_NS))
		return CPU_FOLLOWER_NOWHERE;
	return follower->cpu == follower->at_cpu || follower->nr_same >= follower->nr_needed
		       ? follower->cpu
		       : CPU_FOLLOWER_NOWHERE;
}

/* Whether we come to run beside a thread: it has no policy or weight that puts us last. */
static bool lets_us_run(pid_t tid)
{
	const int policy = sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK;

	return (policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE) &&
	       getpriority(PRIO_PROCESS, (id_t)tid) >= getpriority(PRIO_PROCESS, 0);
}

void cpu_follower_go(struct cpu_follower *follower, uint64_t now_ns)
{
	const uint32_t cpu = follower->is_on ? choose(follower, now_ns) : follower->at_cpu;

	if (cpu == follower->at_cpu)
		return;
	if (follower->at_cpu != CPU_FOLLOWER_NOWHERE)
		leave(follower);
	else if (!lets_us_run(follower->tid) || !enter(follower, cpu))
		keep_away(follower, now_ns);
}
