/* SPDX-License-Identifier: MIT */
#include "sampler/snapshot.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "procmem/sched/cpu_clock.h"
#include "tests/support/fake_stack.h"
#include "tests/support/own_process.h"
#include "tests/support/pipe_waiter.h"

enum { CHUNK_BYTES = 4096 };

static void begin(struct fake_python *py, struct snapshot *snapshot, uint32_t minor)
{
	fake_python_init(py, minor);
	snapshot_init(snapshot, &py->fake.memory, &py->build, py->runtime_addr);
	cr_assert(snapshot->is_stale);
}

static void end(struct fake_python *py, struct snapshot *snapshot)
{
	snapshot_done(snapshot);
	fake_python_done(py);
}

static bool has_thread(const struct snapshot *snapshot, uint64_t tid)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i]->ref.native_tid == tid)
			return true;
	return false;
}

static const struct snapshot_thread *find(const struct snapshot *snapshot, uint64_t tid)
{
	size_t i = 0;

	while (i < snapshot->nr_threads && snapshot->threads[i]->ref.native_tid != tid)
		i++;
	cr_assert(lt(sz, i, snapshot->nr_threads));
	return snapshot->threads[i];
}

static void check_slots(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		cr_expect(lt(uint, snapshot->threads[i]->slot, snapshot->nr_slots));
		for (size_t j = 0; j < i; j++)
			cr_expect(ne(uint, snapshot->threads[i]->slot, snapshot->threads[j]->slot));
	}
}

/* A complete look. */
static enum instant_verdict look(struct snapshot *snapshot, struct snapshot_thread *only)
{
	enum instant_verdict verdict;

	cr_assert(zero(int, snapshot_begin(snapshot, only)));
	cr_assert(zero(int, snapshot_end(snapshot, &verdict)));
	return verdict;
}

static enum instant_verdict tick(struct snapshot *snapshot)
{
	enum instant_verdict verdict;

	if (snapshot->is_stale)
		cr_assert(zero(int, snapshot_refresh(snapshot)));
	verdict = look(snapshot, NULL);
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		snapshot->threads[i]->is_new = false;
	return verdict;
}

Test(snapshot, threads_are_added_and_removed)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;
		struct snapshot snapshot;

		begin(&py, &snapshot, fake_stack_minors[v]);
		remote_addr first = fake_python_thread(&py, 1);
		(void)fake_python_thread(&py, 2);
		tick(&snapshot);
		cr_expect(eq(sz, snapshot.nr_threads, 2));
		cr_expect(not(snapshot.is_stale));
		uint32_t slot = find(&snapshot, 1)->slot;

		/* A new head is noticed at the next tick, and read for the tick after it. */
		remote_addr third = fake_python_thread(&py, 3);
		tick(&snapshot);
		cr_expect(snapshot.is_stale);
		tick(&snapshot);
		cr_expect(eq(sz, snapshot.nr_threads, 3));
		check_slots(&snapshot);
		cr_expect(eq(uint, find(&snapshot, 1)->slot, slot));

		/* The thread in the middle ends: the previous one's link changes. */
		fake_memory_write_u64(&py.fake, third + py.build.offsets.thread.next, first);
		tick(&snapshot);
		cr_expect(snapshot.is_stale);
		tick(&snapshot);
		cr_expect(eq(sz, snapshot.nr_threads, 2));
		cr_expect(not(has_thread(&snapshot, 2)));
		check_slots(&snapshot);
		cr_expect(eq(uint, find(&snapshot, 1)->slot, slot));

		/* Its slot is reused. */
		(void)fake_python_thread(&py, 4);
		tick(&snapshot);
		tick(&snapshot);
		cr_expect(eq(uint, snapshot.nr_slots, 3));
		check_slots(&snapshot);
		end(&py, &snapshot);
	}
}

/* Half of the threads end, and as many new ones begin at the head. */
Test(snapshot, threads_keep_their_slots_while_others_end)
{
	enum { NR_THREADS = 200 };
	struct fake_python py;
	struct snapshot snapshot;
	remote_addr addrs[NR_THREADS];
	uint32_t slots[NR_THREADS];
	remote_addr next_addr = 0;

	begin(&py, &snapshot, 14);
	for (uint64_t i = 0; i < NR_THREADS; i++)
		addrs[i] = fake_python_thread(&py, i + 1);
	tick(&snapshot);
	for (uint64_t i = 0; i < NR_THREADS; i++)
		slots[i] = find(&snapshot, i + 1)->slot;
	for (uint64_t i = 1; i < NR_THREADS; i += 2) {
		fake_python_thread_at(&py, addrs[i], i + 1, next_addr);
		next_addr = addrs[i];
	}
	fake_python_set_threads(&py, next_addr);
	for (uint64_t i = 0; i < NR_THREADS / 2; i++)
		(void)fake_python_thread(&py, 1000 + i);
	cr_assert(zero(int, snapshot_refresh(&snapshot)));
	cr_expect(eq(sz, snapshot.nr_threads, NR_THREADS));
	cr_expect(eq(uint, snapshot.nr_slots, NR_THREADS), "free slots are reused");
	check_slots(&snapshot);
	for (uint64_t i = 1; i < NR_THREADS; i += 2) {
		cr_expect(eq(uint, find(&snapshot, i + 1)->slot, slots[i]));
		cr_expect(not(find(&snapshot, i + 1)->is_new));
	}
	for (uint64_t i = 0; i < NR_THREADS / 2; i++)
		cr_expect(find(&snapshot, 1000 + i)->is_new);
	end(&py, &snapshot);
}

