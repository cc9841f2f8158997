/* SPDX-License-Identifier: MIT */
#include "sampler/dormancy.h"

/*
 * For how many ticks a thread is copied that has run; one that is new; and all of them when
 * more than two have had the GIL between two looks.
 */
enum { AWAKE_TICKS = 4096, NEW_TICKS = 64, UNCLEAR_TICKS = 16 };

/* Whether thread states may run that never took the GIL: they were swapped in. */
static bool may_swap(const struct snapshot *snapshot)
{
	return snapshot->build->version_hex < 0x030d0000 && snapshot->nr_interpreters > 1;
}

/* Whether the GIL tells that a thread has not run since the last read. */
static bool is_told(const struct snapshot *snapshot)
{
	return !snapshot->build->free_threaded && !snapshot->gil_distrusted && !may_swap(snapshot);
}

static void wake(const struct snapshot *snapshot, struct snapshot_thread *thread, uint64_t nr_ticks)
{
	if (thread->awake_take < snapshot->nr_takes + nr_ticks)
		thread->awake_take = snapshot->nr_takes + nr_ticks;
}

static const struct gil *gil_of(const struct snapshot *snapshot,
				const struct snapshot_thread *thread)
{
	return &snapshot->interpreters[thread->ref.interpreter].gil;
}

/* Whether a thread is copied although another one has the GIL, or may have it. */
static bool is_awake(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	const struct gil *gil = gil_of(snapshot, thread);

	return !gil->known || thread->awake_take >= snapshot->nr_takes ||
	       gil->last_holder_addr == thread->ref.addr;
}

struct snapshot_thread *dormancy_lone(const struct snapshot *snapshot)
{
	struct snapshot_thread *lone = NULL;

	if (snapshot->nr_threads > 1 && !is_told(snapshot))
		return NULL;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];

		if (snapshot->nr_threads > 1 && !is_awake(snapshot, thread))
			continue;
		if (lone)
			return NULL;
		lone = thread;
	}
	return lone;
}

void dormancy_choose(struct snapshot *snapshot)
{
	bool told = is_told(snapshot);

	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];

		if (thread->is_new || !thread->copied)
			wake(snapshot, thread, NEW_TICKS);
		thread->checked = false;
		thread->due = !told || is_awake(snapshot, thread);
		thread->unchanged = !thread->due;
	}
	if (told && snapshot->nr_threads) {
		struct snapshot_thread *thread =
			snapshot->threads[snapshot->nr_takes % snapshot->nr_threads];

		thread->checked = thread->unchanged;
		thread->due = true;
		thread->unchanged = false;
	}
}

void dormancy_note(struct snapshot *snapshot)
{
	bool moved = false;

	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		moved = moved || gil_moved(&snapshot->interpreters[i].gil_before,
					   &snapshot->interpreters[i].gil);
	for (size_t i = 0; moved && i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];
		const struct snapshot_interpreter *interpreter =
			&snapshot->interpreters[thread->ref.interpreter];
		const struct gil *before = &interpreter->gil_before;
		const struct gil *now = &interpreter->gil;

		if (!gil_moved(before, now))
			continue;
		if (gil_names(before, now, thread->ref.addr))
			wake(snapshot, thread, AWAKE_TICKS);
		else if (gil_unclear(before, now))
			wake(snapshot, thread, UNCLEAR_TICKS);
		else
			continue;
		thread->checked = false;
	}
}

bool dormancy_follow(struct snapshot *snapshot)
{
	bool any = false;

	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];

		thread->due = thread->unchanged && thread->awake_take >= snapshot->nr_takes;
		if (!thread->due)
			continue;
		thread->unchanged = false;
		any = true;
	}
	return any;
}

void dormancy_wake(const struct snapshot *snapshot, struct snapshot_thread *thread)
{
	wake(snapshot, thread, AWAKE_TICKS);
}

void dormancy_distrust(struct snapshot *snapshot)
{
	snapshot->gil_distrusted = true;
}
