/* SPDX-License-Identifier: MIT */
/*
 * The inside of sampler_natives, for the files that make it up: sampler_natives.c knows what is mapped
 * and puts C frames and Python's together, sampler_natives_dumped.c has the copies of stacks that
 * nothing proves to be of a look's moment, sampler_natives_waiting.c the threads that wait.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/task.h"
#include "sampler/kernel_frames.h"
#include "sampler/loop_bridge.h"
#include "sampler/recent_maps.h"
#include "sampler/sampler_natives.h"
#include "sampler/sampler_state.h"
#include "sampler/waiting_samples.h"
#include "sampler/waiting_stack.h"

/* What a sample with details goes through to get the C frames that were unwound last. */
struct merge_sink {
	struct sample_sink sink;
	struct sampler_natives *natives;
	struct sample_sink *next;
	uint32_t
		nr_told; /* of the frames that people see the outer ones; a hole stands for the others */
};

/* So many looks tell how little CPU time a thread may use between a copy of its stack and a look. */
enum { EVIDENCE_LOOKS = 16 };

/* What a look reads of a thread whose stack was copied before. */
struct evidence {
	const struct perf_dump *dump; /* borrowed; NULL: none is wanted */
	bool is_read;		      /* by the look under way, all that follows */
	uint8_t *stack;		      /* as much as was copied, from the same address on; owned */
	uint64_t count_ns;	      /* of the event */
	struct loop_entry *entries;   /* of the thread's list; owned */
	uint64_t used_ns
		[EVIDENCE_LOOKS]; /* CPU time between the copies and the looks, of the last ones */
	uint32_t nr_used;
};

struct sampler_natives {
	struct sample_sink sink; /* what ticks are handed to */
	struct merge_sink merge;
	struct sample_sink *next; /* where all goes; of the run */
	struct sampler_natives_options options;
	struct perf_events events;
	bool has_events; /* else the stacks of threads that run are not told */
	struct recent_maps maps;
	struct native_stacks stacks;
	struct jit_frames *jit;
	struct kernel_frames kernel; /* of nothing, unless they are asked for */
	struct loop_bridge bridge;
	struct evidence evidence;
	struct waiting_stacks waiting;
	struct waiting_samples kept;
	const struct function *hole;
	struct sampler_natives_stats stats;
};

/* A thread of which no copy came for so long may wait. */
uint64_t sampler_natives_without_dump_ns(const struct sampler_natives *natives);

/* Read what is mapped, if that is due. 0 or an error of maps_read(), -ENOMEM. */
int sampler_natives_renew_modules(struct sampler_natives *natives, uint64_t now_ns);

/*
 * What has been unwound, whose memory is window: lead it over holes, by the entries of the list of
 * Python's frames that are of the same moment, and see whether what is mapped has to be read anew.
 */
void sampler_natives_complete(struct sampler_natives *natives, const struct loop_entry *entries,
			      uint32_t nr_entries, struct stack_window *window);

/* Give the stack that was unwound last the kernel's frames that natives->kernel has. */
void sampler_natives_enter_kernel(struct sampler_natives *natives);

/*
 * Hand on what is in the thread's list, with its entries and with the C frames of a copy of its stack, as
 * the sample; of the list the outer nr_told frames, and a hole for the others, if there are more. Errors of
 * sampler_tick().
 */
int sampler_natives_tell(struct sampler_natives *natives, const struct snapshot_thread *thread,
			 const struct loop_entry *entries, uint32_t nr_told,
			 const struct perf_dump *dump, struct sample sample);

/*
 * The sample of a thread that waits at place inside of the kernel, which tells two of its registers.
 * Errors of sampler_tick(); -EAGAIN: it does not stand there any more.
 */
int sampler_natives_take_waiting(struct sampler_natives *natives, struct snapshot_thread *thread,
				 const struct task_place *place, uint64_t now_ns);

/*
 * The sample of a thread that has been given a processor nr_runs times by now, if it has not run
 * since what is kept of it; *ret_err: errors of sampler_tick(). False: it has, or nothing is kept, or
 * who holds the GIL by now says that it was wrong.
 */
bool sampler_natives_take_again(struct sampler_natives *natives,
				const struct snapshot_thread *thread, uint64_t nr_runs,
				uint64_t now_ns, int *ret_err);
