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
#include "sampler/sampler.h"

struct sampler_interrupts;

struct sampler_interrupts_options {
	uint64_t period_ns;	     /* CPU time of a thread between two of its samples */
	enum interrupts_clock clock; /* with sampler_native: INTERRUPTS_CALLER_EVENTS */
	bool is_verbose;	     /* print the kernel's messages about the program to stderr */
	struct interrupts *reused;   /* from sampler_interrupts_release(), consumed; may be NULL */
};

/*
 * Make a sampler take its samples this way, from its next run on. Errors of interrupts_open(),
 * with a sentence.
 */
int sampler_interrupts_create(struct sampler *sampler,
			      const struct sampler_interrupts_options *options,
			      struct sampler_interrupts **ret_interrupts, struct message *reterr);

/*
 * Destroy them, except for the program in the kernel, which stays idle until it is used to create
 * the next ones. The caller passes it on or closes it (interrupts_close()). Call this before the
 * sampler is destroyed.
 */
struct interrupts *sampler_interrupts_release(struct sampler_interrupts *interrupts);

/* The program in the kernel; borrowed until sampler_interrupts_release(). */
struct interrupts *sampler_interrupts_program(const struct sampler_interrupts *interrupts);