Test(snapshot, reused_thread_state_is_another_thread)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;
		struct snapshot snapshot;

		begin(&py, &snapshot, fake_stack_minors[v]);
		remote_addr addr = fake_python_thread(&py, 1);
		tick(&snapshot);
		fake_python_thread_at(&py, addr, 2, 0);
		(void)look(&snapshot, NULL);
		cr_expect(not(snapshot.threads[0]->was_copied));
		cr_expect(snapshot.is_stale);
		cr_assert(zero(int, snapshot_refresh(&snapshot)));
		cr_assert(eq(sz, snapshot.nr_threads, 1));
		cr_expect(eq(u64, snapshot.threads[0]->ref.native_tid, 2));
		cr_expect(snapshot.threads[0]->is_new);
		end(&py, &snapshot);
	}
}

Test(snapshot, unmapped_thread_state_is_not_copied)
{
	struct fake_python py;
	struct snapshot snapshot;

	begin(&py, &snapshot, 14);
	(void)fake_python_thread(&py, 1);
	remote_addr addr = fake_python_thread(&py, 2);
	tick(&snapshot);
	fake_memory_unmap(&py.fake, addr);
	(void)look(&snapshot, NULL);
	cr_expect(snapshot.is_stale);
	cr_expect(not(find(&snapshot, 2)->was_copied));
	cr_expect(find(&snapshot, 1)->was_copied);
	/* The old list stays while the new one cannot be read. */
	cr_expect(eq(int, snapshot_refresh(&snapshot), -EFAULT));
	cr_expect(eq(sz, snapshot.nr_threads, 2));
	end(&py, &snapshot);
}

Test(snapshot, steady_state_costs_one_read)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;
		struct snapshot snapshot;

		begin(&py, &snapshot, fake_stack_minors[v]);
		py.fake.whole_pages = true;
		for (uint64_t tid = 1; tid <= 3; tid++) {
			remote_addr thread = fake_python_thread(&py, tid);
			remote_addr chunk = fake_python_chunk(&py, 0, CHUNK_BYTES);

			fake_python_set_stack(&py, thread, chunk, chunk + 32, 0);
		}
		tick(&snapshot);
		tick(&snapshot);
		uint64_t nr_calls = py.fake.nr_calls;
		for (int i = 0; i < 10; i++)
			tick(&snapshot);
		cr_expect(eq(u64, py.fake.nr_calls, nr_calls + 10));
		end(&py, &snapshot);
	}
}

Test(snapshot, cyclic_lists_are_bounded)
{
	struct fake_python py;
	struct snapshot snapshot;

	begin(&py, &snapshot, 14);
	remote_addr thread = fake_python_thread(&py, 1);
	fake_memory_write_u64(&py.fake, thread + py.build.offsets.thread.next, thread);
	cr_expect(eq(int, snapshot_refresh(&snapshot), -E2BIG));
	fake_memory_write_u64(&py.fake, thread + py.build.offsets.thread.next, 0);
	fake_memory_write_u64(&py.fake, py.interp_addr + py.build.offsets.interpreter.next,
			      py.interp_addr);
	cr_expect(eq(int, snapshot_refresh(&snapshot), -E2BIG));
	end(&py, &snapshot);
}

/* Set the GIL's last holder, whether it is locked, and its number of switches. */
static void set_gil(struct fake_python *py, remote_addr thread_addr, bool locked,
		    uint64_t nr_switches)
{
	const struct py_offsets *offsets = &py->build.offsets;
	const bool runtime = offsets->interpreter.gil_locked == OFFSET_ABSENT;
	const remote_addr addr = runtime ? py->runtime_addr : py->interp_addr;
	const uint32_t holder =
		runtime ? offsets->runtime.gil_last_holder : offsets->interpreter.gil_last_holder;

	fake_memory_write_u64(&py->fake, addr + holder, thread_addr);
	fake_memory_write_u64(&py->fake, addr + holder + GIL_SWITCHES_OFFSET, nr_switches);
	fake_memory_write_u32(
		&py->fake,
		addr + (runtime ? offsets->runtime.gil_locked : offsets->interpreter.gil_locked),
		locked);
}

/* Set how many have enabled the GIL of a free-threaded build. */
static void enable_gil(struct fake_python *py, uint32_t enabled)
{
	fake_memory_write_u32(&py->fake,
			      py->interp_addr + py->build.offsets.interpreter.gil_last_holder -
				      GIL_ENABLED_BEFORE_HOLDER,
			      enabled);
}

