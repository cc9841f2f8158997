/* SPDX-License-Identifier: MIT */
#include "sampler/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/base/addr_map.h"

/* With this many threads, a look at one thread does not read ahead for all. */
enum { MANY_THREADS = 16 };

/* A look that meets an unexpected runner begins again, with that runner's witness. */
enum { MAX_BEGINNINGS = 3 };

/*
 * The first CHECKING_LOOKS looks each copy one more thread, to verify what the GIL says; after
 * that one look in CHECK_EVERY does.
 */
enum { CHECKING_LOOKS = 64, CHECK_EVERY = 16 };

/*
 * A thread that could run in one of this many last looks is expected to be able to run in the
 * next: its witness is read before anything else.
 */
enum { EXPECTED_LOOKS = 64 };

/* Once another thread was found to run a state, nothing is proven of it for this many looks. */
enum { FOREIGN_LOOKS = 1024 };

void snapshot_init(struct snapshot *snapshot, struct remote_memory *memory,
		   const struct py_build *build, remote_addr runtime_addr)
{
	*snapshot = (struct snapshot){
		.build = build,
		.runtime_addr = runtime_addr,
		.is_stale = true,
		.instant.is_dead = true,
	};
	look_memory_init(&snapshot->instant.look, memory);
	snapshot->memory = &snapshot->instant.look.memory;
}

static void thread_destroy(struct snapshot_thread *thread)
{
	witness_close(&thread->proof.witness);
	free(thread);
}

void snapshot_done(struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		thread_destroy(snapshot->threads[i]);
	free(snapshot->threads);
	free(snapshot->interpreters);
	look_memory_done(&snapshot->instant.look);
	*snapshot = (struct snapshot){0};
}

void snapshot_set_live(struct snapshot *snapshot, const struct witness_means *means)
{
	snapshot->instant.is_dead = false;
	snapshot->instant.means = *means;
}

/* The interpreter whose GIL interpreter i uses. */
static struct snapshot_interpreter *gil_owner(const struct snapshot *snapshot, size_t i)
{
	return snapshot->interpreters[i].has_own_gil
		       ? &snapshot->interpreters[i]
		       : &snapshot->interpreters[snapshot->nr_interpreters - 1];
}

const struct instant_gil *snapshot_gil(const struct snapshot *snapshot,
				       const struct snapshot_thread *thread)
{
	return &gil_owner(snapshot, thread->ref.interpreter)->gil;
}

bool snapshot_may_swap(const struct snapshot *snapshot)
{
	return snapshot->build->traits.swaps_states && snapshot->nr_interpreters > 1;
}

/* Whether this look depends on whether a thread runs. */
static bool is_relevant(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	return !snapshot->only || thread == snapshot->only ||
	       snapshot_gil(snapshot, thread)->now.is_known;
}

bool snapshot_may_run(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	const struct gil *gil = &snapshot_gil(snapshot, thread)->now;

	return !gil->is_known || gil->last_holder_addr == thread->ref.addr ||
	       snapshot_may_swap(snapshot);
}

bool snapshot_has_run(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	const struct instant_thread *proof = &thread->proof;

	return proof->has_witness && !snapshot_gil(snapshot, thread)->now.is_known &&
	       witness_has_run(&proof->witness);
}

/* The thread list. */

/* Where the GIL of interpreter i is, if it has its own. */
static struct gil_place gil_place_of(const struct snapshot *snapshot, size_t i)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	struct gil_place place = {.addr = 0};

	if (offsets->interpreter.gil_locked != OFFSET_ABSENT) {
		if (snapshot->build->free_threaded)
			place.holder_offset = GIL_ENABLED_BEFORE_HOLDER;
		place.addr = snapshot->interpreters[i].ref.addr +
			     offsets->interpreter.gil_last_holder - place.holder_offset;
		place.locked_offset =
			offsets->interpreter.gil_locked - offsets->interpreter.gil_last_holder;
		return place;
	}
	/* Before 3.12 all share one: that of the main interpreter, the oldest and so the last. */
	if (i + 1 != snapshot->nr_interpreters)
		return place;
	if (offsets->runtime.gil_locked != OFFSET_ABSENT) {
		place.addr = snapshot->runtime_addr + offsets->runtime.gil_last_holder;
		place.locked_offset =
			offsets->runtime.gil_locked - offsets->runtime.gil_last_holder;
	} else {
		place.addr = snapshot->current_thread_addr;
	}
	return place;
}

