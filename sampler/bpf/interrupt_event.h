/* SPDX-License-Identifier: MIT */
/*
 * An event of perf_event_open(2), the CPU clock, that runs the program of interrupt_walk.bpf.c in
 * an interrupt after each period, either of one thread's CPU time or of one CPU's time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/bpf/interrupts_state.h"

struct bpf_link;

struct interrupt_event {
	int fd; /* owned by the link */
	struct bpf_link *link;
};

/*
 * Open an event, disabled: that of thread tid, an id in our PID namespace, which threads made by it
 * from now on inherit; or, if tid is -1, that of cpu, whichever thread it runs. cpu is -1 for a
 * thread. Returns 0; -EPERM; -EMFILE if no descriptor is left beyond the reserve of
 * procmem/descriptor_limit.h; -ENODEV if the CPU is offline; -ESRCH, or the errno of a system call.
 */
int interrupt_event_open(const struct interrupts *interrupts, pid_t tid, int cpu,
			 uint64_t period_ns, struct interrupt_event *ret_event);
void interrupt_event_close(const struct interrupt_event *event);

/* Returns 0 or the errno of a system call. */
int interrupt_event_enable(const struct interrupt_event *event, bool is_on);
