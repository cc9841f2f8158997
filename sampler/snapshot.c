/* SPDX-License-Identifier: MIT */
#include "sampler/snapshot.h"

#include <errno.h>
#include <string.h>

/*
 * A thread that could run in one of so many last looks is expected to be able to run in the next:
 * its witness is called before anything else is read.
 */
enum { EXPECTED_LOOKS = 64 };

/* A look that meets a runner nobody expected begins once more, with that one's witness. */
enum { MAX_BEGINNINGS = 3 };

void snapshot_init(struct snapshot *snapshot, struct remote_memory *memory,
		   const struct py_build *build, remote_addr runtime_addr)
{
	*snapshot = (struct snapshot){
		.build = build,
		.runtime_addr = runtime_addr,
		.stale = true,
	};
	look_memory_init(&snapshot->look, memory);
	snapshot->memory = &snapshot->look.memory;
}

/* Whether a GIL of its own serves the interpreter, or could: the one of index i. */
static bool may_have_gil(const struct snapshot *snapshot, size_t i)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;

	if (snapshot->build->free_threaded)
		return false;
	if (offsets->interpreter.gil_locked != OFFSET_ABSENT)
		return true;
	/* Before 3.12 there is one for all. The main interpreter is the oldest and so the last. */
	return i + 1 == snapshot->nr_interpreters &&
	       (offsets->runtime.gil_locked != OFFSET_ABSENT || snapshot->current_thread_addr);
}

static remote_addr gil_addr(const struct snapshot *snapshot, size_t i)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;

	if (offsets->interpreter.gil_locked != OFFSET_ABSENT)
		return snapshot->interpreters[i].ref.addr + offsets->interpreter.gil_last_holder;
	if (offsets->runtime.gil_locked != OFFSET_ABSENT)
		return snapshot->runtime_addr + offsets->runtime.gil_last_holder;
	return snapshot->current_thread_addr;
}

/* The GIL as the words say that were sealed. */
static struct gil decode_gil(const struct snapshot *snapshot, const uint8_t *words)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;

	if (offsets->interpreter.gil_locked != OFFSET_ABSENT)
		return gil_decode(words, offsets->interpreter.gil_locked -
						 offsets->interpreter.gil_last_holder);
	if (offsets->runtime.gil_locked != OFFSET_ABSENT)
		return gil_decode(words,
				  offsets->runtime.gil_locked - offsets->runtime.gil_last_holder);
	return gil_of_current(field_u64(words, 0));
}

/* The interpreter whose GIL an interpreter uses. */
static struct snapshot_interpreter *gil_owner(const struct snapshot *snapshot, size_t i)
{
	return snapshot->interpreters[i].has_own_gil
		       ? &snapshot->interpreters[i]
		       : &snapshot->interpreters[snapshot->nr_interpreters - 1];
}

static const struct gil *gil_of(const struct snapshot *snapshot,
				const struct snapshot_thread *thread)
{
	return &gil_owner(snapshot, thread->ref.interpreter)->gil;
}

/* Whether it makes a difference to this look that a thread runs. */
static bool counts(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	return !snapshot->only || thread == snapshot->only || gil_of(snapshot, thread)->known;
}

/* Beginning a look. */

/*
 * Have the counters of code sealed: they are read before all code, so that no entry is ever taken to
 * be newer than what was read of it. 0 or -ENOMEM.
 */
static int seal_clock(struct snapshot *snapshot, struct snapshot_interpreter *interpreter)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	const remote_addr addr = interpreter->ref.addr;
	int err = 0;

	if (offsets->interpreter.code_object_generation != OFFSET_ABSENT)
		err = look_memory_seal(&snapshot->look,
				       addr + offsets->interpreter.code_object_generation,
				       sizeof(uint64_t), &interpreter->generation_seal);
	if (!err && offsets->interpreter.next_code_version != OFFSET_ABSENT)
		err = look_memory_seal(&snapshot->look,
				       addr + offsets->interpreter.next_code_version,
				       sizeof(uint32_t), &interpreter->version_seal);
	return err;
}

