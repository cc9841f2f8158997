/* SPDX-License-Identifier: MIT */
#include "sampler/snapshot.h"

#include <errno.h>
#include <stdlib.h>

#include "sampler/dormancy.h"
#include "sampler/snapshot_pieces.h"

/*
 * Every piece of a read costs 0.3 to 0.5 µs. A new interpreter is noticed within so
 * many ticks; and the counter of code versions, which proves code objects younger
 * than the last tick, is read only for so long after one was freed (where there is
 * a count of those: 3.14+).
 */
enum { HEAD_TICKS = 16, CHURN_TICKS = 2048 };

static uint32_t min_offset(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * Have the collector's words in the window as well. In a build that has them too far away
 * nobody is seen to collect.
 */
static void widen_window(struct snapshot *snapshot)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	const bool has_frame = offsets->gc.frame != OFFSET_ABSENT;
	uint32_t start = snapshot->window_offset;
	uint32_t end = start + snapshot->window_bytes;
	uint32_t gc_start, gc_end;

	if (offsets->interpreter.gc == OFFSET_ABSENT || offsets->gc.collecting == OFFSET_ABSENT)
		return;
	gc_start =
		offsets->interpreter.gc + (has_frame ? offsets->gc.frame : offsets->gc.collecting);
	gc_end = gc_start + (uint32_t)sizeof(uint64_t);
	start = min_offset(start, gc_start);
	end = end > gc_end ? end : gc_end;
	snapshot->window_has_gc = end - start <= INTERPRETER_WINDOW_BYTES;
	if (!snapshot->window_has_gc)
		return;
	snapshot->window_offset = start;
	snapshot->window_bytes = end - start;
}

/* The span of an interpreter state that holds every field a tick looks at. */
static void choose_window(struct snapshot *snapshot)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	const uint32_t fields[] = {
		offsets->interpreter.next,
		offsets->interpreter.threads_head,
		offsets->interpreter.gil_locked,
		offsets->interpreter.gil_last_holder,
		offsets->interpreter.code_object_generation,
	};
	uint32_t end = offsets->interpreter.gil_last_holder == OFFSET_ABSENT
			       ? 0
			       : offsets->interpreter.gil_last_holder + GIL_BYTES;

	snapshot->window_offset = OFFSET_ABSENT;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (fields[i] == OFFSET_ABSENT)
			continue;
		snapshot->window_offset = min_offset(snapshot->window_offset, fields[i]);
		if (end < fields[i] + (uint32_t)sizeof(uint64_t))
			end = fields[i] + (uint32_t)sizeof(uint64_t);
	}
	snapshot->window_bytes = end - snapshot->window_offset;
}

int snapshot_init(struct snapshot *snapshot, struct remote_memory *memory,
		  const struct py_build *build, remote_addr runtime_addr)
{
	*snapshot = (struct snapshot){
		.memory = memory,
		.build = build,
		.runtime_addr = runtime_addr,
		.budget.max_bytes = COPIES_MAX_BYTES,
		.stale = true,
	};
	choose_window(snapshot);
	widen_window(snapshot);
	return snapshot->window_bytes > INTERPRETER_WINDOW_BYTES ? -ENOTSUP : 0;
}

bool snapshot_is_collecting(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		if (snapshot->interpreters[i].collecting)
			return true;
	return false;
}

bool snapshot_holds_gil(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	return gil_holder_addr(&snapshot->interpreters[thread->ref.interpreter].gil) ==
	       thread->ref.addr;
}

bool snapshot_is_churning(const struct snapshot *snapshot,
			  const struct snapshot_interpreter *interpreter)
{
	return interpreter->churn_tick + CHURN_TICKS > snapshot->tick;
}

/* The counter of code versions before the frames: it proves that an object is older. */
static void add_version_before(struct snapshot *snapshot, struct snapshot_interpreter *interpreter)
{
	uint32_t offset = snapshot->build->offsets.interpreter.next_code_version;

	interpreter->reads_version_before =
		offset != OFFSET_ABSENT && snapshot_is_churning(snapshot, interpreter);
	if (interpreter->reads_version_before)
		snapshot_add_range(snapshot, interpreter->ref.addr + offset,
				   &interpreter->version_before,
				   sizeof(interpreter->version_before));
}

static void add_interpreter_ranges(struct snapshot *snapshot,
				   struct snapshot_interpreter *interpreter)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;

	snapshot_add_range(snapshot, interpreter->ref.addr + snapshot->window_offset,
			   interpreter->window, snapshot->window_bytes);
	/* Behind the frames it tells whether any object came; the count of freed ones does, too. */
	interpreter->reads_version_after =
		offsets->interpreter.next_code_version != OFFSET_ABSENT &&
		(offsets->interpreter.code_object_generation == OFFSET_ABSENT ||
		 snapshot_is_churning(snapshot, interpreter));
	if (interpreter->reads_version_after)
		snapshot_add_range(snapshot,
				   interpreter->ref.addr + offsets->interpreter.next_code_version,
				   &interpreter->version_after, sizeof(interpreter->version_after));
	if (snapshot->build->tlbc.generation)
		snapshot_add_range(
			snapshot, interpreter->ref.addr + snapshot->build->tlbc.generation,
			&interpreter->tlbc_generation, sizeof(interpreter->tlbc_generation));
}

