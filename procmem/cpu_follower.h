/* SPDX-License-Identifier: MIT */
/*
 * The calling thread, kept on the processor of the thread that it looks at while there is one:
 * what is read of that is in this processor's caches then, and as both cannot run at once it is as
 * it was when it was interrupted. The other waits for each look, for as long as it takes.
 *
 * Where dumps (perf_record.h) come from several processors in turn the thread may run anywhere
 * again, as when none come for a while. It does not go where it would have to wait itself: to a
 * thread of a real-time policy or of a better nice value than its own; and where it turns out to
 * wait, because of others there, it keeps away from for longer each time.
 *
 * Source: sched_setaffinity(2), sched(7); where the own thread waits was measured.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CPU_FOLLOWER_NOWHERE UINT32_MAX

/* All zero it stays where it is. */
struct cpu_follower {
	bool is_on;
	cpu_set_t usual;    /* where the thread may run while it follows nobody */
	uint64_t late_ns;   /* who comes to run later than that has waited */
	uint32_t at_cpu;    /* where it has to run; CPU_FOLLOWER_NOWHERE: that is left open */
	uint32_t nr_there;  /* dumps since it went there */
	uint32_t nr_needed; /* so many in a row make it go */
	pid_t tid;	    /* of the last dump */
	uint32_t cpu;	    /* and where that came from */
	uint32_t nr_same;   /* dumps in a row from there */
	uint64_t last_ns;   /* of the last dump */
	uint64_t pause_ns;  /* how long it keeps away next time */
	uint64_t resume_ns; /* until then it follows nobody */
};

/*
 * Begin with the calling thread, which all other calls have to come from. Without a list of its
 * processors (the kernel has more than CPU_SETSIZE), and with one, it stays where it is.
 */
void cpu_follower_init(struct cpu_follower *follower, uint64_t late_ns);

/* Have the thread run again where it could before, until more dumps have come. */
void cpu_follower_rest(struct cpu_follower *follower);

/*
 * A dump of a thread, an id in our PID namespace, came from a processor; waited_ns is how long
 * before the calling thread came to run it could have. No system call.
 */
void cpu_follower_note(struct cpu_follower *follower, pid_t tid, uint32_t cpu, uint64_t time_ns,
		       uint64_t waited_ns);

/*
 * Go there, if it is not where the thread has to run by now: before it sleeps, best, as it is woken
 * there then. Most calls have nothing to do.
 */
void cpu_follower_go(struct cpu_follower *follower, uint64_t now_ns);