/* Have the words sealed by which the look is judged. 0 or -ENOMEM. */
static int seal_words(struct snapshot *snapshot)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	struct look_memory *look = &snapshot->look;
	int err = 0;

	look_memory_clear_seals(look);
	/* The witnesses' words are the outermost of all that is read. */
	for (size_t i = 0; !err && snapshot->means && i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];

		thread->is_sealed = thread->runner_look && counts(snapshot, thread) &&
				    thread->runner_look + EXPECTED_LOOKS >= snapshot->tick;
		if (!thread->is_sealed)
			continue;
		/* The user may have learnt the thread's id since. */
		if (!thread->has_witness ||
		    (thread->witness.kind == WITNESS_NONE && thread->tid != thread->witness_tid)) {
			if (thread->has_witness)
				witness_close(&thread->witness);
			thread->witness_tid = thread->tid;
			witness_open(snapshot->means, thread->ref.thread_id, thread->tid,
				     &thread->witness);
			thread->has_witness = true;
		}
		err = witness_begin(&thread->witness, look, &snapshot->held);
	}
	for (size_t i = 0; !err && i < snapshot->nr_interpreters; i++) {
		struct snapshot_interpreter *interpreter = &snapshot->interpreters[i];

		if (may_have_gil(snapshot, i))
			err = look_memory_seal(look, gil_addr(snapshot, i),
					       snapshot->current_thread_addr ? sizeof(uint64_t)
									     : GIL_BYTES,
					       &interpreter->gil_seal);
		if (!err)
			err = look_memory_seal(
				look, interpreter->ref.addr + offsets->interpreter.threads_head,
				sizeof(uint64_t), &interpreter->head_seal);
		if (!err)
			err = seal_clock(snapshot, interpreter);
	}
	return err;
}

/* Who has which GIL, by the seals. */
static void decode_gils(struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_interpreters; i++) {
		struct snapshot_interpreter *interpreter = &snapshot->interpreters[i];
		const struct look_seal *seal;

		interpreter->gil = (struct gil){.known = false};
		interpreter->has_own_gil = i + 1 == snapshot->nr_interpreters;
		if (!may_have_gil(snapshot, i))
			continue;
		seal = look_memory_seal_at(&snapshot->look, interpreter->gil_seal);
		if (seal->is_read)
			interpreter->gil = decode_gil(snapshot, seal->first);
		interpreter->has_own_gil = interpreter->has_own_gil || interpreter->gil.known;
	}
}

/* Whether a thread may run while the look lasts, by what its GIL says. */
static bool may_run(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	const struct gil *gil = gil_of(snapshot, thread);

	return !gil->known || gil->last_holder_addr == thread->ref.addr;
}

/* Note who may run. False: somebody whose witness was not there from the beginning. */
static bool note_runners(struct snapshot *snapshot)
{
	bool all_sealed = true;

	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];

		if (!may_run(snapshot, thread) || !counts(snapshot, thread))
			continue;
		thread->runner_look = snapshot->tick;
		all_sealed = all_sealed && thread->is_sealed;
	}
	return all_sealed;
}

/* Read what is read ahead, with the witnesses of all who may run. */
static int begin_reading(struct snapshot *snapshot)
{
	bool all_sealed = false;
	int err = 0;

	for (int i = 0; !err && !all_sealed && i < MAX_BEGINNINGS; i++) {
		if (i)
			(void)look_memory_end(&snapshot->look);
		err = seal_words(snapshot);
		if (!err)
			err = look_memory_begin(&snapshot->look);
		if (err)
			return err;
		decode_gils(snapshot);
		all_sealed = note_runners(snapshot) || !snapshot->means;
	}
	return err;
}

