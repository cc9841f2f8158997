/* SPDX-License-Identifier: MIT */
/*
 * The BPF programs of a run. A program is loaded for the first process that has its layout, clock
 * and PID namespace, and serves all others: loading takes some 10 ms of CPU time and rights that
 * may be given up once sampling begins.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/message.h"
#include "sampler/bpf/interrupts.h"
#include "sampler/bpf/interrupts_process.h"

/*
 * Limit on the programs, so on the builds of CPython times PID namespaces in a run: each has a
 * ring, and a record for each CPU. Further processes are refused.
 */
enum { MAX_INTERRUPTS_PROGRAMS = 32 };

/* All zero: no programs. */
struct interrupts_pool {
	struct interrupts *programs[MAX_INTERRUPTS_PROGRAMS]; /* owned */
	uint32_t nr_programs;
};

/* Unload all programs, from which all processes must be detached. Accepts NULL. */
void interrupts_pool_close(struct interrupts_pool *pool);

/*
 * Attach a process to the program that has the options, in whose layout the namespace is not set.
 * The program is loaded if there is none, and kept until the pool is closed. Errors of
 * interrupts_open() and interrupts_process_attach().
 */
int interrupts_pool_attach(struct interrupts_pool *pool, const struct interrupts_options *options,
			   const struct interrupts_process_options *process_options,
			   struct interrupts_process **ret_process, struct message *reterr);

/* The counters of all programs so far. */
void interrupts_pool_count(const struct interrupts_pool *pool, struct interrupt_counts *ret_counts);

/* Whether any program runs in interrupts of all CPUs by now (interrupts_use_cpus()). */
bool interrupts_pool_use_cpus(const struct interrupts_pool *pool);
