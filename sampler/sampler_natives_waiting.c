/* SPDX-License-Identifier: MIT */
/* Samples with C frames of threads that wait. */
#include <errno.h>
#include <stdlib.h>

#include "procmem/cleanup.h"
#include "sampler/python/loop_entries.h"
#include "sampler/sampler_natives_state.h"

/*
 * Unwind the stack of a thread that waits; *ret_entries, of its Python frames, is to be given to
 * free(). It must stand there still when all has been read: else the next tick has the time, -EAGAIN.
 */
static int unwind_waiting(struct sampler_natives *natives, struct snapshot_thread *thread,
			  const struct task_place *place, struct loop_entry **ret_entries)
{
	const struct sampler_natives_options *options = &natives->options;
	const struct sampled_thread *sampled = &options->sampler->threads[thread->slot];
	const struct frame_list *list = &sampled->list;
	cleanup_free struct loop_entry *entries = NULL;
	struct waiting_loops loops;
	int err = sampler_thread_look(options->sampler, thread, true);

	if (!err)
		err = loop_entries_read(&options->sampler->codes, thread->ref.addr, list, true,
					&entries);
	if (!err)
		err = waiting_loops_find(entries, list->nr_frames, natives->bridge.distance_bytes,
					 &loops);
	if (err)
		return err;
	jit_frames_set_time(natives->jit, clock_now_ns());
	waiting_stacks_unwind(&natives->waiting, place, &loops);
	free(loops.addrs);
	sampler_natives_complete(natives, entries, list->nr_frames, &natives->waiting.window);
	err = kernel_frames_wait(&natives->kernel, sampled->info->tid);
	if (err)
		return err;
	sampler_natives_enter_kernel(natives);
	if (task_check_place(options->process, sampled->info->tid, place))
		return -EAGAIN;
	*ret_entries = take_ptr(entries);
	return 0;
}

/* Whether a state stays as it is while its thread waits: another one might run it else. */
static bool stays(const struct sampler *sampler, const struct snapshot_thread *thread)
{
	return thread->proof.is_own || !snapshot_may_run(&sampler->snapshot, thread);
}

int sampler_natives_take_waiting(struct sampler_natives *natives, struct snapshot_thread *thread,
				 const struct task_place *place, uint64_t now_ns)
{
	struct sampler *sampler = natives->options.sampler;
	cleanup_free struct loop_entry *entries = NULL;
	struct detail_sink detailed;
	int err = unwind_waiting(natives, thread, place, &entries);

	if (err)
		return err;
	natives->stats.nr_stacks++;
	natives->stats.nr_broken += !natives->stacks.is_whole;
	natives->merge.nr_told = UINT32_MAX;
	detail_sink_init(&detailed, &sampler->codes, thread->ref.addr,
			 &sampler->threads[thread->slot].list, NULL, &natives->merge.sink);
	detailed.entries = entries; /* by now the thread may be elsewhere */
	/* What has a hole, or is not told to its top, may be told at the next tick. */
	natives->merge.next =
		natives->stacks.is_whole && stays(sampler, thread)
			? waiting_samples_keep(&natives->kept, place->nr_runs, natives->next)
			: natives->next;
	return sampler_thread_emit(sampler, thread, (struct sample){.time_ns = now_ns},
				   &detailed.sink);
}

bool sampler_natives_take_again(struct sampler_natives *natives,
				const struct snapshot_thread *thread, uint64_t nr_runs,
				uint64_t now_ns, int *ret_err)
{
	struct sampler *sampler = natives->options.sampler;
	const struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const struct waiting_sample *kept =
		waiting_samples_find(&natives->kept, sampled->info, nr_runs, now_ns);

	if (!kept || !stays(sampler, thread) ||
	    snapshot_holds_gil(&sampler->snapshot, thread) !=
		    ((kept->flags & SAMPLE_HOLDS_GIL) != 0))
		return false;
	natives->stats.nr_stacks++;
	*ret_err = sampler_thread_tell(sampler, thread, waiting_sample_at(kept, now_ns),
				       natives->next);
	return true;
}