/* A word of the target; *ret_value is 0 where it cannot be read. */
static bool read_u64(struct snapshot *snapshot, remote_addr addr, uint64_t *ret_value)
{
	*ret_value = 0;
	return remote_memory_read_u64(snapshot->memory, addr, ret_value) == 0;
}

static bool read_u32(struct snapshot *snapshot, remote_addr addr, uint32_t *ret_value)
{
	*ret_value = 0;
	return remote_memory_read(snapshot->memory, addr, ret_value, sizeof(*ret_value)) == 0;
}

/* The counters that tell whether code objects came or went. */
static void read_clock(struct snapshot *snapshot, struct snapshot_interpreter *interpreter)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	const remote_addr addr = interpreter->ref.addr;
	struct code_clock *clock = &interpreter->clock;

	*clock = (struct code_clock){.interp_addr = addr, .tick = snapshot->tick};
	if (offsets->interpreter.code_object_generation != OFFSET_ABSENT) {
		const struct look_seal *seal =
			look_memory_seal_at(&snapshot->look, interpreter->generation_seal);

		clock->has_generation = seal->is_read;
		clock->generation = seal->is_read ? field_u64(seal->first, 0) : 0;
	}
	if (offsets->interpreter.next_code_version != OFFSET_ABSENT) {
		const struct look_seal *seal =
			look_memory_seal_at(&snapshot->look, interpreter->version_seal);

		clock->has_next_version = seal->is_read;
		clock->next_version = seal->is_read ? field_u32(seal->first, 0) : 0;
	}
	if (snapshot->build->tlbc.generation)
		(void)read_u32(snapshot, addr + snapshot->build->tlbc.generation,
			       &clock->tlbc_generation);
}

/* Whether garbage is collected, and from where. */
static void read_collector(struct snapshot *snapshot, struct snapshot_interpreter *interpreter)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	remote_addr addr = interpreter->ref.addr + offsets->interpreter.gc;
	uint32_t collecting;

	interpreter->collecting = false;
	interpreter->gc_frame_addr = 0;
	if (offsets->runtime.gc != OFFSET_ABSENT)
		addr = snapshot->runtime_addr + offsets->runtime.gc;
	else if (offsets->interpreter.gc == OFFSET_ABSENT)
		return;
	if (offsets->gc.frame != OFFSET_ABSENT)
		interpreter->collecting =
			read_u64(snapshot, addr + offsets->gc.frame, &interpreter->gc_frame_addr) &&
			interpreter->gc_frame_addr;
	else if (offsets->gc.collecting != OFFSET_ABSENT)
		interpreter->collecting =
			read_u32(snapshot, addr + offsets->gc.collecting, &collecting) &&
			collecting == 1;
}

static void read_interpreter(struct snapshot *snapshot, struct snapshot_interpreter *interpreter)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	const struct look_seal *head = look_memory_seal_at(&snapshot->look, interpreter->head_seal);
	uint64_t next_addr;

	if (!head->is_read || field_u64(head->first, 0) != interpreter->ref.threads_head_addr ||
	    !read_u64(snapshot, interpreter->ref.addr + offsets->interpreter.next, &next_addr) ||
	    next_addr != interpreter->ref.next_addr)
		snapshot->stale = true;
	read_clock(snapshot, interpreter);
	read_collector(snapshot, interpreter);
}

/* Whether thread states may run that never took the GIL: they were swapped in. */
static bool may_swap(const struct snapshot *snapshot)
{
	return snapshot->build->version_hex < 0x030d0000 && snapshot->nr_interpreters > 1;
}

/* Whether its own clock tells that a thread is where it was. */
static bool clock_stands(const struct snapshot_thread *thread)
{
	return thread->is_known && thread->is_sealed && thread->known_cpu_ns &&
	       thread->known_cpu_ns == witness_cpu_ns(&thread->witness);
}

