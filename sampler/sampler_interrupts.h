/* SPDX-License-Identifier: MIT */
/*
 * Samples of threads that run, taken in their own interrupts (bpf/interrupts.h): each stack is of one
 * instant by itself, whoever holds the GIL, on whatever CPU, and without a GIL, too. No CPU is held, and
 * nobody is woken for a sample. Threads that use no CPU time are looked at in ticks, as ever.
 */
#pragma once

#include "procmem/message.h"
#include "sampler/bpf/interrupts.h"
#include "sampler/sampler.h"

struct sampler_interrupts;

/*
 * Have the samples of a sampler be such, from its next run on, with so much CPU time of a thread between
 * two of them. clock: as of bpf/interrupts.h; sampler_natives has such events. is_verbose: what the kernel says of the program goes to stderr. Errors of
 * interrupts_open(), with a sentence. sampler_interrupts_destroy() accepts NULL; it has to come before
 * the sampler's.
 */
int sampler_interrupts_create(struct sampler *sampler, uint64_t period_ns,
			      enum interrupts_clock clock, bool is_verbose,
			      struct sampler_interrupts **ret_interrupts, struct message *reterr);
void sampler_interrupts_destroy(struct sampler_interrupts *interrupts);

/* CPU time of a thread between two of its samples. */
uint64_t sampler_interrupts_period_ns(const struct sampler_interrupts *interrupts);

int sampler_interrupts_program_fd(const struct sampler_interrupts *interrupts);

/* The program's counters so far. */
void sampler_interrupts_count(const struct sampler_interrupts *interrupts,
			      struct interrupt_counts *ret_counts);