/* Room for every range of a tick. */
static int reserve_ranges(struct snapshot *snapshot)
{
	size_t nr = 3 + 4 * snapshot->nr_interpreters;
	struct remote_range *ranges;

	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i]->due)
			nr += snapshot_max_pieces(snapshot->threads[i]);
	if (nr <= snapshot->max_ranges)
		return 0;
	ranges = reallocarray(snapshot->ranges, nr * 2, sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	snapshot->ranges = ranges;
	snapshot->max_ranges = nr * 2;
	return 0;
}

/* The pieces of a read: of all threads that are due. */
static int build_ranges(struct snapshot *snapshot)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	int err = reserve_ranges(snapshot);

	if (err)
		return err;
	snapshot->nr_ranges = 0;
	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		add_version_before(snapshot, &snapshot->interpreters[i]);
	for (size_t i = 0; !err && i < snapshot->nr_threads; i++)
		if (snapshot->threads[i]->due)
			err = snapshot_add_thread(snapshot, snapshot->threads[i]);
	if (err)
		return err;
	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		add_interpreter_ranges(snapshot, &snapshot->interpreters[i]);
	if (offsets->runtime.gil_locked != OFFSET_ABSENT)
		snapshot_add_range(snapshot,
				   snapshot->runtime_addr + offsets->runtime.gil_last_holder,
				   snapshot->gil, sizeof(snapshot->gil));
	if (offsets->runtime.gc != OFFSET_ABSENT)
		snapshot_add_range(
			snapshot,
			snapshot->runtime_addr + offsets->runtime.gc + offsets->gc.collecting,
			&snapshot->runtime_collecting, sizeof(snapshot->runtime_collecting));
	snapshot->reads_head = snapshot->tick >= snapshot->head_tick + HEAD_TICKS;
	if (snapshot->reads_head) {
		snapshot->head_tick = snapshot->tick;
		snapshot_add_range(snapshot,
				   snapshot->runtime_addr + offsets->runtime.interpreters_head,
				   &snapshot->head_addr, sizeof(snapshot->head_addr));
	}
	return 0;
}

static uint64_t window_u64(const struct snapshot *snapshot,
			   const struct snapshot_interpreter *interpreter, uint32_t offset)
{
	return field_u64(interpreter->window, offset - snapshot->window_offset);
}

/*
 * The code clock of a tick. The counter as it was before the frames is the one
 * that was copied first or, where none was, the last one of an earlier tick.
 */
static void decode_clock(struct snapshot *snapshot, struct snapshot_interpreter *interpreter,
			 const struct remote_range **range)
{
	struct code_clock *clock = &interpreter->clock;
	uint64_t generation = clock->generation;
	uint32_t version_after = clock->next_version;

	*clock = (struct code_clock){
		.interp_addr = interpreter->ref.addr,
		.tick = snapshot->tick,
		.generation = generation,
		.next_version = version_after,
		.version_before = interpreter->version_before,
	};
	if (interpreter->reads_version_after && range_complete((*range)++)) {
		clock->has_next_version = true;
		clock->next_version = interpreter->version_after;
		if (clock->next_version != version_after)
			interpreter->churn_tick = snapshot->tick;
		interpreter->version_before = clock->next_version;
	}
	/* A piece that could not be read leaves it as it was. */
	if (snapshot->build->tlbc.generation)
		(*range)++;
	clock->tlbc_generation = interpreter->tlbc_generation;
}

/* Whether it collects garbage. 3.15 tells by whom, and leaves the other word for itself. */
static void decode_collector(const struct snapshot *snapshot,
			     struct snapshot_interpreter *interpreter)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	const uint32_t gc = offsets->interpreter.gc;

	if (!snapshot->window_has_gc)
		return;
	if (offsets->gc.frame != OFFSET_ABSENT) {
		interpreter->gc_frame_addr =
			window_u64(snapshot, interpreter, gc + offsets->gc.frame);
		interpreter->collecting = interpreter->gc_frame_addr != 0;
		return;
	}
	interpreter->collecting =
		(int32_t)window_u64(snapshot, interpreter, gc + offsets->gc.collecting) == 1;
}