/* Take over the interpreters of a new list, usually few; returns false if out of memory. */
static bool refresh_interpreters(struct snapshot *snapshot, const struct thread_list *list)
{
	struct snapshot_interpreter *interpreters =
		calloc(list->nr_interpreters, sizeof(*interpreters));

	if (!interpreters)
		return false;
	for (size_t i = 0; i < list->nr_interpreters; i++) {
		for (size_t j = snapshot->nr_interpreters; j-- > 0;)
			if (snapshot->interpreters[j].ref.addr == list->interpreters[i].addr)
				interpreters[i] = snapshot->interpreters[j];
		interpreters[i].ref = list->interpreters[i];
	}
	free(snapshot->interpreters);
	snapshot->interpreters = interpreters;
	snapshot->nr_interpreters = list->nr_interpreters;
	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		interpreters[i].gil.place = gil_place_of(snapshot, i);
	return true;
}

/*
 * Fill threads[] from the list: known threads are taken over with their slots, and the rest is
 * made, with the lowest free slots. used has a byte for each possible slot. Returns false if out
 * of memory.
 */
static bool refresh_threads(struct snapshot *snapshot, const struct thread_list *list,
			    struct snapshot_thread **threads, uint8_t *used)
{
	struct addr_map known = {0};
	bool complete = true;
	uint64_t found_tid;
	uint32_t slot = 0;

	for (size_t i = 0; complete && i < snapshot->nr_threads; i++)
		complete =
			!addr_map_put(&known, snapshot->threads[i]->ref.addr, snapshot->threads[i]);
	for (size_t i = 0; complete && i < list->nr_threads; i++) {
		const struct thread_ref *ref = &list->threads[i];
		struct snapshot_thread *thread = addr_map_get(&known, ref->addr);

		/* Thread states are reused: compare the ids. */
		if (!thread || thread->was_seen || thread->has_ended ||
		    !thread_ref_is_same(&thread->ref, ref))
			continue;
		threads[i] = thread;
		thread->was_seen = true;
		found_tid = thread->ref.found_tid;
		thread->ref = *ref;
		thread->ref.found_tid = found_tid;
		used[thread->slot] = 1;
	}
	addr_map_done(&known);
	for (size_t i = 0; complete && i < list->nr_threads; i++) {
		if (threads[i])
			continue;
		threads[i] = calloc(1, sizeof(**threads));
		if (!threads[i])
			return false;
		while (used[slot])
			slot++;
		used[slot] = 1;
		snapshot->nr_slots += slot == snapshot->nr_slots;
		threads[i]->ref = list->threads[i];
		threads[i]->is_new = true;
		threads[i]->slot = slot;
	}
	return complete;
}

int snapshot_refresh(struct snapshot *snapshot)
{
	struct thread_list list = {0};
	cleanup_free struct snapshot_thread **threads = NULL;
	cleanup_free uint8_t *used = NULL;
	bool complete;
	int err = thread_list_read(snapshot->memory, snapshot->build, snapshot->runtime_addr,
				   snapshot->is_core, &list);
	/* Check after the read, and also if it failed: an exec may be the reason. */
	const int check_err = remote_memory_check(snapshot->memory);

	if (err || check_err) {
		thread_list_done(&list);
		return check_err ? check_err : err;
	}
	snapshot->list_err = list.err;
	threads = calloc(list.nr_threads + 1, sizeof(struct snapshot_thread *));
	used = calloc(snapshot->nr_slots + list.nr_threads + 1, 1);
	complete = threads && used && refresh_interpreters(snapshot, &list) &&
		   refresh_threads(snapshot, &list, threads, used);
	if (complete) {
		/* Destroy threads that are not listed any more. */
		for (size_t i = 0; i < snapshot->nr_threads; i++)
			if (!snapshot->threads[i]->was_seen)
				thread_destroy(snapshot->threads[i]);
		free(snapshot->threads);
		snapshot->threads = take_ptr(threads);
		snapshot->nr_threads = list.nr_threads;
		snapshot->nr_refreshes++;
		snapshot->is_stale = false;
	}
	for (size_t i = 0; threads && i < list.nr_threads; i++)
		if (threads[i] && !threads[i]->was_seen) /* made here */
			thread_destroy(threads[i]);
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		snapshot->threads[i]->was_seen = false;
	thread_list_done(&list);
	return complete ? 0 : -ENOMEM;
}

