/* SPDX-License-Identifier: MIT */
/*
 * What the threads of a process do inside of the kernel, as functions for the frames of samples.
 * For a running thread they come from the addresses that the kernel copied with its stack, for a
 * waiting one from the names that the kernel reports (procmem/sched/kernel_stack.h).
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "procmem/message.h"
#include "procmem/process.h"
#include "procmem/sched/kernel_stack.h"
#include "procmem/sched/perf_record.h"
#include "sampler/sampler.h"
#include "symbols/elf/kernel_names.h"

/* The path of kernel functions that are in no module, and the name of unnamed ones. */
#define KERNEL_FRAMES_PATH    "[kernel]"
#define KERNEL_FRAMES_UNNAMED "??"

/* All zero: no kernel frames. Private, except for what the functions below set. */
struct kernel_frames {
	const struct process *process; /* borrowed */
	struct sampler *sampler;       /* borrowed; owns the functions */
	struct kernel_names *names;    /* NULL: addresses cannot be named */
	bool has_waiting;
	struct kernel_stack stack;
	const struct function *functions[PERF_RECORD_MAX_KERNEL_FRAMES]; /* innermost first */
	uint32_t nr_functions;
};

/*
 * Prepare to find the kernel frames of a process's threads; process and sampler are borrowed.
 * *ret_why explains in a sentence what is not available. Returns 0 or -ENOMEM.
 * kernel_frames_close() accepts a struct that is all zero.
 */
int kernel_frames_open(struct kernel_frames *kernel, const struct process *process,
		       struct sampler *sampler, struct message *ret_why);
void kernel_frames_close(struct kernel_frames *kernel);

/*
 * Set functions to those at the addresses of a running thread: the current one, then return
 * addresses, at most PERF_RECORD_MAX_KERNEL_FRAMES. Returns 0 or -ENOMEM.
 */
int kernel_frames_set_running(struct kernel_frames *kernel, const uint64_t *addrs,
			      uint32_t nr_addrs);

/*
 * Set functions to those that thread tid waits in, or to none if they are unknown. The caller
 * must check afterwards that the thread still waits. Returns 0 or -ENOMEM.
 */
int kernel_frames_set_waiting(struct kernel_frames *kernel, pid_t tid);