/* A free-threaded build has a GIL only if it is on for good, whatever the GIL's memory contains. */
Test(snapshot, gil_holder_is_found)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;
		struct snapshot snapshot;

		begin(&py, &snapshot, fake_stack_minors[v]);
		remote_addr thread = fake_python_thread(&py, 1);
		const remote_addr holder = py.build.free_threaded ? 0 : thread;

		set_gil(&py, thread, false, 0);
		tick(&snapshot);
		cr_expect(zero(u64, gil_holder_addr(&snapshot.interpreters[0].gil.now)));
		cr_expect(not(snapshot.threads[0]->holds_gil));
		set_gil(&py, thread, true, 0);
		tick(&snapshot);
		cr_expect(eq(u64, gil_holder_addr(&snapshot.interpreters[0].gil.now), holder));
		cr_expect(eq(int, snapshot.threads[0]->holds_gil, holder != 0));
		cr_expect(eq(int, snapshot_holds_gil(&snapshot, snapshot.threads[0]), holder != 0));
		if (py.build.free_threaded) {
			enable_gil(&py, 1);
			tick(&snapshot);
			cr_expect(not(snapshot.threads[0]->holds_gil));
			enable_gil(&py, GIL_ON_FOR_GOOD);
			tick(&snapshot);
			cr_expect(snapshot.threads[0]->holds_gil);
			set_gil(&py, thread, false, 0);
			tick(&snapshot);
			cr_expect(not(snapshot.threads[0]->holds_gil));
		}
		end(&py, &snapshot);
	}
}

Test(snapshot, memory_errors_are_forwarded)
{
	struct fake_python py;
	struct snapshot snapshot;

	begin(&py, &snapshot, 13);
	(void)fake_python_thread(&py, 1);
	tick(&snapshot);
	py.fake.error = -ESRCH;
	cr_expect(eq(int, snapshot_begin(&snapshot, NULL), -ESRCH));
	py.fake.error = -EPERM;
	cr_expect(eq(int, snapshot_begin(&snapshot, NULL), -EPERM));
	cr_expect(eq(int, snapshot_refresh(&snapshot), -EPERM));
	py.fake.error = 0;
	fake_memory_write_u64(&py.fake,
			      py.runtime_addr + py.build.offsets.runtime.interpreters_head, 0);
	cr_expect(eq(int, snapshot_refresh(&snapshot), -ENOENT));
	end(&py, &snapshot);
}

/*
 * Looks at a running target. Each thread has a word with its CPU, like glibc's rseq area. CPU 3
 * is held.
 */
enum { NR_LIVE_THREADS = 3, HELD_CPU = 3, OTHER_CPU = 5, RSEQ_OFFSET = 4096, TID_STEP = 64 };

struct live {
	struct fake_python py;
	struct snapshot snapshot;
	remote_addr addrs[NR_LIVE_THREADS];
	bool are_own; /* no other thread can run the states of the threads */
};

static remote_addr cpu_word(int i)
{
	return FAKE_THREAD_ID + (uint64_t)(i + 1) * TID_STEP + RSEQ_OFFSET;
}

static void set_cpu(struct live *live, int i, uint32_t cpu)
{
	fake_memory_write_u32(&live->py.fake, cpu_word(i), cpu);
}

static struct snapshot_thread *thread_of(const struct live *live, int i)
{
	struct snapshot_thread *const *threads = live->snapshot.threads;
	size_t at = 0;

	while (at < live->snapshot.nr_threads && threads[at]->ref.addr != live->addrs[i])
		at++;
	cr_assert(lt(sz, at, live->snapshot.nr_threads));
	return threads[at];
}

/* All threads are on the held CPU. The first one has the GIL, if there is one. */
static void begin_live(struct live *live, uint32_t minor)
{
	static const struct witness_means means = {
		.rseq = {.is_known = true, .cpu_id_offset = RSEQ_OFFSET}};

	live->are_own = true;
	begin(&live->py, &live->snapshot, minor);
	live->py.fake.whole_pages = true;
	(void)fake_memory_map(&live->py.fake, cpu_word(-1), (NR_LIVE_THREADS + 1) * TID_STEP);
	for (int i = 0; i < NR_LIVE_THREADS; i++) {
		live->addrs[i] = fake_python_thread(&live->py, (uint64_t)(i + 1) * TID_STEP);
		set_cpu(live, i, HELD_CPU);
	}
	set_gil(&live->py, live->addrs[0], true, 1);
	CPU_SET(HELD_CPU, &live->snapshot.instant.held);
	snapshot_set_live(&live->snapshot, &means);
}

static void end_live(struct live *live)
{
	end(&live->py, &live->snapshot);
}

/* Take a tick, and commit it if it is proven. */
static enum instant_verdict tick_and_commit(struct live *live)
{
	enum instant_verdict verdict = tick(&live->snapshot);

	for (size_t i = 0; i < live->snapshot.nr_threads; i++) {
		struct snapshot_thread *thread = live->snapshot.threads[i];

		if (thread->is_unchanged)
			continue;
		thread->proof.is_own = live->are_own;
		snapshot_mark_known(thread);
	}
	if (verdict == INSTANT_PROVEN)
		snapshot_commit(&live->snapshot);
	return verdict;
}