/* Beginning a look. */

/* Free a thread's witness. */
static void close_witness(struct instant_thread *proof)
{
	if (proof->has_witness)
		witness_close(&proof->witness);
	proof->has_witness = false;
	/* Another witness may count something else. */
	proof->late_runs = 0;
	proof->known_cpu_ns = 0;
}

/* Whether a thread's clock has the value that it had when the thread was known. */
static bool has_known_clock(const struct instant_thread *proof)
{
	return proof->known_cpu_ns && proof->known_cpu_ns == witness_cpu_ns(&proof->witness);
}

/*
 * Prepare a thread's witness, if the thread could run in one of the last looks. The witnesses'
 * words are the outermost of all reads, so threads come first. Returns 0 or -ENOMEM.
 */
static int watch_thread(struct instant *instant, struct snapshot_thread *thread)
{
	struct instant_thread *proof = &thread->proof;
	struct thread_stat now;
	int err;

	proof->is_own = proof->is_foreign = proof->runner_is_unknown = proof->has_moved = false;
	proof->has_slept = false;
	proof->is_watched = !instant->is_dead && !proof->needs_no_proof && proof->runner_look &&
			    proof->runner_look + EXPECTED_LOOKS >= instant->nr_looks;
	if (!proof->is_watched)
		return 0;
	/* The caller may have learnt the thread's id since. */
	if (!proof->has_witness || thread->tid != proof->witness_tid) {
		close_witness(proof);
		proof->witness_tid = thread->tid;
		witness_open(&instant->means, thread->ref.thread_id, thread->tid, &proof->witness);
		proof->has_witness = true;
	}
	err = witness_begin(&proof->witness, &instant->look, &instant->held);
	if (err || !instant->is_late || has_known_clock(proof))
		return err;
	/*
	 * A late look may have waited until the thread went to sleep. This is checked early, while
	 * its CPU is held: a thread that is woken later could run as well.
	 */
	if (!witness_now(&proof->witness, &instant->means, thread->tid, &now) && now.state != 'R') {
		const uint64_t before = proof->late_runs;

		/* It has run, and then slept, if it got a CPU since the last late look. */
		if (run_count_read(&proof->witness.runs, &proof->late_runs))
			proof->late_runs = 0;
		proof->has_slept = !before || before != proof->late_runs;
	}
	return 0;
}

/* Seal the words that the look is judged by. Returns 0 or -ENOMEM. */
static int seal_words(struct snapshot *snapshot)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	struct look_memory *look = &snapshot->instant.look;
	int err = 0;

	look_memory_clear_seals(look);
	for (size_t i = 0; !err && i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];

		thread->proof.is_watched = false;
		if (is_relevant(snapshot, thread))
			err = watch_thread(&snapshot->instant, thread);
	}
	for (size_t i = 0; !err && i < snapshot->nr_interpreters; i++) {
		struct snapshot_interpreter *interpreter = &snapshot->interpreters[i];
		struct instant_gil *gil = &interpreter->gil;
		/*
		 * The counters of code are read before all code, so that no entry is ever
		 * considered newer than what was read for it.
		 */
		const struct {
			uint32_t offset;
			size_t size;
			uint32_t *ret_seal;
		} words[] = {
			{offsets->interpreter.threads_head, sizeof(uint64_t),
			 &interpreter->head_seal},
			{offsets->interpreter.code_object_generation, sizeof(uint64_t),
			 &interpreter->generation_seal},
			{offsets->interpreter.next_code_version, sizeof(uint32_t),
			 &interpreter->version_seal},
		};

		if (gil->place.addr)
			err = look_memory_seal(look, gil->place.addr, gil_place_bytes(&gil->place),
					       &gil->seal);
		for (size_t j = 0; !err && j < sizeof(words) / sizeof(words[0]); j++)
			if (words[j].offset != OFFSET_ABSENT)
				err = look_memory_seal(look,
						       interpreter->ref.addr + words[j].offset,
						       words[j].size, words[j].ret_seal);
	}
	return err;
}

