/* SPDX-License-Identifier: MIT */
/* What the files of struct interrupts share. */
#pragma once

#include <stdint.h>

#include "procmem/message.h"
#include "sampler/bpf/interrupt_program.h"
#include "sampler/bpf/interrupt_record.h"

struct interrupts_process;
struct interrupt_event;

struct interrupts {
	/* What was asked for. */
	struct interrupt_layout wanted_layout;
	uint64_t wanted_period_ns;
	uint32_t clock; /* enum interrupts_clock */

	struct interrupt_layout layout; /* the wanted one, with the clock */
	struct interrupt_walk *program;
	struct bpf_link *tick; /* the link of the program in the tick; NULL: there are events */
	uint64_t period_ns;
	uint32_t nr_of_period; /* number of a thread's ticks per period; 1: there are events */
	struct ring_buffer *ring;
	uint64_t nr_skipped_taken;	    /* interrupts_process_take_lost() */
	struct interrupt_event *cpu_events; /* instead of those of threads; NULL: none */
	uint32_t nr_cpu_events;

	/* The attached processes; the index is that of the program's. NULL: none. */
	struct interrupts_process *processes[INTERRUPT_MAX_PROCESSES];
	uint32_t nr_processes;
	uint32_t nr_enabled;
	uint64_t last_key;
	uint64_t period_bytes;		       /* size of the records of all threads in a period */
	struct interrupts_process *last_begun; /* whose handlers have begun in this drain */
};

/*
 * Deliver a record to its process: the ring's ring_buffer_sample_fn, whose context is interrupts.
 */
int interrupts_deliver(void *interrupts, void *record, size_t size);

/* Close the events of a process's threads: there are those of all CPUs. */
void interrupts_process_drop_events(struct interrupts_process *process);

/* Set the sentence for an error of loading or attaching. */
void interrupts_explain(int err, struct message *reterr);
