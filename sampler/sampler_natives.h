/* SPDX-License-Identifier: MIT */
/*
 * Samples with C frames of a running process, which is never stopped: the kernel copies the
 * registers and the stack of a thread when it has used so much CPU time (perf_events.h). Where
 * stacks are read in the same interrupts (sampler_interrupts.h), Python's frames are of that very
 * moment. Elsewhere a look tells them behind it, and evidence says whether they are: what may have
 * changed is a hole. Threads that wait have samples at the ticks: /proc/PID/task/TID/syscall tells
 * where they stand.
 */
#pragma once

#include "procmem/sched/perf_events.h"
#include "sampler/sampler.h"
#include "symbols/elf/image_source.h"

/*
 * Bytes of a stack that are copied: recursions of Python through C of 40 calls and more have
 * 16 KiB; what is longer has a hole at its outer end.
 */
#define SAMPLER_NATIVES_STACK_BYTES 32768

/* Stacks of more C frames have a hole: of so many bytes none has. */
#define SAMPLER_NATIVES_MAX_FRAMES 2048

/* Exact counters, and how they came about. */
struct sampler_natives_stats {
	bool are_proven;    /* C frames and Python's are of one instant; else evidence tells */
	bool user_only;	    /* the kernel does not tell of threads while they are inside of it */
	uint64_t nr_stacks; /* handed on with C frames */
	uint64_t nr_broken; /* of those, so many whose C frames have a hole */
	uint64_t nr_python_holed; /* and so many where one stands for some of Python's frames */
	uint64_t nr_undumped;	  /* samples of interrupts whose copies were lost */
	uint64_t nr_foreign;	  /* dumps of threads that Python does not know, or not any more */
};

struct sampler_natives;

/* What sampler_natives_create() is given; all but the period is borrowed. */
struct sampler_natives_options {
	const struct process *process;
	struct remote_memory *memory;
	struct image_source *images;
	struct sampler *sampler;
	uint64_t period_ns;	/* CPU time of a thread between two samples */
	bool keeps_trampolines; /* as in native_stacks.h */
	bool tells_kernel;	/* frames of the kernel, too */
};

/*
 * Prepare to sample the threads of a sampler with their C frames, before its first tick; it does so
 * while they are there. If it has interrupts they are those of the events here. If the frames of
 * threads that run cannot be told (the kernel does not copy stacks, or not for us) *ret_why says so
 * in a sentence, and only threads that wait have C frames; else it is left as it is. Of the
 * kernel's frames *ret_why_no_kernel says likewise why there are none, if asked. 0, -ENOMEM,
 * -ESRCH. sampler_natives_destroy() accepts NULL; it has to come before the sampler's, and that of
 * its interrupts.
 */
int sampler_natives_create(const struct sampler_natives_options *options,
			   struct sampler_natives **ret_natives, struct message *ret_why,
			   struct message *ret_why_no_kernel);
void sampler_natives_destroy(struct sampler_natives *natives);

const struct sampler_natives_stats *sampler_natives_stats(const struct sampler_natives *natives);
const struct perf_events_stats *sampler_natives_events(const struct sampler_natives *natives);