/* The contents of a sealed GIL, from before or after all other reads. */
static struct gil read_gil(const struct snapshot *snapshot, const struct instant_gil *gil,
			   bool is_last)
{
	const struct look_seal *seal =
		gil->place.addr ? look_memory_seal_at(&snapshot->instant.look, gil->seal) : NULL;

	return seal && seal->is_read ? gil_decode(&gil->place, is_last ? seal->last : seal->first)
				     : (struct gil){.is_known = false};
}

/* Read everything that is read ahead, with the witnesses of all threads that may run. */
static int begin_reading(struct snapshot *snapshot)
{
	struct instant *instant = &snapshot->instant;
	bool all_watched = false;

	for (int n = 0; !all_watched && n < MAX_BEGINNINGS; n++) {
		int err;

		if (n)
			(void)look_memory_end(&instant->look);
		err = seal_words(snapshot);
		if (!err)
			err = snapshot->only && snapshot->nr_threads >= MANY_THREADS
				      ? look_memory_begin_narrow(&instant->look)
				      : look_memory_begin(&instant->look);
		if (err)
			return err;
		for (size_t i = 0; i < snapshot->nr_interpreters; i++) {
			struct snapshot_interpreter *interpreter = &snapshot->interpreters[i];

			interpreter->gil.now = read_gil(snapshot, &interpreter->gil, false);
			interpreter->has_own_gil =
				interpreter->gil.now.is_known || i + 1 == snapshot->nr_interpreters;
		}
		all_watched = true;
		for (size_t i = 0; i < snapshot->nr_threads; i++) {
			struct snapshot_thread *thread = snapshot->threads[i];

			if (!snapshot_may_run(snapshot, thread) || !is_relevant(snapshot, thread))
				continue;
			thread->proof.runner_look = instant->nr_looks;
			all_watched =
				all_watched && (thread->proof.is_watched ||
						thread->proof.needs_no_proof || instant->is_dead);
		}
	}
	return 0;
}

/* The contents of a seal. Returns whether it was read. */
static bool read_seal(const struct look_memory *look, uint32_t index, void *ret_value, size_t size)
{
	const struct look_seal *seal = look_memory_seal_at(look, index);

	if (seal->is_read)
		memcpy(ret_value, seal->first, size);
	return seal->is_read;
}

remote_addr snapshot_collector_addr(const struct snapshot *snapshot,
				    const struct snapshot_interpreter *interpreter)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	const uint32_t word =
		offsets->gc.frame != OFFSET_ABSENT ? offsets->gc.frame : offsets->gc.collecting;

	if (word == OFFSET_ABSENT)
		return 0;
	if (offsets->runtime.gc != OFFSET_ABSENT)
		return snapshot->runtime_addr + offsets->runtime.gc + word;
	return offsets->interpreter.gc == OFFSET_ABSENT
		       ? 0
		       : interpreter->ref.addr + offsets->interpreter.gc + word;
}

/* Set whether garbage is collected, and from which frame, by that word. */
static void set_collector(const struct snapshot *snapshot, struct snapshot_interpreter *interpreter,
			  uint64_t word)
{
	const bool is_frame = snapshot->build->offsets.gc.frame != OFFSET_ABSENT;

	interpreter->gc_frame_addr = is_frame ? word : 0;
	interpreter->is_collecting = is_frame ? word != 0 : (uint32_t)word == 1;
}

/*
 * Read what concerns all threads of an interpreter: whether the list of them has changed, and the
 * counters of code.
 */
static void read_interpreter(struct snapshot *snapshot, struct snapshot_interpreter *interpreter)
{
	const struct py_build *build = snapshot->build;
	const struct py_offsets *offsets = &build->offsets;
	const struct look_memory *look = &snapshot->instant.look;
	const remote_addr addr = interpreter->ref.addr;
	const remote_addr collector_addr = snapshot_collector_addr(snapshot, interpreter);
	struct code_clock *clock = &interpreter->clock;
	uint64_t head_addr, next_addr, word = 0;

	if (!read_seal(look, interpreter->head_seal, &head_addr, sizeof(head_addr)) ||
	    head_addr != interpreter->ref.threads_head_addr ||
	    remote_memory_read_u64(snapshot->memory, addr + offsets->interpreter.next,
				   &next_addr) ||
	    next_addr != interpreter->ref.next_addr)
		snapshot->is_stale = true;
	*clock = (struct code_clock){.interp_addr = addr, .tick = snapshot->instant.nr_looks};
	clock->has_generation = offsets->interpreter.code_object_generation != OFFSET_ABSENT &&
				read_seal(look, interpreter->generation_seal, &clock->generation,
					  sizeof(clock->generation));
	clock->has_next_version = offsets->interpreter.next_code_version != OFFSET_ABSENT &&
				  read_seal(look, interpreter->version_seal, &clock->next_version,
					    sizeof(clock->next_version));
	if (build->tlbc.generation &&
	    remote_memory_read(snapshot->memory, addr + build->tlbc.generation,
			       &clock->tlbc_generation, sizeof(clock->tlbc_generation)))
		clock->tlbc_generation = 0;
	if (collector_addr)
		(void)remote_memory_read_u64(snapshot->memory, collector_addr, &word);
	set_collector(snapshot, interpreter, word);
}

