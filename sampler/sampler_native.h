/* SPDX-License-Identifier: MIT */
/*
 * Samples with C frames of a running process, which is never stopped. The kernel copies a
 * thread's registers and stack each time it has used a period of CPU time (perf_events.h). If
 * stacks are read in the same interrupts (sampler_interrupts.h), Python's frames are of the same
 * moment. Otherwise a look reads them afterwards, and evidence shows whether they match; a gap
 * replaces what may have changed. Waiting threads are sampled at the ticks:
 * /proc/PID/task/TID/syscall shows where they are.
 */
#pragma once

#include "procmem/sched/perf_events.h"
#include "sampler/sampler.h"
#include "symbols/elf/image_source.h"

/*
 * Bytes of stack that are copied. Recursions through C of 40 calls and more take 16 KiB; longer
 * stacks have a gap at the outer end.
 */
#define SAMPLER_NATIVE_STACK_BYTES 32768

/* Stacks with more C frames have a gap. SAMPLER_NATIVE_STACK_BYTES cannot hold that many. */
#define SAMPLER_NATIVE_MAX_FRAMES 2048

/* Exact counters, and how the samples were taken. */
struct sampler_native_stats {
	bool is_proven;	   /* C and Python frames are of one instant; otherwise there is evidence */
	bool is_user_only; /* the kernel does not report threads while they are in the kernel */
	uint64_t nr_stacks; /* emitted with C frames */
	uint64_t nr_c_gaps; /* of those, stacks whose C frames have a gap */
	/* of those, stacks where a gap replaces some of Python's frames */
	uint64_t nr_python_gaps;
	uint64_t nr_without_copy; /* samples of interrupts whose copies were lost */
	/* copies of threads that Python does not know, or no longer knows */
	uint64_t nr_foreign_copies;
};

struct sampler_native;

/* Arguments of sampler_native_create(); all pointers are borrowed. */
struct sampler_native_options {
	const struct process *process;
	struct remote_memory *memory;
	struct image_source *images;
	struct sampler *sampler;
	uint64_t period_ns;	/* CPU time of a thread between two samples */
	bool keeps_trampolines; /* as in native_stacks.h */
	bool kernel_frames;	/* with frames of the kernel */
};

/*
 * Prepare to sample the threads of a sampler with their C frames, before its first tick; the
 * sampler uses the result while it exists. If it has interrupts, they are those of the events
 * made here. If running threads cannot have C frames (the kernel does not copy stacks, or not for
 * us), *ret_why explains it in a sentence, and only waiting threads have C frames; otherwise it
 * is unchanged. *ret_why_no_kernel explains likewise why kernel frames are missing, if they were
 * requested. Returns 0, -ENOMEM, -ESRCH. Call sampler_native_destroy(), which accepts NULL,
 * before the sampler and its interrupts are destroyed.
 */
int sampler_native_create(const struct sampler_native_options *options,
			  struct sampler_native **ret_native, struct message *ret_why,
			  struct message *ret_why_no_kernel);
void sampler_native_destroy(struct sampler_native *native);

const struct sampler_native_stats *sampler_native_stats(const struct sampler_native *native);
const struct perf_events_stats *sampler_native_events(const struct sampler_native *native);
