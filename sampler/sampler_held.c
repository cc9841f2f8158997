/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "sampler/sampler_state.h"

int sampler_hold(struct sampler *sampler, uint64_t now_ns, bool *ret_held)
{
	int err;

	*ret_held = false;
	if (!held_copies_may_add(&sampler->held, now_ns))
		return 0;
	err = held_copies_add(&sampler->held, &sampler->snapshot, now_ns);
	if (err == -E2BIG)
		return 0;
	if (err)
		return err;
	sampler->stats.ticks++;
	*ret_held = true;
	return 0;
}

void sampler_choose_held(struct sampler *sampler, uint64_t now_ns)
{
	struct snapshot_thread *thread =
		sampler->holds ? held_copies_candidate(&sampler->held, &sampler->snapshot) : NULL;
	const struct sampled_thread *sampled;

	if (!thread || thread->is_new || frame_cache_is_unclear(&sampler->cache))
		return;
	sampled = &sampler->threads[thread->slot];
	if (!sampled->trimmed)
		held_copies_choose(&sampler->held, thread, &sampler->snapshot, &sampled->list,
				   now_ns);
}

/*
 * Count one that its walk does not prove. That a copy was interrupted, or code was met for the
 * first time, tells nothing of others: code that comes and goes is told by its counters.
 */
static void lose(struct sampler *sampler, struct sampled_thread *sampled, enum sample_loss loss)
{
	sampler->stats.lost[loss]++;
	sampled->list.walked.tick = 0; /* the copies that follow are not compared with its own */
	if (loss != LOSS_SLOW && loss != LOSS_CODE)
		held_copies_turn_off(&sampler->held, &sampler->snapshot);
}

/* Hand on what a held copy, which is in the thread's place, shows. */
static int sample_held(struct sampler *sampler, struct snapshot_thread *thread,
		       const struct held_copy *copy, struct sample_sink *sink)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	enum sample_loss loss;
	int err = sampler_thread_walk_held(sampler, thread, &copy->top, &loss);

	if (!err && sampler_stack_moved(sampled) &&
	    sampler_copy_is_slow(sampler, copy->copy_ns, 1)) {
		err = -EBADMSG;
		loss = LOSS_SLOW;
	}
	if (err == -EBADMSG) {
		lose(sampler, sampled, loss);
		return 0;
	}
	if (err)
		return err;
	frame_cache_watch(&sampler->cache, thread, &sampled->list);
	return sampler_thread_emit(sampler, thread, (struct sample){.time_ns = copy->time_ns},
				   sink);
}

/* The samples of all threads for the tick of a held copy. */
static int hand_on_tick(struct sampler *sampler, const struct held_copy *copy,
			struct sample_sink *sink)
{
	struct snapshot *snapshot = &sampler->snapshot;
	int err = 0;

	for (size_t i = 0; !err && i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];

		if (thread == sampler->held.thread)
			err = sample_held(sampler, thread, copy, sink);
		else if (thread->is_new || !thread->copied)
			continue;
		else if (thread->unchanged || thread->checked)
			err = sampler_thread_repeat(sampler, thread, copy->time_ns, sink);
		else
			sampler->stats.lost[LOSS_HELD]++;
	}
	return err;
}

/*
 * Whether no generator runs on top, and nothing in another chunk, a newer one or another
 * greenlet's. Nothing in the chunk tells of these: where they are seen they may have run before.
 */
static bool runs_in_chunk(const struct held_copies *held)
{
	struct stack_copy *stack = &held->thread->stack;
	const remote_addr addr = stack->current_frame_addr;

	return stack->newest_chunk_addr == held->chunk_addr &&
	       (!addr || addr == stack->base_frame_addr || stack_copy_holds(stack, addr));
}

/* Whether code objects are what they were, so far as is counted; else all are read again. */
static bool codes_stand(const struct held_copies *held)
{
	const struct code_clock *now = &held->thread->clock;

	return (!now->has_generation && !now->has_next_version) ||
	       code_clock_stands(&held->clock, now);
}

/* Whether what a full tick copied proves the copies that were held back before it. */
static bool is_proven(const struct sampler *sampler)
{
	const struct held_copies *held = &sampler->held;
	const struct snapshot_thread *thread = held->thread;

	return thread->copied && !thread->unchanged &&
	       !snapshot_is_collecting(&sampler->snapshot) && codes_stand(held) &&
	       runs_in_chunk(held);
}

int sampler_hand_on_held(struct sampler *sampler, struct sample_sink *sink)
{
	struct held_copies *held = &sampler->held;
	const struct held_copy *copy;
	int err = 0;

	if (!held->nr || !is_proven(sampler))
		return 0;
	while (!err && held_copies_show_next(held, &copy))
		err = hand_on_tick(sampler, copy, sink);
	return err;
}

void sampler_lose_held(struct sampler *sampler)
{
	struct held_copies *held = &sampler->held;
	const uint64_t nr_lost = held->nr - held->nr_shown;

	if (nr_lost)
		held_copies_turn_off(held, &sampler->snapshot);
	sampler->stats.lost[LOSS_HELD] += nr_lost * sampler->snapshot.nr_threads;
	held_copies_drop(held);
}
