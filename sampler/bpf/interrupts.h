/* SPDX-License-Identifier: MIT */
/*
 * Samples that a BPF program (interrupt_walk.bpf.c) takes in the target's own interrupts. Each
 * thread has an event that interrupts it after a period of CPU time; threads that it makes later
 * inherit one from the kernel. Alternatively the caller has such events (perf_events.h), which
 * record more about the same interrupts: record.count_ns identifies them. Nothing is woken for a
 * sample, except for one that lacks memory; the caller drains records when it likes, while there is
 * room.
 *
 * A third way makes no events: the program runs in the interrupt of the kernel's own tick, which
 * interrupts running threads anyway. It never meets threads that wake and sleep in step with the
 * tick.
 *
 * Needs CAP_BPF and CAP_PERFMON, or root, and Linux 5.17 (bpf_loop).
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
	INTERRUPTS_OWN_EVENTS,	  /* one event per thread */
	INTERRUPTS_CALLER_EVENTS, /* the caller's events, which run interrupts_program_fd() */
	INTERRUPTS_TICK,	  /* the kernel's timer tick, which interrupts at no extra cost */
};

/* Arguments of interrupts_open(); process is borrowed until interrupts_close(). */
struct interrupts_options {
	const struct process *process;
	struct interrupt_layout layout; /* from interrupts_layout(), unchanged */
	uint64_t period_ns; /* approximate CPU time of a thread between two interrupts */
	enum interrupts_clock clock;
	bool is_verbose; /* print messages of libbpf and the kernel to stderr */
	/*
	 * Those of the program that the process has replaced (exec), paused; consumed in any
	 * case. If everything else is unchanged they are continued, so that nothing has to be
	 * loaded. May be NULL.
	 */
	struct interrupts *reused;
};

/*
 * Load the program and prepare to interrupt the threads of the process; interrupts_enable() starts
 * it. Returns 0; -EPERM or -ENOTSUP (not possible with this kernel or this build of pysample),
 * each with a sentence; -ESRCH, -ENOMEM, or the errno of a system call. interrupts_close() leaves
 * nothing behind and accepts NULL.
 */
int interrupts_open(const struct interrupts_options *options, struct interrupts **ret_interrupts,
		    struct message *reterr);
void interrupts_close(struct interrupts *interrupts);

/* The program, for the caller's own events. */
int interrupts_program_fd(const struct interrupts *interrupts);

/* The period of the options, rounded to a multiple of the tick for INTERRUPTS_TICK. */
uint64_t interrupts_period_ns(const struct interrupts *interrupts);

/* Start or stop interrupting. Returns 0 or the errno of a system call. */
int interrupts_enable(struct interrupts *interrupts, bool is_on);

/*
 * Set or replace what the program knows about thread own_tid, an id in its own PID namespace;
 * NULL: forget the thread. Returns 0; -ENOMEM, -E2BIG, -ENOENT (it was not known).
 */
int interrupts_set_thread(struct interrupts *interrupts, uint32_t own_tid,
			  const struct interrupt_thread *thread);

/* Let the code object at code_addr be reported again. */
void interrupts_forget_code(struct interrupts *interrupts, uint64_t code_addr);

/* Do not wake the caller for faults at addr, which cannot be read. Only the last address counts. */
void interrupts_ignore_fault(struct interrupts *interrupts, uint64_t addr);

/* Set the type of code objects: from now on no other object is reported as one. */
void interrupts_set_code_type(struct interrupts *interrupts, uint64_t code_type_addr);

/* Receives records, each valid during the call. Returns 0; a negative error ends the drain. */
struct interrupts_handler {
	int (*handle_stack)(void *context, const struct interrupt_record *record);
	int (*handle_code)(void *context, const struct interrupt_code *code);
	void *context;
};

/*
 * The descriptor that becomes readable, with an edge (EPOLLET), when a record lacks something that
 * was not in memory. Then records should be drained soon, since all later ones may end there, too.
 */
int interrupts_wake_fd(const struct interrupts *interrupts);

/* Deliver all pending records, oldest first. Returns 0 or the handler's error. */
int interrupts_drain(struct interrupts *interrupts, const struct interrupts_handler *handler);

/* The counters so far. */
void interrupts_count(const struct interrupts *interrupts, struct interrupt_counts *ret_counts);
