/* SPDX-License-Identifier: MIT */
/*
 * Samples of running threads, taken in their own interrupts (bpf/interrupts.h). Each stack is of
 * one instant by itself, regardless of the GIL, the CPU, and whether there is a GIL at all. No
 * CPU is held, and nothing is woken for a sample. Threads that use no CPU time are looked at in
 * ticks.
 */
#pragma once

#include "procmem/message.h"
#include "sampler/bpf/interrupts.h"
#include "sampler/bpf/interrupts_pool.h"
#include "sampler/sampler.h"

struct sampler_interrupts;

struct sampler_interrupts_options {
	uint64_t period_ns;	     /* CPU time of a thread between two of its samples */
	enum interrupts_clock clock; /* with sampler_native: INTERRUPTS_CALLER_EVENTS */
	bool is_new;		     /* it may end soon: interrupts_process_options */
	bool is_verbose;	     /* print the kernel's messages about the program to stderr */
	/* has or gets the program in the kernel; borrowed until sampler_interrupts_destroy() */
	struct interrupts_pool *pool;
};

/*
 * Make a sampler take its samples this way, from its next run on. Errors of
 * interrupts_pool_attach(), with a sentence. Call sampler_interrupts_destroy(), which accepts NULL,
 * before the sampler is destroyed.
 */
int sampler_interrupts_create(struct sampler *sampler,
			      const struct sampler_interrupts_options *options,
			      struct sampler_interrupts **ret_interrupts, struct message *reterr);
void sampler_interrupts_destroy(struct sampler_interrupts *interrupts);

/* The program in the kernel, which other samplers may use as well; borrowed from the pool. */
struct interrupts *sampler_interrupts_program(const struct sampler_interrupts *interrupts);
