/* SPDX-License-Identifier: MIT */
/*
 * The inside of sampler_natives, for the files that make it up: sampler_natives.c follows the
 * threads and takes dumps, sampler_natives_waiting.c does those that wait.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procmem/task.h"
#include "sampler/call_names.h"
#include "sampler/code_index.h"
#include "sampler/dumped_stack.h"
#include "sampler/kernel_frames.h"
#include "sampler/loop_places.h"
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
	struct loop_places places;
	struct code_index index;
	struct call_names names;
	struct frame_list list;
	struct waiting_stacks waiting;
	struct waiting_samples kept;
	struct code hole;
	struct sampler_natives_stats stats;
};

/* A stack that is not whole may have led into a module that is new: then maps are read anew. */
void sampler_natives_judge_maps(struct sampler_natives *natives);

/* Give the stack that was unwound last the kernel's frames that natives->kernel has. */
void sampler_natives_enter_kernel(struct sampler_natives *natives);

/* What is known of a thread whose stack is in window, all of it borrowed; late: of that moment. */
struct dumped_stack sampler_natives_dumped_stack(struct sampler_natives *natives,
						 const struct snapshot_thread *thread,
						 struct stack_window *window,
						 const struct frame_list *late);

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
