/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/python/frames.h"
#include "sampler/sampler_state.h"
#include "sampler/ticker.h"

/* So many links may be learnt in one tick for one thread; the rest at the next ones. */
enum { MAX_NEW_LINKS = 64 };

/*
 * So often a thread is copied again in one tick because of generators never seen before, or
 * of chunks; and so often at all: theirs are code objects that were never seen either.
 */
enum { MAX_RETAKES_FOR_LINKS = 4, MAX_RETAKES_FOR_CHUNKS = 4, MAX_RETAKES = 8 };

int sampler_thread_begin(struct sampler *sampler, const struct snapshot_thread *thread)
{
	struct sampled_thread *sampled;

	if (thread->slot >= sampler->nr_threads) {
		uint32_t nr = sampler->snapshot.nr_slots;
		struct sampled_thread *threads =
			reallocarray(sampler->threads, nr, sizeof(*threads));

		if (!threads)
			return -ENOMEM;
		memset(threads + sampler->nr_threads, 0,
		       (nr - sampler->nr_threads) * sizeof(*threads));
		sampler->threads = threads;
		sampler->nr_threads = nr;
	}
	sampled = &sampler->threads[thread->slot];
	if (!sampled->info)
		sampled->info = malloc(sizeof(*sampled->info));
	if (!sampled->info)
		return -ENOMEM;
	*sampled->info = (struct sample_thread){.id = sampler->nr_seen++, .slot = thread->slot};
	sampler_identify(sampler, thread, sampled);
	sampled->nr_same = 0;
	sampled->nr_shown = 0;
	sampled->nr_named = 0;
	sampled->collector = NOT_COLLECTING;
	sampler_cpu_begin(sampler, sampled);
	if (sampler->natives)
		sampler_natives_add(sampler->natives, sampled->info);
	sampled->first_ns = sampler->last_tick_ns;
	sampler->has_new_threads = true;
	sampled->last_ns = sampler->last_tick_ns;
	frame_cache_add_thread(&sampler->cache, thread);
	return 0;
}

/* Give back the room of stacks that were far deeper than any is now. */
static void fit_room(struct sampled_thread *sampled)
{
	struct frame_list *list = &sampled->list;
	struct frame *frames;

	if (sampled->most_frames < list->nr_frames)
		sampled->most_frames = list->nr_frames;
	if (++sampled->nr_walks < ROOM_TICKS)
		return;
	frame_list_fit(list, sampled->most_frames);
	if (sampled->max_frames > list->max_frames + 1) {
		/* One more, for the collector's. */
		frames = reallocarray(sampled->frames, list->max_frames + 1, sizeof(*frames));
		if (frames) {
			sampled->frames = frames;
			sampled->max_frames = list->max_frames + 1;
		}
	}
	sampled->most_frames = list->nr_frames;
	sampled->nr_walks = 0;
}

/* Walk a thread's copied stack once. */
static int walk_once(struct sampler *sampler, struct snapshot_thread *thread,
		     struct frame_walk *ret_walk)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	int err;

	*ret_walk = (struct frame_walk){
		.build = sampler->build,
		.codes = &sampler->codes,
		.clock = &thread->clock,
		.copy = &thread->stack,
		.list = &sampled->list,
	};
	/* A counter that is not where our table says proves nothing. */
	if (sampler->codes.next_version_unusable)
		thread->clock.has_next_version = false;
	err = sampler->build->traits.frames_on_heap ? frames_walk_heap(ret_walk)
						    : frames_walk_up(ret_walk);
	if (sampled->nr_shown > sampled->list.nr_unchanged)
		sampled->nr_shown = sampled->list.nr_unchanged;
	return err;
}

/* Walk a thread's stack, learning the links that turn out to be missing: *ret_nr_learnt. */
static int walk_links(struct sampler *sampler, struct snapshot_thread *thread,
		      struct frame_walk *walk, int *ret_nr_learnt)
{
	int err = walk_once(sampler, thread, walk);
	int nr_learnt = 0;

	while (nr_learnt < MAX_NEW_LINKS && err == -EAGAIN) {
		int nr_new;

		err = stack_copy_add_links(&thread->stack, sampler->snapshot.memory,
					   &sampler->build->offsets, walk->wanted_link_addr,
					   MAX_NEW_LINKS - nr_learnt, &nr_new);
		nr_learnt += nr_new;
		if (err) {
			walk->loss = LOSS_LINK;
			return err == -E2BIG ? -EBADMSG : err;
		}
		err = walk_once(sampler, thread, walk);
	}
	*ret_nr_learnt = nr_learnt;
	if (err != -EAGAIN)
		return err;
	walk->loss = LOSS_LINK;
	return -EBADMSG;
}

/* Whether the stack goes on where nothing was copied. */
static bool is_outgrown(int walk_err, const struct frame_walk *walk)
{
	return walk_err == -EBADMSG && (walk->loss == LOSS_CHUNK || walk->loss == LOSS_GREW);
}