/*
 * Read the CPU time that a thread has used, if it has a clock that may be read. Returns whether it
 * is what it was when the thread was known.
 */
static bool has_used_no_time(struct snapshot_thread *thread)
{
	struct instant_thread *proof = &thread->proof;
	uint64_t used_ns;

	if (!thread->cpu_clock || proof->is_watched || proof->needs_no_proof ||
	    cpu_clock_read(thread->cpu_clock, &used_ns))
		return false;
	proof->look_used_ns = used_ns + 1;
	return proof->known_used_ns == proof->look_used_ns;
}

/*
 * Whether a thread is proven to be where it was at the last proven look: a clock has the value that
 * it had when the thread was known, or by its GIL it cannot have run since.
 */
static bool is_unmoved(const struct snapshot *snapshot, struct snapshot_thread *thread)
{
	const struct instant *instant = &snapshot->instant;
	const struct instant_gil *gil = snapshot_gil(snapshot, thread);
	const struct instant_thread *proof = &thread->proof;
	const bool is_foreign = instant->nr_looks < proof->foreign_until_look;

	/* Another thread may run the state, without using time of this one. */
	if (instant->gil_distrusted || snapshot_may_swap(snapshot))
		return false;
	if (proof->is_known && !is_foreign && proof->is_watched && has_known_clock(proof))
		return true;
	if (thread->is_new || instant->is_dead || !gil->now.is_known ||
	    gil_is_known_holder(&gil->committed, &gil->now, thread->ref.addr))
		return false;
	if (gil_may_have_third_holder(&gil->committed, &gil->now))
		return has_used_no_time(thread) && proof->is_known && !is_foreign &&
		       !instant->clocks_distrusted;
	return proof->is_known;
}

/*
 * Read the threads that may have moved, and one more in turn, to verify that it has not. In a
 * look at one thread: read that one, and those that may run, which are judged by their states.
 */
static void read_threads(struct snapshot *snapshot)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	const uint64_t nr_looks = snapshot->instant.nr_looks;
	const bool is_checking = nr_looks < CHECKING_LOOKS;
	const bool checks = is_checking || nr_looks % CHECK_EVERY == 0;
	const uint64_t turn = is_checking ? nr_looks : nr_looks / CHECK_EVERY;

	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct snapshot_interpreter *interpreter;
		struct snapshot_thread *thread = snapshot->threads[i];
		bool is_proven;

		thread->proof.look_used_ns = 0;
		is_proven = !snapshot->only && is_unmoved(snapshot, thread);
		thread->cpu_clock = NULL;
		if (snapshot->only && thread != snapshot->only &&
		    (snapshot->instant.is_dead || !snapshot_may_run(snapshot, thread) ||
		     !is_relevant(snapshot, thread)))
			continue;
		thread->is_checked = is_proven && checks && i == turn % snapshot->nr_threads;
		thread->is_unchanged = is_proven && !thread->is_checked;
		if (thread->is_unchanged)
			continue;
		interpreter = &snapshot->interpreters[thread->ref.interpreter];
		/* It may be another thread's state now. */
		thread->was_copied =
			remote_memory_read(snapshot->memory, thread->ref.addr, thread->state,
					   thread_head_bytes(offsets)) == 0 &&
			field_u64(thread->state, offsets->thread.interp) == interpreter->ref.addr &&
			thread_ref_matches(&thread->ref, offsets, thread->state);
		if (!thread->was_copied ||
		    field_u64(thread->state, offsets->thread.next) != thread->ref.next_addr)
			snapshot->is_stale = true;
		thread->clock = interpreter->clock;
		thread->holds_gil = snapshot_holds_gil(snapshot, thread);
	}
}

