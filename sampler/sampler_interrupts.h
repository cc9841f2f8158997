/* SPDX-License-Identifier: MIT */
/*
 * Samples of threads that run, taken in their own interrupts (bpf/interrupts.h): each stack is of
 * one instant by itself, whoever holds the GIL, on whatever CPU, and without a GIL, too. No CPU is
 * held, and nobody is woken for a sample. Threads that use no CPU time are looked at in ticks, as
 * ever.
 */
#pragma once

#include "procmem/message.h"
#include "sampler/bpf/interrupts.h"
#include "sampler/sampler.h"

struct sampler_interrupts;

struct sampler_interrupts_options {
	uint64_t period_ns;	     /* CPU time of a thread between two of its samples */
	enum interrupts_clock clock; /* sampler_natives has users' events */
	bool is_verbose;	     /* what the kernel says of the program goes to stderr */
	struct interrupts *before;   /* of sampler_interrupts_release(), taken over; may be NULL */
};

/*
 * Have the samples of a sampler be such, from its next run on. Errors of interrupts_open(), with a
 * sentence. sampler_interrupts_destroy() accepts NULL; it has to come before the sampler's.
 */
int sampler_interrupts_create(struct sampler *sampler,
			      const struct sampler_interrupts_options *options,
			      struct sampler_interrupts **ret_interrupts, struct message *reterr);
void sampler_interrupts_destroy(struct sampler_interrupts *interrupts);

/*
 * Destroy them, but for the program in the kernel, which does nothing until the next ones are created with
 * it. NULL of NULL; the caller hands it on or closes it (interrupts_close()).
 */
struct interrupts *sampler_interrupts_release(struct sampler_interrupts *interrupts);

/* CPU time of a thread between two of its samples. */
uint64_t sampler_interrupts_period_ns(const struct sampler_interrupts *interrupts);

int sampler_interrupts_program_fd(const struct sampler_interrupts *interrupts);

/* The program's counters so far. */
void sampler_interrupts_count(const struct sampler_interrupts *interrupts,
			      struct interrupt_counts *ret_counts);
