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
 * sentence.
 */
int sampler_interrupts_create(struct sampler *sampler,
			      const struct sampler_interrupts_options *options,
			      struct sampler_interrupts **ret_interrupts, struct message *reterr);

/*
 * Destroy them, but for the program in the kernel, which does nothing until the next ones are created with
 * it. The caller hands it on or closes it (interrupts_close()). It has to come before the sampler's end.
 */
struct interrupts *sampler_interrupts_release(struct sampler_interrupts *interrupts);

/* The program in the kernel; borrowed until then. */
struct interrupts *sampler_interrupts_program(const struct sampler_interrupts *interrupts);