/* Release the CPUs. */
static void release_cpus(struct instant *instant)
{
	instant->has_slept = instant->preempt && preempt_release(instant->preempt, &instant->held);
}

int snapshot_begin(struct snapshot *snapshot, struct snapshot_thread *only)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	struct instant *instant = &snapshot->instant;
	uint64_t head_addr;
	int err;

	snapshot->only = only;
	/* Each thread needs a proof of its own, even one that waits on a CPU that is not held. */
	if (!instant->means.prefers_clock && snapshot_may_swap(snapshot)) {
		instant->means.prefers_clock = true;
		for (size_t i = 0; i < snapshot->nr_threads; i++)
			close_witness(&snapshot->threads[i]->proof);
	}
	instant->nr_looks++;
	if (instant->preempt)
		preempt_hold(instant->preempt, &instant->followed, &instant->held);
	err = begin_reading(snapshot);
	if (err) {
		(void)look_memory_end(&instant->look);
		release_cpus(instant);
		return err;
	}
	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		read_interpreter(snapshot, &snapshot->interpreters[i]);
	if (remote_memory_read_u64(snapshot->memory,
				   snapshot->runtime_addr + offsets->runtime.interpreters_head,
				   &head_addr) ||
	    !snapshot->nr_interpreters || head_addr != snapshot->interpreters[0].ref.addr)
		snapshot->is_stale = true;
	read_threads(snapshot);
	return 0;
}

/* Ending a look. */

/* Whether what was read of a GIL's threads is of one instant. */
static bool gil_proven(const struct snapshot *snapshot,
		       const struct snapshot_interpreter *interpreter)
{
	const struct gil *gil = &interpreter->gil.now;
	const struct look_seal *head =
		look_memory_seal_at(&snapshot->instant.look, interpreter->head_seal);

	if (!interpreter->gil.not_taken)
		return false;
	/* If any thread may run another one's state, all must have stood still. */
	for (size_t i = 0; snapshot_may_swap(snapshot) && i < snapshot->nr_threads; i++)
		if (snapshot->threads[i]->tid && !snapshot->threads[i]->proof.stood_still)
			return false;
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i]->ref.addr == gil->last_holder_addr)
			return snapshot->threads[i]->proof.stood_still;
	/* Its last holder has ended. That proves something only if no thread has begun since. */
	return !gil->is_held && !snapshot->is_stale && head->is_read &&
	       memcmp(head->first, head->last, sizeof(uint64_t)) == 0;
}

/* Whether a thread could run in this look, by a state that is still its own. */
static bool is_runner(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	return thread->was_copied && snapshot_may_run(snapshot, thread);
}

bool snapshot_record_foreign(struct snapshot *snapshot, struct snapshot_thread *thread)
{
	struct instant *instant = &snapshot->instant;
	struct instant_thread *proof = &thread->proof;

	/* A moved state is evidence only if its thread stood still. */
	if (proof->is_foreign || (proof->has_moved && proof->stood_still))
		proof->foreign_until_look = instant->nr_looks + FOREIGN_LOOKS;
	if (proof->is_own || (!proof->is_foreign && instant->nr_looks >= proof->foreign_until_look))
		return proof->runner_is_unknown;
	instant->nr_foreign++;
	return true;
}

/* Whether a thread that could run stood still. Makes the next looks hold its CPU. */
static bool thread_stood_still(struct snapshot *snapshot, struct snapshot_thread *thread)
{
	struct instant *instant = &snapshot->instant;
	struct instant_thread *proof = &thread->proof;
	struct witness *witness = &proof->witness;
	struct thread_stat now;

	if (!proof->is_watched)
		return instant->is_dead;
	proof->stood_still = witness_stood_still(witness, &instant->look, &instant->held);
	instant->nr_stood_still += proof->stood_still;
	if (proof->stood_still && snapshot_record_foreign(snapshot, thread))
		proof->stood_still = false;
	if (!proof->stood_still && instant->preempt && witness->kind != WITNESS_RSEQ &&
	    !witness_now(witness, &instant->means, thread->tid, &now))
		witness->cpu = now.cpu;
	if (instant->preempt &&
	    !preempt_follow(instant->preempt, &instant->followed, witness->cpu) &&
	    !proof->stood_still && instant->unreachable_look != instant->nr_looks) {
		instant->unreachable_look = instant->nr_looks;
		instant->nr_unreachable++;
	}
	return proof->stood_still;
}

