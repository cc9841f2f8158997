/* SPDX-License-Identifier: MIT */
/*
 * Samples of threads whose stacks the kernel copies and whose Python frames a look tells behind that. The
 * copy wakes us on the thread's own CPU, so that it mostly executes nothing in between; nothing proves
 * that. Evidence is that it has used no more CPU time than the interrupt and the switch take, and that what
 * was copied of its stack is there still.
 */
#include <errno.h>
#include <stdlib.h>

#include "sampler/python/loop_entries.h"
#include "sampler/sampler_natives_state.h"

/* Ticks find the names of threads, new interpreters, and what has ended: so often at least. */
#define TICK_AT_LEAST_NS 100000000u

/* So many looks have to be known before one counts. */
enum { ENOUGH_LOOKS = 8 };

/* Where the copy of a stack begins. */
static remote_addr stack_addr(const struct perf_dump *dump)
{
	return registers_of_perf(dump->registers).values[REGISTER_SP];
}

/* Within a look. */

int sampler_natives_look(struct sampler_natives *natives, const struct snapshot_thread *thread)
{
	const struct sampler *sampler = natives->options.sampler;
	struct evidence *evidence = &natives->evidence;
	const struct perf_dump *dump = evidence->dump;
	int err;

	if (!dump)
		return 0;
	free(evidence->entries);
	evidence->entries = NULL;
	err = loop_entries_read(&sampler->codes, thread->ref.addr,
				&sampler->threads[thread->slot].list, true, &evidence->entries);
	if (err)
		return err;
	evidence->is_read = !remote_memory_read(sampler->snapshot.memory, stack_addr(dump),
						evidence->stack, dump->nr_stack_bytes) &&
			    !perf_events_count(&natives->events, dump->tid, &evidence->count_ns);
	return 0;
}

/* Judging. */

/* Note how much CPU time a thread has used since it was copied. Whether it is as little as that may be. */
static bool is_near(struct evidence *evidence, uint64_t used_ns)
{
	const uint32_t nr = evidence->nr_used < EVIDENCE_LOOKS ? evidence->nr_used : EVIDENCE_LOOKS;
	uint64_t least_ns = UINT64_MAX;

	for (uint32_t i = 0; i < nr; i++)
		if (evidence->used_ns[i] < least_ns)
			least_ns = evidence->used_ns[i];
	evidence->used_ns[evidence->nr_used++ % EVIDENCE_LOOKS] = used_ns;
	return nr >= ENOUGH_LOOKS && used_ns <= least_ns * 3;
}

/* So many bytes of the stack, from its inner end, have something that has changed. */
static size_t nr_changed_bytes(const struct evidence *evidence)
{
	size_t nr = evidence->dump->nr_stack_bytes;

	while (nr && evidence->stack[nr - 1] == evidence->dump->stack[nr - 1])
		nr--;
	return nr;
}

/*
 * So many frames of the list, from the outermost on, are those of the copy: all if nothing has been
 * executed, else those of loops that were there all along and have called another one.
 */
static uint32_t nr_told_frames(struct evidence *evidence, const struct frame_list *list)
{
	const bool is_still = is_near(evidence, evidence->count_ns - evidence->dump->count_ns);
	const size_t nr_changed = nr_changed_bytes(evidence);
	const remote_addr sp_addr = stack_addr(evidence->dump);
	uint32_t nr_told = 0;

	if (is_still && !nr_changed)
		return list->nr_frames;
	for (uint32_t i = 0; i < list->nr_frames; i++) {
		const struct loop_entry *entry = &evidence->entries[i];

		if (!entry->is_entry)
			continue;
		nr_told = i;
		/* What lies beyond the copy is further out; below it nothing was there yet. */
		if (entry->c_addr < sp_addr || entry->c_addr - sp_addr < nr_changed)
			break;
	}
	return nr_told;
}

/* Taking. */

/* The sample of one state of a thread that was copied. */
static int take_state(struct sampler_natives *natives, struct snapshot_thread *thread,
		      const struct perf_dump *dump, uint64_t now_ns)
{
	struct sampler *sampler = natives->options.sampler;
	struct evidence *evidence = &natives->evidence;
	const struct frame_list *list = &sampler->threads[thread->slot].list;
	uint32_t nr_told;
	int err;

	evidence->dump = dump;
	evidence->is_read = false;
	err = sampler_thread_look(sampler, thread, false);
	evidence->dump = err ? NULL : dump;
	if (err == -EBADMSG)
		sampler->stats.lost[LOSS_MOVED]++;
	if (err)
		return err == -ENOENT || err == -EBADMSG ? 0 : err;
	nr_told = evidence->is_read ? nr_told_frames(evidence, list) : 0;
	evidence->dump = NULL;
	return sampler_natives_tell(natives, thread, evidence->entries, nr_told, dump,
				    (struct sample){.time_ns = now_ns});
}

/* A thread may have several states, one for each interpreter. */
static int take_dump(struct sampler_natives *natives, const struct perf_dump *dump, uint64_t now_ns)
{
	const struct sampler *sampler = natives->options.sampler;
	const struct snapshot *snapshot = &sampler->snapshot;
	bool is_known = false;
	int err = 0;

	for (size_t i = 0; !err && i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];

		if (thread->is_new || sampler->threads[thread->slot].info->tid != dump->tid)
			continue;
		is_known = true;
		err = take_state(natives, thread, dump, now_ns);
	}
	natives->stats.nr_foreign += !is_known;
	return err;
}

int sampler_natives_take(struct sampler_natives *natives, uint64_t now_ns)
{
	struct perf_dump dump;
	int err = sampler_natives_renew_modules(natives, now_ns);

	/* Ticks that take longer than from one to the next leave no time to wait. */
	if (natives->has_events)
		perf_events_catch_up(&natives->events);
	while (!err && !perf_events_next(&natives->events, &dump)) {
		/* What was mapped before the dump is known by now. */
		err = sampler_natives_renew_modules(natives, now_ns);
		if (!err)
			err = take_dump(natives, &dump, now_ns);
		if (err == -EAGAIN || sampler_is_passing(err))
			err = 0;
	}
	return err;
}

/* Waiting for them. */

uint64_t sampler_natives_told_until(const struct sampler_natives *natives)
{
	const struct sampler *sampler = natives->options.sampler;
	const struct snapshot *snapshot = &sampler->snapshot;
	uint64_t until_ns = sampler->last_tick_ns + TICK_AT_LEAST_NS;

	if (!natives->has_events || snapshot->stale)
		return 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct snapshot_thread *thread = snapshot->threads[i];
		const uint64_t last_ns = sampler->threads[thread->slot].last_ns;
		const uint64_t told_ns = last_ns + sampler_natives_without_dump_ns(natives);

		if (thread->is_new || !last_ns)
			return 0;
		if (told_ns < until_ns)
			until_ns = told_ns;
	}
	return until_ns;
}

static uint64_t clock_of_natives(void *context)
{
	(void)context;
	return clock_now_ns();
}

static void sleep_of_natives(void *context, uint64_t time_ns)
{
	struct sampler_natives *natives = context;

	if (natives->options.sampler->preempt)
		preempt_go(natives->options.sampler->preempt);
	perf_events_wait(&natives->events, time_ns);
}

bool sampler_natives_clock(struct sampler_natives *natives, struct ticker_clock *ret_clock)
{
	*ret_clock = (struct ticker_clock){
		.now_ns = clock_of_natives,
		.sleep_until = sleep_of_natives,
		.context = natives,
	};
	return natives->has_events;
}