/* Make a look during which something happens, after everything that is prefetched. */
static enum instant_verdict tick_while(struct live *live, void (*happens)(struct live *live))
{
	enum instant_verdict verdict;
	uint64_t word;

	cr_assert(zero(int, snapshot_begin(&live->snapshot, NULL)));
	happens(live);
	/* A read that was not read ahead, so that the seals are read once more. */
	cr_assert(zero(int, remote_memory_read_u64(live->snapshot.memory, live->py.code_type_addr,
						   &word)));
	cr_assert(zero(int, snapshot_end(&live->snapshot, &verdict)));
	return verdict;
}

static void expect_proven(const struct live *live, bool proven)
{
	for (int i = 0; i < NR_LIVE_THREADS; i++)
		cr_expect(eq(int, thread_of(live, i)->is_proven, proven), "3.%u, thread %d",
			  live->py.minor, i);
}

/* A core file or a tape. */
Test(snapshot, memory_of_the_dead_is_proven)
{
	struct live live;

	begin_live(&live, 14);
	live.snapshot.instant.is_dead = true;
	set_cpu(&live, 0, OTHER_CPU);
	cr_expect(eq(int, tick(&live.snapshot), INSTANT_PROVEN));
	expect_proven(&live, true);
	end_live(&live);
}

/*
 * With a GIL the witness of its last holder covers all threads; without one each thread needs its
 * own.
 */
Test(snapshot, witnesses_prove_a_snapshot)
{
	static const uint32_t not_held_cpus[] = {OTHER_CPU, UINT32_MAX, CPU_SETSIZE + 1};

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct live live;

		begin_live(&live, fake_stack_minors[v]);
		const bool has_gil = !live.py.build.free_threaded;

		cr_expect(eq(int, tick(&live.snapshot), INSTANT_PROVEN), "3.%u", live.py.minor);
		expect_proven(&live, true);
		set_gil(&live.py, live.addrs[0], false, 1);
		cr_expect(eq(int, tick(&live.snapshot), INSTANT_PROVEN),
			  "the last holder suffices");
		for (size_t i = 0; i < sizeof(not_held_cpus) / sizeof(*not_held_cpus); i++) {
			set_cpu(&live, 1, not_held_cpus[i]);
			cr_expect(eq(int, tick(&live.snapshot),
				     has_gil ? INSTANT_PROVEN : INSTANT_MOVED));
			cr_expect(thread_of(&live, 0)->is_proven);
			cr_expect(eq(int, thread_of(&live, 1)->is_proven, has_gil));
			cr_expect(thread_of(&live, 2)->is_proven);
			set_cpu(&live, 0, not_held_cpus[i]);
			cr_expect(eq(int, tick(&live.snapshot), INSTANT_MOVED));
			cr_expect(not(thread_of(&live, 0)->is_proven));
			cr_expect(not(thread_of(&live, 1)->is_proven));
			cr_expect(eq(int, thread_of(&live, 2)->is_proven, !has_gil));
			set_cpu(&live, 0, HELD_CPU);
			set_cpu(&live, 1, HELD_CPU);
			cr_expect(eq(int, tick(&live.snapshot), INSTANT_PROVEN));
		}
		end_live(&live);
	}
}

static void move_first(struct live *live)
{
	set_cpu(live, 0, OTHER_CPU);
}

static void take_gil(struct live *live)
{
	set_gil(&live->py, live->addrs[1], true, 2);
}

/* The GIL went to another thread and came back. */
static void pass_gil_and_back(struct live *live)
{
	set_gil(&live->py, live->addrs[0], true, 3);
}

static void drop_gil(struct live *live)
{
	set_gil(&live->py, live->addrs[0], false, 1);
}

static void change_nothing(struct live *live)
{
	(void)live;
}

/* Changes between the first and last read of the seals. */
Test(snapshot, changes_during_a_snapshot_are_noticed)
{
	static const struct {
		char name[32];
		void (*happens)(struct live *live);
		bool proven, proven_without_gil;
	} cases[] = {
		{"no change", change_nothing, true, true},
		{"the holder leaves", move_first, false, false},
		{"another takes the GIL", take_gil, false, true},
		{"another takes it and returns it", pass_gil_and_back, false, true},
		{"the GIL is dropped", drop_gil, true, true},
	};

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			struct live live;

			begin_live(&live, fake_stack_minors[v]);
			const bool proven = live.py.build.free_threaded
						    ? cases[i].proven_without_gil
						    : cases[i].proven;

			(void)tick(&live.snapshot);
			cr_expect(eq(int, tick_while(&live, cases[i].happens),
				     proven ? INSTANT_PROVEN : INSTANT_MOVED),
				  "3.%u %s", live.py.minor, cases[i].name);
			end_live(&live);
		}
	}
}

static void enable_gil_for_good(struct live *live)
{
	enable_gil(&live->py, GIL_ON_FOR_GOOD);
}

static void tear_gil_words(struct live *live)
{
	enable_gil(&live->py, 0);
}