/* Find out whether a thread stood still, by its own witness. */
static void prove_thread(struct snapshot *snapshot, struct snapshot_thread *thread)
{
	struct snapshot_interpreter *owner = gil_owner(snapshot, thread->ref.interpreter);

	thread->proof.stood_still = thread->has_slept = false;
	if (!is_runner(snapshot, thread))
		return;
	thread->proof.stood_still = thread_stood_still(snapshot, thread);
	if (thread->proof.witness.has_ended)
		thread->has_ended = snapshot->is_stale = true;
	/* If states may be swapped, it is unknown which thread runs this one. */
	if (!snapshot->instant.is_late || snapshot_may_swap(snapshot))
		return;
	thread->has_slept = thread->proof.has_slept;
	if (owner->gil.now.is_known)
		owner->has_slept = owner->has_slept || thread->has_slept;
}

int snapshot_end(struct snapshot *snapshot, enum instant_verdict *ret_verdict)
{
	struct instant *instant = &snapshot->instant;
	const int err = look_memory_end(&instant->look);

	/* The evidence is read before the target is released. */
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];

		if (is_runner(snapshot, thread) && thread->proof.is_watched)
			witness_end(&thread->proof.witness, &instant->means, thread->tid);
		thread->is_proven = instant->is_dead;
	}
	release_cpus(instant);
	if (err)
		return err;
	*ret_verdict = INSTANT_PROVEN;
	if (instant->is_dead)
		return 0;
	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		snapshot->interpreters[i].has_slept = false;
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		prove_thread(snapshot, snapshot->threads[i]);
	for (size_t i = 0; i < snapshot->nr_interpreters; i++) {
		struct snapshot_interpreter *interpreter = &snapshot->interpreters[i];
		struct instant_gil *gil = &interpreter->gil;
		const struct gil last = read_gil(snapshot, gil, true);

		gil->not_taken = !gil_switched(&gil->now, &last);
		interpreter->is_proven = gil_proven(snapshot, interpreter);
	}
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];
		const struct snapshot_interpreter *owner =
			gil_owner(snapshot, thread->ref.interpreter);

		thread->is_proven =
			owner->gil.now.is_known ? owner->is_proven : thread->proof.stood_still;
		thread->has_slept = thread->has_slept || owner->has_slept;
		if (!thread->is_proven)
			*ret_verdict = instant->has_slept ? INSTANT_LOCKED : INSTANT_MOVED;
	}
	return 0;
}

bool snapshot_was_waiting(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	const struct instant_gil *gil = snapshot_gil(snapshot, thread);

	return gil->not_taken && gil->now.is_counted && !snapshot_may_run(snapshot, thread) &&
	       !snapshot->instant.gil_distrusted;
}

void snapshot_mark_known(struct snapshot_thread *thread)
{
	struct instant_thread *proof = &thread->proof;

	proof->is_known = true;
	/* Otherwise another thread may run the state, without using time of this one. */
	proof->known_cpu_ns =
		proof->is_own && proof->is_watched ? witness_cpu_ns(&proof->witness) : 0;
	proof->known_used_ns = proof->is_own ? proof->look_used_ns : 0;
}

void snapshot_commit(struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		if (snapshot->interpreters[i].gil.not_taken)
			snapshot->interpreters[i].gil.committed = snapshot->interpreters[i].gil.now;
}

bool snapshot_holds_gil(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	return gil_holder_addr(&snapshot_gil(snapshot, thread)->now) == thread->ref.addr;
}

void snapshot_set_words(struct snapshot *snapshot, struct snapshot_thread *thread,
			const uint8_t *gil_words, uint64_t collector)
{
	const struct gil_place *place = &snapshot_gil(snapshot, thread)->place;
	const struct gil gil =
		place->addr ? gil_decode(place, gil_words) : (struct gil){.is_known = false};

	thread->holds_gil = gil_holder_addr(&gil) == thread->ref.addr;
	set_collector(snapshot, &snapshot->interpreters[thread->ref.interpreter], collector);
}