/*
 * Whether the walk came upon what had not been seen before the copy was taken. Every such
 * thread is copied again, whatever it showed and whatever the next copy shows, so nothing
 * is chosen.
 */
static bool needs_retake(int walk_err, const struct frame_walk *walk, int nr_learnt, int nr_retakes)
{
	if (walk_err)
		return is_outgrown(walk_err, walk) && nr_retakes < MAX_RETAKES_FOR_CHUNKS;
	if (walk->has_new_code)
		return nr_retakes < MAX_RETAKES;
	if (walk->nr_late)
		return nr_retakes < MAX_RETAKES_FOR_LINKS;
	return walk->trimmed && nr_learnt > 0 && nr_retakes < MAX_RETAKES_FOR_LINKS;
}

/* Copy a thread again: 0, -EBADMSG if it has ended, errors of snapshot_retake(). */
static int retake(struct sampler *sampler, struct snapshot_thread *thread)
{
	int err = snapshot_retake(&sampler->snapshot, thread);

	sampler->nr_retakes_left -= sampler->nr_retakes_left > 0;
	return !err && !thread->copied ? -EBADMSG : err;
}

/*
 * Have what was left out of the copy proven, or all of it copied, as if the tick had come a
 * moment later. Errors of retake().
 */
static int make_whole(struct sampler *sampler, struct snapshot_thread *thread)
{
	struct frame_list *list = &sampler->threads[thread->slot].list;
	int err;

	if (frame_cache_proves(&sampler->cache, thread, list))
		return 0;
	sampler->cache.nr_again++;
	list->walked.tick = 0; /* of a held copy it may be, not of the one that is replaced */
	err = retake(sampler, thread);
	if (!err)
		(void)frame_cache_proves(&sampler->cache, thread, list); /* it is whole */
	return err;
}

/* Walk the stack of a copy: errors of walk_links(). */
static int walk_copy(struct sampler *sampler, struct snapshot_thread *thread,
		     struct frame_walk *walk, int *ret_nr_learnt)
{
	int err = make_whole(sampler, thread);

	return err ? err : walk_links(sampler, thread, walk, ret_nr_learnt);
}

/* Copy a thread again with what the last walk has told, and walk it: errors of walk_copy(). */
static int walk_anew(struct sampler *sampler, struct snapshot_thread *thread, int walk_err,
		     struct frame_walk *walk, int *ret_nr_learnt)
{
	int err = 0;

	if (walk_err)
		err = stack_copy_learn(&thread->stack, sampler->snapshot.memory,
				       &sampler->build->offsets, walk->loss == LOSS_GREW);
	walk->loss = LOSS_LINK;
	thread->stack.reads_spares = walk_err != 0;
	if (!err)
		err = retake(sampler, thread);
	thread->stack.reads_spares = false;
	return err ? err : walk_copy(sampler, thread, walk, ret_nr_learnt);
}

int sampler_thread_walk(struct sampler *sampler, struct snapshot_thread *thread,
			enum sample_loss *ret_loss)
{
	struct frame_walk walk = {.loss = LOSS_LINK};
	int nr_learnt = 0;
	int err = walk_copy(sampler, thread, &walk, &nr_learnt);

	for (int i = 0; sampler->nr_retakes_left && needs_retake(err, &walk, nr_learnt, i); i++)
		err = walk_anew(sampler, thread, err, &walk, &nr_learnt);
	if (!err && walk.has_new_code) {
		walk.loss = LOSS_CODE;
		err = -EBADMSG;
	}
	if (err == -EBADMSG)
		*ret_loss = walk.loss;
	sampler->threads[thread->slot].trimmed = !err && walk.trimmed;
	return err;
}

int sampler_thread_look(struct sampler *sampler, struct snapshot_thread *thread)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	enum sample_loss loss;
	int err = snapshot_retake(&sampler->snapshot, thread);
	int learn_err;

	if (err || !thread->copied)
		return err ? err : -ENOENT;
	sampler->nr_retakes_left = RETAKES_OF_TICK;
	err = sampler_thread_walk(sampler, thread, &loss);
	if (err && err != -EBADMSG)
		return err;
	learn_err = stack_copy_learn(&thread->stack, sampler->snapshot.memory,
				     &sampler->build->offsets, err && loss == LOSS_GREW);
	if (err || learn_err)
		return learn_err ? learn_err : err;
	return steady_frames_look(&sampled->steady, sampled->info->tid, &sampled->list);
}

/* Walk a copy that was held back. *ret_loss also where it is -EAGAIN: a link is missing. */
static int walk_held(struct sampler *sampler, struct snapshot_thread *thread,
		     enum sample_loss *ret_loss)
{
	struct frame_walk walk;
	int err = walk_once(sampler, thread, &walk);

	*ret_loss = err == -EAGAIN ? LOSS_LINK : walk.loss;
	sampler->threads[thread->slot].trimmed = !err && walk.trimmed;
	if (err || !walk.has_new_code)
		return err;
	*ret_loss = LOSS_CODE;
	return -EBADMSG;
}