/* A GIL that is on for good covers all threads; one that is on for a time does not. */
Test(snapshot, free_threaded_build_has_a_gil_at_times)
{
	static const struct {
		char name[32];
		uint32_t enabled;
		void (*happens)(struct live *live);
		bool proven, proven_elsewhere; /* the latter with thread 1 on another CPU */
	} cases[] = {
		{"off", 0, change_nothing, true, false},
		{"off, another takes it", 0, take_gil, true, false},
		{"off, it is switched on", 0, enable_gil_for_good, true, false},
		{"for a time", 1, change_nothing, true, false},
		{"for a time, another takes it", 1, take_gil, true, false},
		{"for good", GIL_ON_FOR_GOOD, change_nothing, true, true},
		{"for good, another takes it", GIL_ON_FOR_GOOD, take_gil, false, false},
		{"for good, taken and returned", GIL_ON_FOR_GOOD, pass_gil_and_back, false, false},
		{"for good, the words are torn", GIL_ON_FOR_GOOD, tear_gil_words, false, false},
	};

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
			const size_t c = i / 2;
			const bool elsewhere = i % 2 != 0;
			struct live live;

			begin_live(&live, fake_stack_minors[v]);
			if (live.py.build.free_threaded) {
				enable_gil(&live.py, cases[c].enabled);
				(void)tick(&live.snapshot);
				if (elsewhere)
					set_cpu(&live, 1, OTHER_CPU);
				const bool proven =
					elsewhere ? cases[c].proven_elsewhere : cases[c].proven;
				cr_expect(eq(int, tick_while(&live, cases[c].happens),
					     proven ? INSTANT_PROVEN : INSTANT_MOVED),
					  "3.%u %s", live.py.minor, cases[c].name);
			}
			end_live(&live);
		}
	}
}

/*
 * Between two times in which the GIL was on, threads may have run without it, and neither of its
 * words shows that.
 */
Test(snapshot, temporary_gil_proves_nothing_between_snapshots)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct live live;

		begin_live(&live, fake_stack_minors[v]);
		if (live.py.build.free_threaded) {
			enable_gil(&live.py, 1);
			cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
			cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
			for (int i = 0; i < NR_LIVE_THREADS; i++)
				cr_expect(not(thread_of(&live, i)->is_unchanged), "3.%u, thread %d",
					  live.py.minor, i);
			enable_gil(&live.py, GIL_ON_FOR_GOOD);
			cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
			for (int i = 0; i < NR_LIVE_THREADS; i++)
				cr_expect(not(thread_of(&live, i)->is_unchanged));
			cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
			cr_expect(not(thread_of(&live, 0)->is_unchanged));
		}
		end_live(&live);
	}
}

static void begin_thread(struct live *live)
{
	(void)fake_python_thread(&live->py, 10 * TID_STEP);
}

/* The last holder is not in the list: it has ended, or it is new. */
Test(snapshot, unlisted_holder_proves_nothing_while_it_runs)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct live live;

		begin_live(&live, fake_stack_minors[v]);
		if (live.py.build.free_threaded) {
			end_live(&live);
			continue;
		}
		set_gil(&live.py, live.py.none_addr, false, 7);
		cr_expect(eq(int, tick(&live.snapshot), INSTANT_PROVEN), "3.%u: the GIL is free",
			  live.py.minor);
		cr_expect(eq(int, tick_while(&live, begin_thread), INSTANT_MOVED),
			  "3.%u: a thread has begun", live.py.minor);
		cr_assert(zero(int, snapshot_refresh(&live.snapshot)));
		cr_expect(eq(int, tick(&live.snapshot), INSTANT_PROVEN));
		set_gil(&live.py, live.py.none_addr, true, 7);
		cr_expect(eq(int, tick(&live.snapshot), INSTANT_MOVED),
			  "3.%u: an unknown thread runs", live.py.minor);
		end_live(&live);
	}
}

/* Number of threads read in the last look, apart from the one that was only checked. */
static size_t nr_read(const struct live *live)
{
	size_t nr = 0;

	for (size_t i = 0; i < live->snapshot.nr_threads; i++)
		nr += !live->snapshot.threads[i]->is_unchanged &&
		      !live->snapshot.threads[i]->is_checked;
	return nr;
}

