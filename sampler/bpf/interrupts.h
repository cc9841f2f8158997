/* SPDX-License-Identifier: MIT */
/*
 * Samples that are taken in the target's own interrupts, by a BPF program (interrupt_walk.bpf.c).
 * Each thread has an event that interrupts it when it has used so much CPU time; threads that it
 * makes later have one, too, as the kernel hands it on. Or the user has such events (perf_events.h),
 * which tell more of the same interrupts: record.count_ns says of which. Nobody is woken for a
 * sample, but for one that lacks what is not in memory: the user comes when it likes, as long as
 * there is room.
 *
 * Or no event is made, and the program runs in the interrupt of the kernel's own tick, in which a thread
 * that runs is anyway. What wakes and ends with the tick is never met then.
 *
 * It takes CAP_BPF and CAP_PERFMON, or root, and Linux 5.17 (bpf_loop).
 *
 * Source: perf_event_open(2); kernel/events/core.c (inherit_event(), perf_swevent_hrtimer());
 * kernel/trace/bpf_trace.c; kernel/bpf/ringbuf.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/message.h"
#include "procmem/process.h"
#include "sampler/bpf/interrupt_record.h"

struct interrupts;

/* What interrupts threads. */
enum interrupts_clock {
	INTERRUPTS_OWN_EVENTS,	 /* an event of each thread */
	INTERRUPTS_USERS_EVENTS, /* those of the user, who has them run interrupts_program_fd() */
	INTERRUPTS_TICK, /* the kernel's own timer tick, for whose interrupt nobody has to pay */
};

/* What it needs to know; process is borrowed until interrupts_close(). */
struct interrupts_options {
	const struct process *process;
	struct interrupt_layout layout; /* of interrupts_layout(), as it is */
	uint64_t period_ns;		/* CPU time of a thread between two interrupts, roughly */
	enum interrupts_clock clock;
	bool is_verbose; /* what libbpf and the kernel say goes to stderr */
	/*
	 * Those of the program that the process has replaced (exec), paused; taken over, whatever is
	 * returned. If all else is as it was they go on, so that nothing has to be loaded. May be NULL.
	 */
	struct interrupts *before;
};

/*
 * Load the program and prepare to interrupt the threads of the process, which begins with
 * interrupts_turn(). 0; -EPERM and a sentence, -ENOTSUP and a sentence (this kernel, or this build of
 * pysample, cannot), -ESRCH, -ENOMEM, or the errno of a system call. interrupts_close() leaves nothing
 * behind; it accepts NULL.
 */
int interrupts_open(const struct interrupts_options *options, struct interrupts **ret_interrupts,
		    struct message *reterr);
void interrupts_close(struct interrupts *interrupts);

/* The program, for events of the user's own. */
int interrupts_program_fd(const struct interrupts *interrupts);

/* The same as it is: with the tick a multiple of the tick's. */
uint64_t interrupts_period_ns(const struct interrupts *interrupts);

/* Begin to interrupt, or stop. 0 or the errno of a system call. */
int interrupts_turn(struct interrupts *interrupts, bool is_on);

/*
 * Say, or say anew, what thread own_tid, an id in its own PID namespace, has; NULL: forget it. 0;
 * -ENOMEM, -E2BIG, -ENOENT (it was not known).
 */
int interrupts_set_thread(struct interrupts *interrupts, uint32_t own_tid,
			  const struct interrupt_thread *thread);

/* Have the code object at code_addr told again. */
void interrupts_forget_code(struct interrupts *interrupts, uint64_t code_addr);

/* Wake nobody for faults at addr, which cannot be read: one address, the last one given. */
void interrupts_give_up(struct interrupts *interrupts, uint64_t addr);

/* Say what the type of code objects is: nothing else is told as one then. */
void interrupts_set_code_type(struct interrupts *interrupts, uint64_t code_type_addr);

/* Who takes records; each is valid during the call. 0, or a negative error, which ends the taking. */
struct interrupts_taker {
	int (*take_stack)(void *context, const struct interrupt_record *record);
	int (*take_code)(void *context, const struct interrupt_code *code);
	void *context;
};

/*
 * Sleep until a time of CLOCK_MONOTONIC, or until something could not be read that was not in memory:
 * then records are to be taken soon, as all that follow may end there.
 */
void interrupts_wait(struct interrupts *interrupts, uint64_t until_ns);

/* Hand on all records that there are, the oldest first. 0 or the taker's error. */
int interrupts_take(struct interrupts *interrupts, const struct interrupts_taker *taker);

/* The sums so far. */
void interrupts_count(const struct interrupts *interrupts, struct interrupt_counts *ret_counts);
