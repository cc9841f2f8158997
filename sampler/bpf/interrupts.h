/* SPDX-License-Identifier: MIT */
/*
 * A BPF program (interrupt_walk.bpf.c) that takes samples in the interrupts of other processes'
 * threads. It samples any number of processes with the same layout (interrupts_process.h), of which
 * each thread has an event that interrupts it after a period of CPU time; threads that it makes
 * later inherit one from the kernel. Alternatively the caller has such events (perf_events.h),
 * which record more about the same interrupts: record.count_ns identifies them. Nothing is woken
 * for a sample, except for one that lacks memory; the caller drains records when it likes, while
 * there is room.
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
#include "sampler/bpf/interrupt_record.h"

struct interrupts;

/* What interrupts threads. */
enum interrupts_clock {
	INTERRUPTS_OWN_EVENTS,	  /* one event per thread, or later one per CPU */
	INTERRUPTS_CALLER_EVENTS, /* the caller's events, which run interrupts_program_fd() */
	INTERRUPTS_TICK,	  /* the kernel's timer tick, which interrupts at no extra cost */
};

struct interrupts_options {
	/* from interrupts_layout(), unchanged except for the processes' PID namespace */
	struct interrupt_layout layout;
	uint64_t period_ns; /* approximate CPU time of a thread between two interrupts */
	enum interrupts_clock clock;
	bool is_verbose; /* print messages of libbpf and the kernel to stderr */
};

/*
 * Load the program. Returns 0; -EPERM or -ENOTSUP (not possible with this kernel or this build of
 * pysample), each with a sentence; -ENOMEM, or the errno of a system call. interrupts_close()
 * requires that all processes are detached, leaves nothing behind, and accepts NULL.
 */
int interrupts_open(const struct interrupts_options *options, struct interrupts **ret_interrupts,
		    struct message *reterr);
void interrupts_close(struct interrupts *interrupts);

/* Whether a program that was opened with other options could be used instead. */
bool interrupts_have_options(const struct interrupts *interrupts,
			     const struct interrupts_options *options);

/* The program, for the caller's own events. */
int interrupts_program_fd(const struct interrupts *interrupts);

/* Whether the program runs in interrupts of all CPUs by now (interrupts_process_use_cpus()). */
bool interrupts_use_cpus(const struct interrupts *interrupts);

/* The period of the options, rounded to a multiple of the tick for INTERRUPTS_TICK. */
uint64_t interrupts_period_ns(const struct interrupts *interrupts);

/*
 * The descriptor, owned by the program, that becomes readable for a record that lacks something
 * that was not in memory. Then records should be drained soon, since all later ones may end there,
 * too. It stays readable as long as there are any records: wait for it with EPOLLET.
 */
int interrupts_wake_fd(const struct interrupts *interrupts);

/* Add the counters so far to *sums. */
void interrupts_count(const struct interrupts *interrupts, struct interrupt_counts *sums);