Test(snapshot, threads_without_the_gil_are_unchanged)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct live live;

		begin_live(&live, fake_stack_minors[v]);
		if (live.py.build.free_threaded) {
			cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
			cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
			cr_expect(eq(sz, nr_read(&live), NR_LIVE_THREADS));
			end_live(&live);
			continue;
		}
		cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
		cr_expect(eq(sz, nr_read(&live), NR_LIVE_THREADS), "no thread is known yet");
		cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
		cr_expect(eq(sz, nr_read(&live), 1));
		cr_expect(not(thread_of(&live, 0)->is_unchanged));

		/* The GIL went to the second thread, so the third did not have it. */
		set_gil(&live.py, live.addrs[1], true, 2);
		cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
		cr_expect(eq(sz, nr_read(&live), 2));
		cr_expect(thread_of(&live, 2)->is_unchanged || thread_of(&live, 2)->is_checked);

		/*
		 * A look that is not proven is no evidence: the switch count before it is the one
		 * to compare with.
		 */
		set_cpu(&live, 1, OTHER_CPU);
		set_gil(&live.py, live.addrs[1], true, 4);
		cr_expect(eq(int, tick_and_commit(&live), INSTANT_MOVED));
		set_cpu(&live, 1, HELD_CPU);
		cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
		cr_expect(eq(sz, nr_read(&live), NR_LIVE_THREADS), "any thread may have held it");
		cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
		cr_expect(eq(sz, nr_read(&live), 1));

		live.snapshot.instant.gil_distrusted = true;
		cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
		cr_expect(eq(sz, nr_read(&live), NR_LIVE_THREADS));
		end_live(&live);
	}
}

/* Whether a thread stays where it was in a look in which its clock shows used_ns, if any. */
static bool stays(struct live *live, const int clock_fds[2], int64_t used_ns)
{
	struct cpu_clock clock = {.kind = CPU_CLOCK_TASK, .fd = clock_fds[0]};
	struct snapshot_thread *thread = thread_of(live, 2);

	thread->cpu_clock = &clock;
	if (used_ns >= 0)
		cr_assert(eq(sz, (size_t)write(clock_fds[1], &used_ns, sizeof(used_ns)),
			     sizeof(used_ns)));
	cr_expect(eq(int, tick_and_commit(live), INSTANT_PROVEN));
	cr_expect(zero(ptr, (void *)thread->cpu_clock), "it is borrowed for one look");
	return thread->is_unchanged || thread->is_checked;
}

Test(snapshot, threads_that_used_no_time_are_unchanged)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		int fds[2];
		struct live live;
		struct snapshot_thread *thread;

		begin_live(&live, fake_stack_minors[v]);
		if (live.py.build.free_threaded) {
			end_live(&live);
			continue;
		}
		cr_assert(zero(int, pipe2(fds, O_NONBLOCK)));
		cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
		thread = thread_of(&live, 2);

		set_gil(&live.py, live.addrs[0], true, 4);
		cr_expect(not(stays(&live, fds, 0)), "its clock was unknown");
		set_gil(&live.py, live.addrs[0], true, 8);
		cr_expect(stays(&live, fds, 0));
		set_gil(&live.py, live.addrs[0], true, 12);
		cr_expect(not(stays(&live, fds, 9)), "it has run");
		set_gil(&live.py, live.addrs[1], true, 13);
		cr_expect(stays(&live, fds, -1), "the GIL proves it without a clock");
		set_gil(&live.py, live.addrs[1], true, 20);
		cr_expect(stays(&live, fds, 9));

		set_gil(&live.py, live.addrs[1], true, 30);
		thread->proof.foreign_until_look = UINT64_MAX;
		cr_expect(not(stays(&live, fds, 9)), "another thread may run the state");
		thread->proof.foreign_until_look = 0;
		live.are_own = false;
		set_gil(&live.py, live.addrs[1], true, 35);
		cr_expect(not(stays(&live, fds, 11)));
		live.are_own = true;
		set_gil(&live.py, live.addrs[1], true, 37);
		cr_expect(not(stays(&live, fds, 11)), "another thread may have run the state");
		set_gil(&live.py, live.addrs[1], true, 40);
		thread->proof.needs_no_proof = true;
		cr_expect(not(stays(&live, fds, -1)), "its clock is not to be read");
		thread->proof.needs_no_proof = false;
		set_gil(&live.py, live.addrs[1], true, 50);
		cr_expect(not(stays(&live, fds, 9)), "its clock was not read");
		set_gil(&live.py, live.addrs[1], true, 60);
		cr_expect(not(stays(&live, fds, -1)), "its clock cannot be read");
		(void)close(fds[0]);
		(void)close(fds[1]);
		end_live(&live);
	}
}

/* Threads that did not run are still checked from time to time. */
Test(snapshot, unchanged_threads_are_checked_in_turn)
{
	struct live live;
	bool was_checked[NR_LIVE_THREADS] = {false};

	begin_live(&live, 14);
	(void)tick_and_commit(&live);
	for (int look = 0; look < NR_LIVE_THREADS; look++) {
		size_t nr_checked = 0;

		(void)tick_and_commit(&live);
		for (int i = 0; i < NR_LIVE_THREADS; i++) {
			const struct snapshot_thread *thread = thread_of(&live, i);

			cr_expect(not(thread->is_checked && thread->is_unchanged));
			was_checked[i] = was_checked[i] || thread->is_checked;
			nr_checked += thread->is_checked;
		}
		cr_expect(le(sz, nr_checked, 1));
	}
	cr_expect(not(was_checked[0]), "the holder is read in every snapshot");
	cr_expect(was_checked[1] && was_checked[2]);
	end_live(&live);
}