/* Whether the GIL tells that a thread is where it was at the last look that held. */
static bool is_told(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	const struct snapshot_interpreter *owner = gil_owner(snapshot, thread->ref.interpreter);

	return snapshot->means && thread->is_known && !thread->is_new &&
	       !snapshot->gil_distrusted && !may_swap(snapshot) && owner->gil.known &&
	       !gil_names(&owner->told, &owner->gil, thread->ref.addr) &&
	       !gil_unclear(&owner->told, &owner->gil);
}

/* Read the state of a thread, and whether it is the thread's still. */
static void read_thread(struct snapshot *snapshot, struct snapshot_thread *thread)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;

	thread->copied = remote_memory_read(snapshot->memory, thread->ref.addr, thread->state,
					    thread_head_bytes(offsets)) == 0 &&
			 field_u64(thread->state, offsets->thread.interp) ==
				 snapshot->interpreters[thread->ref.interpreter].ref.addr &&
			 thread_ref_matches(&thread->ref, offsets, thread->state);
	if (!thread->copied ||
	    field_u64(thread->state, offsets->thread.next) != thread->ref.next_addr)
		snapshot->stale = true;
	thread->clock = snapshot->interpreters[thread->ref.interpreter].clock;
	thread->holds_gil = snapshot_holds_gil(snapshot, thread);
}

/* Read the threads that may be elsewhere than they were, and one more to see whether that is so. */
static void read_threads(struct snapshot *snapshot)
{
	const size_t checked = snapshot->nr_threads ? snapshot->tick % snapshot->nr_threads : 0;

	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];
		const bool is_where_it_was = is_told(snapshot, thread) || clock_stands(thread);

		thread->checked = is_where_it_was && i == checked;
		thread->unchanged = is_where_it_was && !thread->checked;
		if (!thread->unchanged)
			read_thread(snapshot, thread);
	}
}

/* Read one thread, and those that may run, which are judged by what their states say. */
static void read_only(struct snapshot *snapshot, struct snapshot_thread *only)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];

		if (thread == only ||
		    (snapshot->means && may_run(snapshot, thread) && counts(snapshot, thread)))
			read_thread(snapshot, thread);
	}
}

int snapshot_begin(struct snapshot *snapshot, struct snapshot_thread *only)
{
	const struct py_offsets *offsets = &snapshot->build->offsets;
	uint64_t head_addr;
	int err;

	snapshot->tick++;
	snapshot->only = only;
	if (snapshot->preempt)
		preempt_hold(snapshot->preempt, &snapshot->held);
	err = begin_reading(snapshot);
	if (err) {
		if (snapshot->preempt)
			(void)preempt_release(snapshot->preempt, &snapshot->held);
		return err;
	}
	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		read_interpreter(snapshot, &snapshot->interpreters[i]);
	if (!read_u64(snapshot, snapshot->runtime_addr + offsets->runtime.interpreters_head,
		      &head_addr) ||
	    !snapshot->nr_interpreters || head_addr != snapshot->interpreters[0].ref.addr)
		snapshot->stale = true;
	if (only)
		read_only(snapshot, only);
	else
		read_threads(snapshot);
	return 0;
}

/* Ending a look. */

/* Whether nobody can have taken a GIL but its last holder. */
static bool gil_stood(const struct snapshot *snapshot,
		      const struct snapshot_interpreter *interpreter)
{
	const struct look_seal *seal = look_memory_seal_at(&snapshot->look, interpreter->gil_seal);
	struct gil last;

	if (!interpreter->gil.known || !seal->is_read)
		return false;
	last = decode_gil(snapshot, seal->last);
	return !gil_moved(&interpreter->gil, &last);
}

/* Whether no thread was begun or ended: the last holder of a GIL may be a thread that has ended. */
static bool list_stood(const struct snapshot *snapshot,
		       const struct snapshot_interpreter *interpreter)
{
	const struct look_seal *seal = look_memory_seal_at(&snapshot->look, interpreter->head_seal);

	return !snapshot->stale && seal->is_read &&
	       memcmp(seal->first, seal->last, sizeof(uint64_t)) == 0;
}