int sampler_thread_walk_held(struct sampler *sampler, struct snapshot_thread *thread,
			     const struct held_top *top, enum sample_loss *ret_loss)
{
	struct stack_copy *stack = &thread->stack;
	const struct held_top now = {stack->newest_chunk_addr, stack->datastack_top_addr};
	const remote_addr current_frame_addr = stack->current_frame_addr;
	int err;

	*ret_loss = LOSS_HELD;
	if (!frame_cache_proves(&sampler->cache, thread, &sampler->threads[thread->slot].list))
		return -EBADMSG;
	stack->newest_chunk_addr = top->newest_chunk_addr;
	stack->datastack_top_addr = top->datastack_top_addr;
	stack->current_frame_addr = 0;
	err = walk_held(sampler, thread, ret_loss);
	stack->newest_chunk_addr = now.newest_chunk_addr;
	stack->datastack_top_addr = now.datastack_top_addr;
	stack->current_frame_addr = current_frame_addr;
	return err == -EAGAIN ? -EBADMSG : err;
}

/* Put the frames that people see into sampled->frames. *ret_nr_frames or -ENOMEM. */
static int show_frames(const struct code_cache *codes, struct sampled_thread *sampled,
		       uint32_t *ret_nr_frames)
{
	const struct frame_list *list = &sampled->list;
	uint32_t first = sampled->nr_shown < list->nr_frames ? sampled->nr_shown : list->nr_frames;
	uint32_t nr;

	if (list->has_dying || sampled->shown_dying)
		first = 0;
	nr = first ? list->frames[first - 1].nr_begun : 0;
	/* One more, for the collector's. */
	if (list->nr_frames >= sampled->max_frames) {
		uint32_t max_frames = list->max_frames + 1;
		struct frame *frames = reallocarray(sampled->frames, max_frames, sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		sampled->frames = frames;
		sampled->max_frames = max_frames;
	}
	for (uint32_t i = first; i < list->nr_frames; i++) {
		const struct walked_frame *walked = &list->frames[i];
		struct frame *frame = &sampled->frames[nr];
		int32_t line;

		if (!frame_visible(list, i))
			continue;
		line = code_line(codes, walked->code, walked->instr_ptr);
		if (nr >= sampled->nr_same || frame->function != walked->code->function ||
		    frame->line != line) {
			*frame = (struct frame){.function = walked->code->function, .line = line};
			if (sampled->nr_same > nr)
				sampled->nr_same = nr;
		}
		nr++;
	}
	sampled->nr_shown = list->nr_frames;
	sampled->nr_listed = list->nr_frames;
	sampled->listed_trimmed = sampled->trimmed;
	sampled->shown_dying = list->has_dying;
	*ret_nr_frames = nr;
	return 0;
}

int sampler_thread_tell(struct sampler *sampler, const struct snapshot_thread *thread,
			struct sample sample, struct sample_sink *sink)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	int err;

	sample.wall_ns = sampled->last_ns ? sample.time_ns - sampled->last_ns : 0;
	sample.thread = sampled->info;
	sampler_cpu_measure(sampler, sampled, &sample);
	sampled->last_ns = sample.time_ns;
	err = sink->ops->sample(sink, &sample);
	if (!sampler->stats.samples++)
		sampler->stats.first_sample_ns = clock_now_ns();
	return err;
}

/* Hand on the first nr_frames frames that are kept of a thread. */
static int hand_on(struct sampler *sampler, const struct snapshot_thread *thread,
		   struct sample sample, struct sample_sink *sink)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	const uint32_t nr_frames = sample.nr_frames;
	int err;

	sample.frames = sampled->frames;
	sample.nr_unchanged = sampled->nr_same < nr_frames ? sampled->nr_same : nr_frames;
	sample.flags |= sampled->flags;
	err = sampler_collector_add(sampler, thread, sampled, &sample);
	if (err)
		return err;
	err = sampler_thread_tell(sampler, thread, sample, sink);
	sampler_collector_remove(sampled, &sample);
	sampled->nr_same = nr_frames;
	if (sampled->trimmed)
		sampler->stats.trimmed++;
	return err;
}

int sampler_thread_emit(struct sampler *sampler, const struct snapshot_thread *thread,
			struct sample sample, struct sample_sink *sink)
{
	struct sampled_thread *sampled = &sampler->threads[thread->slot];
	int err = show_frames(&sampler->codes, sampled, &sample.nr_frames);

	sampled->flags = thread_state_flags(&sampler->snapshot, thread, sampler->looks.exceptions,
					    &sampler->none);
	if (!err)
		err = hand_on(sampler, thread, sample, sink);
	fit_room(sampled);
	return err;
}

int sampler_thread_repeat(struct sampler *sampler, const struct snapshot_thread *thread,
			  uint64_t time_ns, struct sample_sink *sink)
{
	const struct sample sample = {
		.time_ns = time_ns,
		.nr_frames = sampler->threads[thread->slot].nr_same,
	};

	return hand_on(sampler, thread, sample, sink);
}