/* A look at one thread reads it and all runners, and may hold for that thread alone. */
Test(snapshot, one_thread_can_be_read_alone)
{
	struct live live;

	begin_live(&live, 14);
	(void)tick_and_commit(&live);
	for (int i = 0; i < NR_LIVE_THREADS; i++)
		thread_of(&live, i)->was_copied = false;
	cr_expect(eq(int, look(&live.snapshot, thread_of(&live, 2)), INSTANT_PROVEN));
	cr_expect(thread_of(&live, 0)->was_copied);
	cr_expect(not(thread_of(&live, 1)->was_copied));
	cr_expect(thread_of(&live, 2)->was_copied);
	cr_expect(thread_of(&live, 2)->is_proven);

	set_cpu(&live, 0, OTHER_CPU);
	cr_expect(eq(int, look(&live.snapshot, thread_of(&live, 2)), INSTANT_MOVED));
	cr_expect(snapshot_was_waiting(&live.snapshot, thread_of(&live, 2)));
	cr_expect(not(snapshot_was_waiting(&live.snapshot, thread_of(&live, 0))));
	live.snapshot.instant.gil_distrusted = true;
	cr_expect(not(snapshot_was_waiting(&live.snapshot, thread_of(&live, 2))));
	live.snapshot.instant.gil_distrusted = false;
	cr_expect(eq(int, tick_while(&live, take_gil), INSTANT_MOVED));
	cr_expect(not(snapshot_was_waiting(&live.snapshot, thread_of(&live, 2))));
	end_live(&live);
}

/* A thread that looks need not prove is not watched. Waiting threads are proven without it. */
Test(snapshot, excused_thread_is_not_watched)
{
	struct live live;

	begin_live(&live, 14);
	cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
	cr_expect(thread_of(&live, 0)->proof.is_watched);
	thread_of(&live, 0)->proof.needs_no_proof = true;
	cr_expect(eq(int, tick(&live.snapshot), INSTANT_MOVED));
	cr_expect(not(thread_of(&live, 0)->proof.is_watched));
	cr_expect(not(thread_of(&live, 0)->is_proven));
	cr_expect(snapshot_was_waiting(&live.snapshot, thread_of(&live, 2)));
	thread_of(&live, 0)->proof.needs_no_proof = false;
	cr_expect(eq(int, tick(&live.snapshot), INSTANT_PROVEN));
	end_live(&live);
}

/* In a late look the GIL's last holder slept; without a GIL one of three threads did. */
Test(snapshot, late_snapshot_finds_who_slept, .timeout = 60)
{
	static const uint32_t minors[] = {14, FAKE_FREE_THREADED + 14};

	for (size_t v = 0; v < sizeof(minors) / sizeof(*minors); v++) {
		const bool has_gil = minors[v] < FAKE_FREE_THREADED;
		struct process process;
		struct pipe_waiter waiter;
		struct live live;

		process = own_process_open();
		pipe_waiter_begin(&waiter);
		(void)pipe_waiter_place(&waiter, &process);
		begin_live(&live, minors[v]);
		live.snapshot.instant.means.process = &process;
		live.snapshot.instant.means.prefers_clock = false;
		(void)tick_and_commit(&live);
		for (int i = 0; i < NR_LIVE_THREADS; i++)
			thread_of(&live, i)->tid = i == 1 ? waiter.tid : gettid();
		if (has_gil)
			set_gil(&live.py, live.addrs[1], true, 2);
		for (int look = 0; look < 4; look++) {
			/* The third look finds the same place; the others are in time. */
			const bool slept = look == 1;

			live.snapshot.instant.is_late = look == 1 || look == 2;
			(void)tick_and_commit(&live);
			cr_expect(eq(int, thread_of(&live, 1)->has_slept, slept), "look %d", look);
			cr_expect(eq(int, thread_of(&live, 2)->has_slept, slept &&has_gil),
				  "look %d", look);
		}
		end_live(&live);
		pipe_waiter_end(&waiter);
		process_close(&process);
	}
}

/* Look at all threads, and note that the stack of number 1 is known. */
static void know_waiter(struct live *live, bool is_own)
{
	enum instant_verdict verdict;

	cr_assert(zero(int, snapshot_begin(&live->snapshot, NULL)));
	thread_of(live, 1)->proof.is_own = is_own;
	cr_assert(zero(int, snapshot_end(&live->snapshot, &verdict)));
	cr_assert(thread_of(live, 1)->is_proven);
	snapshot_mark_known(thread_of(live, 1));
}

/* Whether the next look finds number 1 where it was known to be, by a clock. */
static bool waiter_stays(struct live *live)
{
	(void)tick_and_commit(live);
	return thread_of(live, 1)->is_unchanged || thread_of(live, 1)->is_checked;
}

/*
 * Without a GIL a thread is unchanged while its clock stands, even at 0, if nobody else can run
 * its state. Another thread's clock proves nothing.
 */