static void decode_interpreter(struct snapshot *snapshot, struct snapshot_interpreter *interpreter,
			       const struct remote_range **range)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	bool window_read = range_complete((*range)++);
	struct code_clock *clock = &interpreter->clock;
	uint64_t generation;

	decode_clock(snapshot, interpreter, range);
	interpreter->gil_before = interpreter->gil;
	interpreter->gil = (struct gil){0};
	interpreter->collecting = false;
	if (!window_read) {
		snapshot->stale = true;
		return;
	}
	decode_collector(snapshot, interpreter);
	if (offsets->interpreter.code_object_generation != OFFSET_ABSENT) {
		generation = window_u64(snapshot, interpreter,
					offsets->interpreter.code_object_generation);
		if (generation != clock->generation)
			interpreter->churn_tick = snapshot->tick;
		clock->has_generation = true;
		clock->generation = generation;
	}
	if (window_u64(snapshot, interpreter, offsets->interpreter.next) !=
		    interpreter->ref.next_addr ||
	    window_u64(snapshot, interpreter, offsets->interpreter.threads_head) !=
		    interpreter->ref.threads_head_addr)
		snapshot->stale = true;
	if (offsets->interpreter.gil_locked != OFFSET_ABSENT)
		interpreter->gil = gil_decode(
			interpreter->window + offsets->interpreter.gil_last_holder -
				snapshot->window_offset,
			offsets->interpreter.gil_locked - offsets->interpreter.gil_last_holder);
}

/*
 * Interpreters that have no GIL of their own: all before 3.12; later those that share that of
 * the main one, which is the oldest and so the last. Theirs nobody ever held.
 */
static void share_gil(struct snapshot *snapshot, const struct remote_range **range)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	struct gil gil = {0};

	if (offsets->runtime.gil_locked != OFFSET_ABSENT && range_complete((*range)++))
		gil = gil_decode(snapshot->gil,
				 offsets->runtime.gil_locked - offsets->runtime.gil_last_holder);
	else if (snapshot->nr_interpreters)
		gil = snapshot->interpreters[snapshot->nr_interpreters - 1].gil;
	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		if (!snapshot->interpreters[i].gil.known)
			snapshot->interpreters[i].gil = gil;
}

static void decode_runtime(struct snapshot *snapshot, const struct remote_range *range)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;

	share_gil(snapshot, &range);
	if (offsets->runtime.gc != OFFSET_ABSENT) {
		bool collecting = range_complete(range++) && snapshot->runtime_collecting == 1;

		for (size_t i = 0; i < snapshot->nr_interpreters; i++)
			snapshot->interpreters[i].collecting = collecting;
	}
	if (snapshot->reads_head && (!range_complete(range) || !snapshot->nr_interpreters ||
				     snapshot->head_addr != snapshot->interpreters[0].ref.addr))
		snapshot->stale = true;
}

static void decode(struct snapshot *snapshot)
{
	const struct remote_range *range = snapshot->ranges;

	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		if (snapshot->interpreters[i].reads_version_before && !range_complete(range++))
			snapshot->interpreters[i].version_before = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i]->due)
			snapshot_decode_thread(snapshot, snapshot->threads[i], &range);
	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		decode_interpreter(snapshot, &snapshot->interpreters[i], &range);
	decode_runtime(snapshot, range);
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];
		const struct snapshot_interpreter *interpreter =
			&snapshot->interpreters[thread->ref.interpreter];

		if (!thread->due)
			continue;
		thread->clock = interpreter->clock;
		thread->holds_gil = snapshot_holds_gil(snapshot, thread);
	}
}

/* How many pieces of the read were tried: some take others with them (nr_with_it). */
static size_t count_tried(const struct snapshot *snapshot)
{
	const struct remote_range *ranges = snapshot->ranges;
	size_t nr_tried = 0;

	for (size_t i = 0; i < snapshot->nr_ranges; i++) {
		nr_tried++;
		if (ranges[i].size && !ranges[i].done_bytes)
			i += ranges[i].nr_with_it;
	}
	return nr_tried;
}

/* Copy the threads that are due. */
static int copy(struct snapshot *snapshot)
{
	int err = build_ranges(snapshot);

	if (!err)
		err = remote_memory_read_ranges(snapshot->memory, snapshot->ranges,
						snapshot->nr_ranges);
	if (err)
		return err;
	snapshot->nr_pieces += count_tried(snapshot);
	decode(snapshot);
	dormancy_note(snapshot);
	return 0;
}

int snapshot_take(struct snapshot *snapshot)
{
	int err;

	snapshot->nr_pieces = 0;
	snapshot->nr_takes++;
	dormancy_choose(snapshot);
	snapshot->tick++;
	err = copy(snapshot);
	if (err || !dormancy_follow(snapshot))
		return err;
	/*
	 * Of the same tick: code that is read for a thread of the first is too new for these, too.
	 */
	return copy(snapshot);
}

int snapshot_retake(struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		snapshot->threads[i]->due = snapshot->threads[i] == thread;
	snapshot->tick++;
	return copy(snapshot);
}