/*
 * Tell of each thread that could run whether it stood still, and where it is for the looks to come.
 */
static void judge_runners(struct snapshot *snapshot)
{
	snapshot->cannot_follow = false;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];
		struct task_now now;

		thread->held = false;
		/* A state that is another thread's by now says nothing of the thread that it had. */
		if (!may_run(snapshot, thread) || !thread->is_sealed || !thread->copied)
			continue;
		thread->held = witness_stood(&thread->witness, &snapshot->look, &snapshot->held);
		if (!thread->held && thread->witness.kind != WITNESS_RSEQ &&
		    !witness_now(&thread->witness, snapshot->means, thread->tid, &now))
			thread->witness.cpu = now.cpu;
		if (snapshot->preempt && !preempt_follow(snapshot->preempt, thread->witness.cpu))
			snapshot->cannot_follow =
				thread->tid && !preempt_can_meet(snapshot->preempt, thread->tid);
	}
}

/* Whether what was read of the threads of a GIL is of one instant. */
static bool gil_held(const struct snapshot *snapshot,
		     const struct snapshot_interpreter *interpreter)
{
	if (!gil_stood(snapshot, interpreter))
		return false;
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i]->ref.addr == interpreter->gil.last_holder_addr)
			return snapshot->threads[i]->held;
	return !interpreter->gil.held && list_stood(snapshot, interpreter);
}

static bool judge_threads(struct snapshot *snapshot)
{
	bool all_held = true;

	judge_runners(snapshot);
	for (size_t i = 0; i < snapshot->nr_interpreters; i++) {
		struct snapshot_interpreter *interpreter = &snapshot->interpreters[i];

		interpreter->held = interpreter->gil.known && gil_held(snapshot, interpreter);
	}
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct snapshot_thread *thread = snapshot->threads[i];
		const struct snapshot_interpreter *owner =
			gil_owner(snapshot, thread->ref.interpreter);

		if (owner->gil.known)
			thread->held = owner->held;
		all_held = all_held && thread->held;
	}
	return all_held;
}

int snapshot_end(struct snapshot *snapshot, enum instant_verdict *ret_verdict)
{
	int err = look_memory_end(&snapshot->look);
	bool slept = false;

	if (snapshot->preempt)
		slept = preempt_release(snapshot->preempt, &snapshot->held);
	if (err)
		return err;
	*ret_verdict = INSTANT_HELD;
	if (!snapshot->means) {
		for (size_t i = 0; i < snapshot->nr_threads; i++)
			snapshot->threads[i]->held = true;
		return 0;
	}
	if (!judge_threads(snapshot))
		*ret_verdict = slept ? INSTANT_LOCKED : INSTANT_MOVED;
	return 0;
}

bool snapshot_stands_apart(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	const struct snapshot_interpreter *owner = gil_owner(snapshot, thread->ref.interpreter);

	return owner->gil.is_counted && !may_run(snapshot, thread) && gil_stood(snapshot, owner) &&
	       !may_swap(snapshot) && !snapshot->gil_distrusted;
}

void snapshot_know(struct snapshot_thread *thread)
{
	thread->is_known = true;
	thread->known_cpu_ns = thread->is_sealed ? witness_cpu_ns(&thread->witness) : 0;
}

void snapshot_tell(struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_interpreters; i++)
		if (snapshot->interpreters[i].held)
			snapshot->interpreters[i].told = snapshot->interpreters[i].gil;
}

struct snapshot_thread *snapshot_runner(const struct snapshot *snapshot)
{
	struct snapshot_thread *runner = NULL;

	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		if (!may_run(snapshot, snapshot->threads[i]))
			continue;
		if (runner)
			return NULL;
		runner = snapshot->threads[i];
	}
	return runner;
}

bool snapshot_holds_gil(const struct snapshot *snapshot, const struct snapshot_thread *thread)
{
	return gil_holder_addr(gil_of(snapshot, thread)) == thread->ref.addr;
}
