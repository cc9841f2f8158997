/* SPDX-License-Identifier: MIT */
/*
 * Events of all CPUs, which interrupt whichever thread runs there, instead of one event per thread.
 *
 * CPUs that come online later have no event.
 */
#pragma once

#include "sampler/bpf/interrupts_state.h"

/*
 * Replace the events of threads, for all processes of the program, present and future. Returns 0,
 * also if that was done before; -EPERM, -EMFILE, -ENOMEM, or the errno of a system call: then
 * nothing has changed.
 */
int interrupts_cpus_open(struct interrupts *interrupts);
void interrupts_cpus_close(struct interrupts *interrupts);

/* Let them interrupt as long as a process is enabled. */
void interrupts_cpus_enable(const struct interrupts *interrupts);