Test(snapshot, waiting_threads_are_unchanged_without_a_gil, .timeout = 60)
{
	struct process process = own_process_open();
	struct pipe_waiter waiter, other;
	struct cpu_clock clock;
	struct live live;

	pipe_waiter_begin(&waiter);
	pipe_waiter_begin(&other);
	(void)pipe_waiter_place(&waiter, &process);
	(void)pipe_waiter_place(&other, &process);
	if (cpu_clock_open(&process, waiter.tid, &clock) || clock.kind != CPU_CLOCK_TASK)
		cr_skip("no task clocks here");
	cpu_clock_close(&clock);
	begin_live(&live, FAKE_FREE_THREADED + 14);
	live.snapshot.instant.means.process = &process;
	live.snapshot.instant.means.prefers_clock = true;
	(void)tick_and_commit(&live);
	for (int i = 0; i < NR_LIVE_THREADS; i++)
		thread_of(&live, i)->tid = i == 1 ? waiter.tid : gettid();
	(void)tick_and_commit(&live);
	know_waiter(&live, true);
	cr_expect(waiter_stays(&live));
	know_waiter(&live, false);
	cr_expect(not(waiter_stays(&live)), "another thread may run the state");
	know_waiter(&live, true);
	thread_of(&live, 1)->tid = other.tid;
	cr_expect(not(waiter_stays(&live)), "another clock stands at 0, too");
	thread_of(&live, 1)->tid = waiter.tid;
	know_waiter(&live, true);
	(void)pipe_waiter_continue(&waiter, &process);
	cr_expect(not(waiter_stays(&live)), "it has run");
	end_live(&live);
	pipe_waiter_end(&waiter);
	pipe_waiter_end(&other);
	process_close(&process);
}

/* A state that another thread runs than the one it names has no proof. */
Test(snapshot, state_may_be_run_by_another_thread)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		enum instant_verdict verdict;
		struct live live;

		begin_live(&live, fake_stack_minors[v]);
		(void)tick_and_commit(&live);
		cr_assert(zero(int, snapshot_begin(&live.snapshot, NULL)));
		thread_of(&live, 0)->proof.is_foreign = true;
		cr_assert(zero(int, snapshot_end(&live.snapshot, &verdict)));
		cr_expect(eq(int, verdict, INSTANT_MOVED));
		cr_expect(not(thread_of(&live, 0)->is_proven));
		cr_expect(thread_of(&live, 1)->is_proven ||
				  snapshot_was_waiting(&live.snapshot, thread_of(&live, 1)),
			  "waiting threads are still proven");
		cr_expect(eq(u64, live.snapshot.instant.nr_foreign, 1));
		cr_expect(eq(int, tick_and_commit(&live), INSTANT_MOVED),
			  "the evidence still counts");
		cr_assert(zero(int, snapshot_begin(&live.snapshot, NULL)));
		thread_of(&live, 0)->proof.is_own = true;
		cr_assert(zero(int, snapshot_end(&live.snapshot, &verdict)));
		cr_expect(eq(int, verdict, INSTANT_PROVEN), "the thread runs its own state");
		cr_assert(zero(int, snapshot_begin(&live.snapshot, NULL)));
		thread_of(&live, 0)->proof.is_own = true;
		thread_of(&live, 0)->proof.runner_is_unknown = true;
		cr_assert(zero(int, snapshot_end(&live.snapshot, &verdict)));
		cr_expect(eq(int, verdict, INSTANT_MOVED));
		end_live(&live);
	}
}

/* Evidence that another thread runs a state counts for 1024 looks. */
Test(snapshot, foreign_thread_is_suspected_for_1024_snapshots)
{
	enum instant_verdict verdict;
	struct live live;
	uint64_t nr_looks;

	begin_live(&live, 14);
	(void)tick_and_commit(&live);
	cr_assert(zero(int, snapshot_begin(&live.snapshot, NULL)));
	thread_of(&live, 0)->proof.has_moved = true;
	cr_assert(zero(int, snapshot_end(&live.snapshot, &verdict)));
	cr_expect(eq(int, verdict, INSTANT_MOVED));
	for (nr_looks = 1; nr_looks < 5000 && tick_and_commit(&live) == INSTANT_MOVED; nr_looks++)
		;
	cr_expect(eq(u64, nr_looks, 1024));
	cr_expect(eq(u64, live.snapshot.instant.nr_foreign, nr_looks));

	/* If the thread itself may have run, the move is no evidence. */
	set_cpu(&live, 0, OTHER_CPU);
	cr_assert(zero(int, snapshot_begin(&live.snapshot, NULL)));
	thread_of(&live, 0)->proof.has_moved = true;
	cr_assert(zero(int, snapshot_end(&live.snapshot, &verdict)));
	set_cpu(&live, 0, HELD_CPU);
	cr_expect(eq(int, tick_and_commit(&live), INSTANT_PROVEN));
	cr_expect(eq(u64, live.snapshot.instant.nr_foreign, nr_looks));
	end_live(&live);
}

/* Witness words that cannot be read prove nothing. */
Test(snapshot, unreadable_witness_proves_nothing)
{
	struct live live;

	begin_live(&live, 14);
	fake_memory_unmap(&live.py.fake, cpu_word(-1));
	cr_expect(eq(int, tick(&live.snapshot), INSTANT_MOVED));
	expect_proven(&live, false);
	end_live(&live);
}
