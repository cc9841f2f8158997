/* SPDX-License-Identifier: MIT */
/*
 * What the threads of a process do inside of the kernel, as functions that samples have for
 * frames: of a thread that runs by the addresses that the kernel copied with its stack, of one that
 * waits by the names that the kernel writes for it (procmem/sched/kernel_stack.h).
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

/* The path of functions of the kernel that are in no module, and the name of one that has none. */
#define KERNEL_FRAMES_PATH    "[kernel]"
#define KERNEL_FRAMES_UNNAMED "??"

/* All zero it tells nothing of any thread. Private but for what the functions below say. */
struct kernel_frames {
	const struct process *process; /* borrowed */
	struct sampler *sampler;       /* borrowed; has the functions */
	struct kernel_names *names;    /* NULL: of addresses nothing is told */
	bool tells_waiting;
	struct kernel_stack stack;
	const struct function *functions[PERF_RECORD_MAX_KERNEL_FRAMES]; /* innermost first */
	uint32_t nr_functions;
};

/*
 * Prepare to tell the frames of a process's threads, which is borrowed like the sampler. What
 * cannot be told *ret_why says in a sentence. 0 or -ENOMEM. kernel_frames_close() accepts what is
 * zero.
 */
int kernel_frames_open(struct kernel_frames *kernel, const struct process *process,
		       struct sampler *sampler, struct message *ret_why);
void kernel_frames_close(struct kernel_frames *kernel);

/*
 * Have functions be those at the addresses that a thread which runs is at: where it is, then
 * return addresses, PERF_RECORD_MAX_KERNEL_FRAMES at most. 0 or -ENOMEM.
 */
int kernel_frames_take(struct kernel_frames *kernel, const uint64_t *addrs, uint32_t nr_addrs);

/*
 * Have functions be those that thread tid waits in: none where that cannot be told. 0 or -ENOMEM.
 * That it waits still is to be asked behind it.
 */
int kernel_frames_wait(struct kernel_frames *kernel, pid_t tid);
