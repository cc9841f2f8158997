/* SPDX-License-Identifier: MIT */
#include "procmem/clock.h"
#include "sampler/sampler.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "sampler/sampler_state.h"
#include "tests/support/fake_objects.h"
#include "tests/support/fake_stack.h"

enum { CHUNK_BYTES = 4096, MAX_SAMPLES = 8 };

/* Keeps the samples without their frames. */
struct test_sink {
	struct sample_sink sink;
	struct sample samples[MAX_SAMPLES];
	struct sample_thread threads[MAX_SAMPLES];
	size_t nr_samples;
};

static int test_sink_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct test_sink *test = (struct test_sink *)sink;

	cr_assert(lt(sz, test->nr_samples, MAX_SAMPLES));
	for (uint32_t i = 0; i < sample->nr_frames; i++)
		cr_expect(sample->frames[i].function != NULL, "frame %u has no function", i);
	test->threads[test->nr_samples] = *sample->thread;
	test->samples[test->nr_samples++] = *sample;
	return 0;
}

/* Make a thread whose stack is f, called from C and executing. Returns its frame. */
static remote_addr begin_stack(struct fake_stack *stack, struct fake_python *py, uint64_t tid)
{
	const struct fake_code code = {.name = "f", .nr_units = 64};
	remote_addr frame_addr;

	fake_stack_init(stack, py, tid, CHUNK_BYTES);
	frame_addr = fake_stack_call(stack, fake_python_code(py, &code), 20);
	fake_stack_finish(stack);
	return frame_addr;
}

static int dump(struct fake_python *py, struct test_sink *ret_sink)
{
	static const struct sample_sink_ops ops = {.sample = test_sink_sample};
	struct sampler *sampler;
	int err;

	*ret_sink = (struct test_sink){.sink.ops = &ops};
	cr_assert(zero(int, sampler_create(NULL, &py->fake.memory, &py->build, py->runtime_addr,
					   &sampler)));
	err = sampler_dump(sampler, &ret_sink->sink);
	sampler_destroy(sampler);
	return err;
}

Test(sampler, dump_emits_every_thread)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;
		struct fake_stack stacks[2];
		struct test_sink sink;

		fake_python_init(&py, fake_stack_minors[v]);
		for (uint64_t i = 0; i < 2; i++)
			(void)begin_stack(&stacks[i], &py, i + 1);
		cr_assert(zero(int, dump(&py, &sink)), "3.%u", py.minor);
		cr_assert(eq(sz, sink.nr_samples, 2));
		for (size_t i = 0; i < 2; i++) {
			cr_expect(eq(int, sink.threads[i].tid, (int)i + 1),
				  "the oldest thread comes first");
			cr_expect(eq(uint, sink.samples[i].nr_frames, 1), "3.%u", py.minor);
			cr_expect(zero(uint, sink.samples[i].flags), "3.%u", py.minor);
		}
		fake_python_done(&py);
	}
}

/* A word that is damaged until a number of reads have been made. */
struct damaged_word {
	remote_addr addr; /* the damaged word */
	uint64_t whole;	  /* its value afterwards */
	uint64_t nr_calls;
};

static void repair_word(struct fake_memory *fake, size_t range_index)
{
	struct damaged_word *damaged_word = fake->context;

	(void)range_index;
	if (fake->nr_calls >= damaged_word->nr_calls)
		fake_memory_write_u64(fake, damaged_word->addr, damaged_word->whole);
}

Test(sampler, dump_retries_a_changing_list)
{
	static const struct {
		char name[32];
		uint64_t head; /* first value of the interpreter list's head */
		uint64_t nr_calls;
		int err;
	} cases[] = {
		{"unmapped for a while", 0x10, 20, 0},
		{"empty for a while", 0, 20, 0},
		{"unmapped for ever", 0x10, UINT64_MAX, -EFAULT},
		{"empty for ever", 0, UINT64_MAX, -ENOENT},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fake_python py;
		struct fake_stack stack;
		struct test_sink sink;

		fake_python_init(&py, 14);
		(void)begin_stack(&stack, &py, 1);
		struct damaged_word damaged_word = {
			.addr = py.runtime_addr + py.build.offsets.runtime.interpreters_head,
			.whole = py.interp_addr,
			.nr_calls = cases[i].nr_calls,
		};
		fake_memory_write_u64(&py.fake, damaged_word.addr, cases[i].head);
		py.fake.before_range = repair_word;
		py.fake.context = &damaged_word;
		cr_expect(eq(int, dump(&py, &sink), cases[i].err), "%s", cases[i].name);
		cr_expect(eq(sz, sink.nr_samples, cases[i].err ? 0 : 1), "%s", cases[i].name);
		fake_python_done(&py);
	}
}

Test(sampler, dump_does_not_retry_an_ended_process)
{
	static const int errors[] = {-ESRCH, -EPERM};

	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		struct fake_python py;
		struct test_sink sink;

		fake_python_init(&py, 15);
		py.fake.error = errors[i];
		cr_expect(eq(int, dump(&py, &sink), errors[i]));
		cr_expect(lt(u64, py.fake.nr_calls, 10));
		fake_python_done(&py);
	}
}

/* A live target whose threads cannot be proven to stand still. */
Test(sampler, dump_marks_unproven_stacks)
{
	static const struct sample_sink_ops ops = {.sample = test_sink_sample};

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct test_sink sink = {.sink.ops = &ops};
		struct fake_python py;
		struct fake_stack stack;
		struct sampler *sampler;

		fake_python_init(&py, fake_stack_minors[v]);
		(void)begin_stack(&stack, &py, 1);
		cr_assert(zero(int, sampler_create(NULL, &py.fake.memory, &py.build,
						   py.runtime_addr, &sampler)));
		snapshot_set_live(&sampler->snapshot, &(struct witness_means){0});
		cr_assert(zero(int, sampler_dump(sampler, &sink.sink)), "3.%u", py.minor);
		cr_assert(eq(sz, sink.nr_samples, 1));
		cr_expect(eq(uint, sink.samples[0].flags, SAMPLE_UNPROVEN), "3.%u", py.minor);
		cr_expect(zero(int, sink.samples[0].error));
		cr_expect(eq(uint, sink.samples[0].nr_frames, 1));
		cr_expect(sampler->snapshot.instant.preempt == NULL);
		sampler_destroy(sampler);
		fake_python_done(&py);
	}
}

/*
 * A running target with two threads. The first has the GIL; its rseq word gives its CPU. CPU 3 is
 * held.
 */
enum { HELD_CPU = 3, OTHER_CPU = 5, RSEQ_OFFSET = 4096, TID_STEP = 64 };

struct live {
	struct fake_python py;
	struct fake_stack stacks[2];
	remote_addr frame_addrs[2];
	remote_addr code_addr;
	struct sampler *sampler;
	struct test_sink sink;
};

static void set_cpu(struct live *live, uint32_t cpu)
{
	fake_memory_write_u32(&live->py.fake, FAKE_THREAD_ID + TID_STEP + RSEQ_OFFSET, cpu);
}

static void set_gil(struct live *live, const struct fake_stack *stack, uint64_t nr_switches)
{
	const struct py_offsets *offsets = &live->py.build.offsets;
	const remote_addr addr = live->py.interp_addr + offsets->interpreter.gil_last_holder;

	fake_memory_write_u64(&live->py.fake, addr, stack->thread_addr);
	fake_memory_write_u64(&live->py.fake, addr + GIL_SWITCHES_OFFSET, nr_switches);
}

static void begin_live(struct live *live)
{
	static const struct sample_sink_ops ops = {.sample = test_sink_sample};
	static const struct witness_means means = {
		.rseq = {.is_known = true, .cpu_id_offset = RSEQ_OFFSET}};

	*live = (struct live){.sink.sink.ops = &ops};
	fake_python_init(&live->py, 14);
	live->py.fake.whole_pages = true;
	for (uint64_t i = 0; i < 2; i++)
		live->frame_addrs[i] = begin_stack(&live->stacks[i], &live->py, (i + 1) * TID_STEP);
	(void)fake_memory_map(&live->py.fake, FAKE_THREAD_ID + RSEQ_OFFSET, 4 * TID_STEP);
	live->code_addr =
		fake_python_code(&live->py, &(struct fake_code){.name = "g", .nr_units = 64});
	set_cpu(live, HELD_CPU);
	set_gil(live, &live->stacks[0], 1);
	cr_assert(zero(int, sampler_create(NULL, &live->py.fake.memory, &live->py.build,
					   live->py.runtime_addr, &live->sampler)));
	snapshot_set_live(&live->sampler->snapshot, &means);
	CPU_SET(HELD_CPU, &live->sampler->snapshot.instant.held);
}

static void end_live(struct live *live)
{
	sampler_destroy(live->sampler);
	fake_python_done(&live->py);
}

/* Take a tick. Returns its number of samples. */
static size_t tick_live(struct live *live, uint64_t now_ns)
{
	live->sink.nr_samples = 0;
	cr_assert(zero(int, sampler_tick(live->sampler, &live->sink.sink, now_ns)));
	return live->sink.nr_samples;
}

/*
 * The thread that may have run is lost, and the weight of its next sample includes the lost time.
 */
Test(sampler, only_threads_that_moved_are_lost)
{
	const struct sampler_stats *stats;
	uint64_t waiting_ident;
	struct live live;

	begin_live(&live);
	stats = sampler_stats(live.sampler);
	cr_expect(eq(sz, tick_live(&live, 100), 2));
	set_cpu(&live, OTHER_CPU);
	cr_expect(eq(sz, tick_live(&live, 200), 1));
	waiting_ident = FAKE_THREAD_ID + 2 * TID_STEP;
	cr_expect(eq(u64, live.sink.threads[0].ident, waiting_ident));
	cr_expect(eq(u64, stats->lost[LOSS_MOVED], 1));
	set_cpu(&live, HELD_CPU);
	cr_expect(eq(sz, tick_live(&live, 300), 2));
	for (size_t i = 0; i < 2; i++) {
		const bool waited = live.sink.threads[i].ident == waiting_ident;

		cr_expect(eq(u64, live.sink.samples[i].wall_ns, waited ? 100 : 200));
		cr_expect(eq(u32, live.sink.samples[i].nr_frames, 1));
		cr_expect(zero(u32, live.sink.samples[i].flags & SAMPLE_UNPROVEN));
	}
	cr_expect(eq(u64, stats->lost[LOSS_MOVED], 1));
	cr_expect(eq(u64, stats->ticks, 3));
	cr_expect(eq(u64, stats->samples, 5));
	end_live(&live);
}

/* If the GIL is not trusted, any thread may have run. */
Test(sampler, distrusted_gil_loses_all_threads)
{
	struct live live;

	begin_live(&live);
	cr_expect(eq(sz, tick_live(&live, 100), 2));
	live.sampler->snapshot.instant.gil_distrusted = true;
	set_cpu(&live, OTHER_CPU);
	cr_expect(zero(sz, tick_live(&live, 200)));
	cr_expect(eq(u64, sampler_stats(live.sampler)->lost[LOSS_MOVED], 2));
	end_live(&live);
}

/* A stack walked in an unproven look is not repeated later. */
Test(sampler, waiting_thread_is_emitted_unchanged)
{
	struct live live;
	size_t waiting = 0;

	begin_live(&live);
	const remote_addr instr_addr = live.frame_addrs[1] + live.py.build.offsets.frame.instr_ptr;
	uint64_t instr;

	cr_expect(eq(sz, tick_live(&live, 100), 2));
	cr_assert(zero(int, remote_memory_read_u64(&live.py.fake.memory, instr_addr, &instr)));
	if (live.sink.threads[waiting].ident != FAKE_THREAD_ID + 2 * TID_STEP)
		waiting = 1;
	const uint32_t slot = live.sink.threads[waiting].slot;
	const int32_t line = live.sampler->threads[slot].last.frames[0].line;

	/* The thread runs in a look that does not hold, and is back in the next look. */
	fake_memory_write_u64(&live.py.fake, instr_addr, instr + 6);
	live.sampler->snapshot.instant.gil_distrusted = true;
	set_cpu(&live, OTHER_CPU);
	cr_expect(zero(sz, tick_live(&live, 200)));
	fake_memory_write_u64(&live.py.fake, instr_addr, instr);
	live.sampler->snapshot.instant.gil_distrusted = false;
	set_cpu(&live, HELD_CPU);
	for (uint64_t tick = 3; tick < 6; tick++) {
		cr_expect(eq(sz, tick_live(&live, tick * 100), 2));
		cr_expect(eq(u32, live.sink.samples[waiting].nr_frames, 1));
		cr_expect(eq(i32, live.sampler->threads[slot].last.frames[0].line, line));
	}
	end_live(&live);
}

/* A thread that moves without having had the GIL shows that the GIL cannot be trusted. */
Test(sampler, unreliable_gil_is_distrusted)
{
	struct live live;

	begin_live(&live);
	const remote_addr instr_addr = live.frame_addrs[1] + live.py.build.offsets.frame.instr_ptr;
	uint64_t instr;

	for (uint64_t tick = 1; tick < 9; tick++)
		cr_expect(eq(sz, tick_live(&live, tick * 100), 2));
	cr_expect(not(live.sampler->snapshot.instant.gil_distrusted));
	cr_assert(zero(int, remote_memory_read_u64(&live.py.fake.memory, instr_addr, &instr)));
	fake_memory_write_u64(&live.py.fake, instr_addr, instr + 6);
	for (uint64_t tick = 9; tick < 12; tick++)
		cr_expect(eq(sz, tick_live(&live, tick * 100), 2));
	cr_expect(live.sampler->snapshot.instant.gil_distrusted);
	end_live(&live);
}

/* The innermost loop of the state is on another thread's stack, so that thread runs the state. */
Test(sampler, state_run_by_another_thread_is_lost)
{
	struct live live;

	begin_live(&live);
	cr_expect(eq(sz, tick_live(&live, 100), 2));
	cr_expect(not(sampler_has_foreign_runners(live.sampler)));
	/* Another loop, called inside the thread's own one, on another stack. */
	live.py.stack_addr = FAKE_THREAD_ID + 0x100000;
	for (size_t i = 0; i < live.sampler->snapshot.nr_threads; i++) {
		struct thread_stack *stack = &live.sampler->snapshot.threads[i]->stack;

		stack->other_low_addr = FAKE_THREAD_ID + 0xf0000;
		stack->other_end_addr = FAKE_THREAD_ID + 0x100000;
		stack->other_owner = STACK_FOREIGN;
	}
	fake_stack_call_c(&live.stacks[0]);
	(void)fake_stack_call(&live.stacks[0], live.code_addr, 20);
	fake_stack_finish(&live.stacks[0]);
	for (uint64_t tick = 2; tick < 5; tick++) {
		cr_expect(eq(sz, tick_live(&live, tick * 100), 1), "the other thread waits");
		cr_expect(eq(u64, live.sink.threads[0].ident, FAKE_THREAD_ID + 2 * TID_STEP));
		cr_expect(eq(u64, sampler_stats(live.sampler)->lost[LOSS_MOVED], tick - 1));
	}
	cr_expect(sampler_has_foreign_runners(live.sampler));
	/* Looks at this thread alone: a waiting thread is proven all the same. */
	for (size_t i = 0; i < live.sampler->snapshot.nr_threads; i++) {
		struct snapshot_thread *thread = live.sampler->snapshot.threads[i];
		const bool is_foreign = thread->ref.thread_id == FAKE_THREAD_ID + TID_STEP;

		cr_expect(eq(int, sampler_thread_look(live.sampler, thread, false),
			     is_foreign ? -EBADMSG : 0));
	}
	end_live(&live);
}

/* A frame without a caller is between two stores. */
Test(sampler, stack_with_a_wrong_end_is_unfinished)
{
	struct live live;

	begin_live(&live);
	cr_expect(eq(sz, tick_live(&live, 100), 2));
	fake_memory_write_u64(&live.py.fake,
			      live.frame_addrs[0] + live.py.build.offsets.frame.previous, 0);
	cr_expect(eq(sz, tick_live(&live, 200), 1));
	cr_expect(eq(u64, sampler_stats(live.sampler)->lost[LOSS_UNFINISHED], 1));
	cr_expect(eq(u64, live.sink.threads[0].ident, FAKE_THREAD_ID + 2 * TID_STEP));
	end_live(&live);
}

/* A steady target costs one read per tick, however many threads wait. */
Test(sampler, steady_state_costs_one_read)
{
	struct live live;
	uint64_t nr_calls;

	begin_live(&live);
	for (uint64_t tick = 1; tick < 5; tick++)
		cr_expect(eq(sz, tick_live(&live, tick), 2));
	nr_calls = live.py.fake.nr_calls;
	for (uint64_t tick = 5; tick < 15; tick++)
		cr_expect(eq(sz, tick_live(&live, tick), 2));
	cr_expect(eq(u64, live.py.fake.nr_calls, nr_calls + 10));
	end_live(&live);
}

/* A damaged stack of one thread does not hide the others. */
Test(sampler, dump_reports_broken_stacks)
{
	static const struct {
		char name[32];
		uint64_t previous; /* of the frame; 1: the frame itself */
	} cases[] = {
		{"unmapped", 0x10},
		{"in a circle", 1},
	};

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			struct fake_python py;
			struct fake_stack stacks[2];
			struct test_sink sink;

			fake_python_init(&py, fake_stack_minors[v]);
			remote_addr frame_addr = begin_stack(&stacks[0], &py, 1);

			(void)begin_stack(&stacks[1], &py, 2);
			fake_memory_write_u64(
				&py.fake, frame_addr + py.build.offsets.frame.previous,
				cases[i].previous == 1 ? frame_addr : cases[i].previous);
			cr_assert(zero(int, dump(&py, &sink)), "3.%u %s", py.minor, cases[i].name);
			cr_assert(eq(sz, sink.nr_samples, 2));
			cr_expect(eq(uint, sink.samples[0].flags, SAMPLE_UNPROVEN));
			cr_expect(eq(int, sink.samples[0].error, -EBADMSG), "3.%u %s", py.minor,
				  cases[i].name);
			cr_expect(zero(uint, sink.samples[1].flags));
			cr_expect(zero(int, sink.samples[1].error));
			fake_python_done(&py);
		}
	}
}

/*
 * The target's counter says that no code object was made, so f's is used without reading it.
 * Then another frame's version is above the counter, which shows that the counter is wrong; and
 * what is read for f's second frame is no code object any more.
 */
Test(sampler, counter_found_wrong_during_a_walk_proves_nothing)
{
	static const struct sample_sink_ops ops = {.sample = test_sink_sample};
	const struct fake_code code = {.name = "x", .nr_units = 64};
	struct test_sink sink = {.sink.ops = &ops};
	struct fake_python py;
	struct fake_stack stack;
	struct sampler *sampler;

	fake_python_init(&py, 13);
	const struct py_offsets *offsets = &py.build.offsets;
	remote_addr outer_addr = fake_python_code(&py, &code);
	remote_addr believed_addr = fake_python_code(&py, &code);
	remote_addr liar_addr = fake_python_code(&py, &code);
	fake_memory_write_u32(&py.fake, liar_addr + offsets->code.version, INT32_MAX);
	fake_stack_init(&stack, &py, 1, CHUNK_BYTES);
	(void)fake_stack_call(&stack, outer_addr, 20);
	remote_addr frame_addr = fake_stack_call(&stack, believed_addr, 20);
	fake_stack_finish(&stack);
	cr_assert(zero(
		int, sampler_create(NULL, &py.fake.memory, &py.build, py.runtime_addr, &sampler)));
	for (uint64_t tick = 1; tick <= 3; tick++)
		cr_assert(zero(int, sampler_tick(sampler, &sink.sink, tick)));
	cr_assert(eq(sz, sink.nr_samples, 3));
	fake_memory_write_u64(&py.fake, believed_addr + offsets->object.ob_type, 0x1234);
	fake_memory_write_u64(&py.fake, frame_addr + offsets->frame.instr_ptr,
			      believed_addr + offsets->code.code_adaptive + 10);
	(void)fake_stack_call(&stack, liar_addr, 20);
	(void)fake_stack_call(&stack, believed_addr, 20);
	fake_stack_finish(&stack);
	cr_assert(zero(int, sampler_tick(sampler, &sink.sink, 4)));
	cr_expect(eq(u64, sampler_stats(sampler)->lost[LOSS_UNFINISHED], 1));
	sampler_destroy(sampler);
	fake_python_done(&py);
}

/* With full tables a stack that needs one more is lost as `code`, not as too deep. */
Test(sampler, full_code_cache_loses_the_stack)
{
	static const struct sample_sink_ops ops = {.sample = test_sink_sample};
	struct test_sink sink = {.sink.ops = &ops};
	struct fake_python py;
	struct fake_stack stack;
	struct sampler *sampler;

	fake_python_init(&py, 15);
	(void)begin_stack(&stack, &py, 1);
	cr_assert(zero(
		int, sampler_create(NULL, &py.fake.memory, &py.build, py.runtime_addr, &sampler)));
	sampler->codes.table_bytes = CODE_TABLES_MAX_BYTES;
	cr_assert(zero(int, sampler_tick(sampler, &sink.sink, 1)));
	cr_expect(eq(u64, sampler_stats(sampler)->lost[LOSS_CODE], 1));
	cr_expect(zero(sz, sink.nr_samples));
	sampler->codes.table_bytes = 0;
	cr_assert(zero(int, sampler_tick(sampler, &sink.sink, 2)));
	cr_expect(eq(sz, sink.nr_samples, 1));
	sampler_destroy(sampler);
	fake_python_done(&py);
}

/* With full names a stack is right except for the names of new functions. */
Test(sampler, full_name_table_keeps_the_stack)
{
	static const struct sample_sink_ops ops = {.sample = test_sink_sample};
	struct test_sink sink = {.sink.ops = &ops};
	struct fake_python py;
	struct fake_stack stack;
	struct sampler *sampler;

	fake_python_init(&py, 15);
	(void)begin_stack(&stack, &py, 1);
	cr_assert(zero(
		int, sampler_create(NULL, &py.fake.memory, &py.build, py.runtime_addr, &sampler)));
	sampler->codes.functions->nr_bytes = FUNCTIONS_MAX_BYTES;
	cr_assert(zero(int, sampler_tick(sampler, &sink.sink, 1)));
	cr_assert(eq(sz, sink.nr_samples, 1));
	cr_assert(eq(u32, sampler->threads[0].list.nr_frames, 1));
	cr_expect(function_is_overflow(sampler->threads[0].last.frames[0].function));
	cr_expect(zero(i32, sampler->threads[0].last.frames[0].line));
	sampler_destroy(sampler);
	fake_python_done(&py);
}

/* A sink for sampler_run() that acts on samples. */
struct acting_sink {
	struct sample_sink sink;
	struct fake_python *py;
	volatile sig_atomic_t stop;
	unsigned int nr_samples;
	unsigned int nr_ticks;
	struct sampler *sampler;  /* borrowed from the run */
	uint64_t nr_syscalls;	  /* system calls counted at the second sample */
	remote_addr whole_head;	  /* the right head of the thread list */
	uint64_t nr_failed_ticks; /* after the run */
	uint64_t nr_calls;	  /* reads before the damaged list was read */
};

/* Sample at 10 kHz. head_addr is the right head of the thread list. */
static int run(struct fake_python *py, remote_addr head_addr, uint64_t duration_ns,
	       struct acting_sink *sink, const struct sample_sink_ops *ops,
	       enum sampler_end *ret_end)
{
	const struct sampler_options options = {.rate_hz = 10000};
	const struct sampler_limits limits = {.stop = &sink->stop, .duration_ns = duration_ns};
	struct sampler *sampler;
	int err;

	*sink = (struct acting_sink){.sink.ops = ops, .py = py, .whole_head = head_addr};
	cr_assert(zero(int, sampler_create(NULL, &py->fake.memory, &py->build, py->runtime_addr,
					   &sampler)));
	err = sampler_run(sampler, &options, &limits, &sink->sink, ret_end);
	sink->nr_failed_ticks = sampler_stats(sampler)->failed_ticks;
	sampler_destroy(sampler);
	return err;
}

/* Repair the list for the second attempt to read it. */
static void repair_list(struct fake_memory *fake, size_t range_index)
{
	enum { CALLS_OF_ONE_ATTEMPT = 3 };
	struct acting_sink *sink = fake->context;

	(void)range_index;
	if (sink->nr_calls && fake->nr_calls > sink->nr_calls + CALLS_OF_ONE_ATTEMPT)
		fake_python_set_threads(sink->py, sink->whole_head);
}

/* After the first tick the list is damaged. The second tick is the last good one for a while. */
static int sample_slowly_then_stop(struct sample_sink *sink, const struct sample *sample)
{
	enum { LONGER_THAN_A_TARGET_MAY_BE_AWAY_US = 600000 };
	struct acting_sink *acting = (struct acting_sink *)sink;

	(void)sample;
	acting->nr_samples++;
	if (acting->nr_samples == 1)
		fake_python_set_threads(acting->py, 0x10);
	if (acting->nr_samples == 2) {
		acting->nr_calls = acting->py->fake.nr_calls;
		(void)usleep(LONGER_THAN_A_TARGET_MAY_BE_AWAY_US);
	}
	if (acting->nr_samples == 3)
		acting->stop = 1;
	return 0;
}

Test(sampler, unreadable_list_does_not_end_a_run)
{
	static const struct sample_sink_ops ops = {.sample = sample_slowly_then_stop};
	struct fake_python py;
	struct fake_stack stack;
	struct acting_sink sink;
	enum sampler_end end;

	fake_python_init(&py, 14);
	(void)begin_stack(&stack, &py, 1);
	py.fake.before_range = repair_list;
	py.fake.context = &sink;
	cr_assert(zero(int, run(&py, stack.thread_addr, 0, &sink, &ops, &end)));
	cr_expect(eq(int, end, END_STOPPED));
	cr_expect(eq(uint, sink.nr_samples, 3));
	cr_expect(eq(u64, sink.nr_failed_ticks, 1));
	fake_python_done(&py);
}

static int sample_then_end_python(struct sample_sink *sink, const struct sample *sample)
{
	struct acting_sink *acting = (struct acting_sink *)sink;
	struct fake_python *py = acting->py;

	(void)sample;
	fake_memory_write_u64(&py->fake,
			      py->runtime_addr + py->build.offsets.runtime.interpreters_head, 0);
	fake_python_set_threads(py, 0);
	return 0;
}

Test(sampler, vanished_interpreter_ends_a_run)
{
	static const struct sample_sink_ops ops = {.sample = sample_then_end_python};
	struct fake_python py;
	struct fake_stack stack;
	struct acting_sink sink;
	enum sampler_end end;

	fake_python_init(&py, 14);
	(void)begin_stack(&stack, &py, 1);
	cr_assert(zero(int, run(&py, stack.thread_addr, 0, &sink, &ops, &end)));
	cr_expect(eq(int, end, END_REPLACED));
	fake_python_done(&py);
}

static int count_sample(struct sample_sink *sink, const struct sample *sample)
{
	(void)sample;
	((struct acting_sink *)sink)->nr_samples++;
	return 0;
}

static int end_process_between_ticks(struct sample_sink *sink, uint64_t now_ns)
{
	struct acting_sink *acting = (struct acting_sink *)sink;
	struct fake_memory *fake = &acting->py->fake;

	(void)now_ns;
	if (++acting->nr_ticks == 2) {
		acting->nr_syscalls = sampler_stats(acting->sampler)->other_syscalls;
		fake->error = -ESRCH;
		fake->check_error = -ESRCH;
	}
	return 0;
}

/* The second tick would be after the duration. */
Test(sampler, end_of_the_process_does_not_wait_for_a_tick)
{
	static const struct sample_sink_ops ops = {.sample = count_sample,
						   .tick = end_process_between_ticks};
	const struct sampler_options options = {.rate_hz = 0.1};
	const struct sampler_limits limits = {.duration_ns = 3ull * NS_PER_S};
	struct fake_python py;
	struct fake_stack stack;
	struct acting_sink sink = {.sink.ops = &ops, .py = &py};
	struct sampler *sampler;
	enum sampler_end end;

	fake_python_init(&py, 14);
	(void)begin_stack(&stack, &py, 1);
	fake_memory_allow_writes(&py.fake);
	cr_assert(zero(
		int, sampler_create(NULL, &py.fake.memory, &py.build, py.runtime_addr, &sampler)));
	sink.sampler = sampler;
	cr_assert(zero(int, sampler_run(sampler, &options, &limits, &sink.sink, &end)));
	cr_expect(eq(int, end, END_TARGET));
	cr_expect(eq(u64, sampler_stats(sampler)->ticks, 1));
	cr_expect(zero(u64, sampler_stats(sampler)->failed_ticks));
	cr_expect(eq(uint, sink.nr_samples, 1));
	cr_expect(ge(uint, sink.nr_ticks, 2));
	cr_expect(eq(u64, sink.nr_syscalls, 1), "one sleep");
	sampler_destroy(sampler);
	fake_python_done(&py);
}

enum { NR_THREADS = 40 };

static int sample_then_stop(struct sample_sink *sink, const struct sample *sample)
{
	struct acting_sink *acting = (struct acting_sink *)sink;

	(void)sample;
	acting->nr_samples++;
	acting->stop = 1;
	return 0;
}

static int sample_slowly(struct sample_sink *sink, const struct sample *sample)
{
	enum { SIXTEEN_ARE_TOO_LONG_US = 70000 };
	struct acting_sink *acting = (struct acting_sink *)sink;

	(void)sample;
	acting->nr_samples++;
	(void)usleep(SIXTEEN_ARE_TOO_LONG_US);
	return 0;
}

Test(sampler, tick_stops_at_the_end_of_the_run)
{
	static const struct {
		char name[16];
		struct sample_sink_ops ops;
		uint64_t duration_ns;
		enum sampler_end end;
		unsigned int max_samples; /* in one tick of NR_THREADS samples */
	} cases[] = {
		{"stopped", {.sample = sample_then_stop}, 0, END_STOPPED, 1},
		{"duration", {.sample = sample_slowly}, 40000000, END_DURATION, 16},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fake_python py;
		struct fake_stack stack;
		struct acting_sink sink;
		enum sampler_end end;

		fake_python_init(&py, 14);
		for (uint64_t tid = 1; tid <= NR_THREADS; tid++)
			(void)begin_stack(&stack, &py, tid);
		cr_assert(zero(int, run(&py, stack.thread_addr, cases[i].duration_ns, &sink,
					&cases[i].ops, &end)));
		cr_expect(eq(int, end, cases[i].end), "%s", cases[i].name);
		cr_expect(le(uint, sink.nr_samples, cases[i].max_samples), "%s", cases[i].name);
		fake_python_done(&py);
	}
}

Test(sampler, counters_of_several_runs_add_up)
{
	const struct sampler_stats runs[] = {
		{.ticks = 1,
		 .late_ticks = 2,
		 .samples = 3,
		 .cached = 14,
		 .writes = 16,
		 .lost = {5, 6, 7, 8, 9, 10},
		 .reads = 11,
		 .other_syscalls = 12,
		 .start_ns = 100,
		 .end_ns = 200,
		 .failed_ticks = 14,
		 .lateness = {.counts = {[2] = 3}, .nr = 3, .max = 2}},
		{.ticks = 10,
		 .late_ticks = 20,
		 .samples = 30,
		 .cached = 140,
		 .writes = 160,
		 .lost = {50, 60, 70, 80, 90, 100},
		 .reads = 110,
		 .other_syscalls = 120,
		 .first_sample_ns = 350,
		 .start_ns = 300,
		 .end_ns = 400,
		 .failed_ticks = 140,
		 .lateness = {.counts = {[1] = 2, [5] = 1}, .nr = 3, .max = 5}},
	};
	const struct sampler_stats expected = {
		.ticks = 11,
		.late_ticks = 22,
		.samples = 33,
		.cached = 154,
		.writes = 176,
		.lost = {55, 66, 77, 88, 99, 110},
		.reads = 121,
		.other_syscalls = 132,
		.first_sample_ns = 350,
		.start_ns = 100,
		.end_ns = 400,
		.failed_ticks = 154,
		.lateness = {.counts = {[1] = 2, [2] = 3, [5] = 1}, .nr = 6, .max = 5},
		.p50_lateness_ns = 2,
		.p99_lateness_ns = 5,
	};
	/* Processes need not end in the order in which they began. */
	for (int first = 0; first < 2; first++) {
		struct sampler_stats sum = {0};

		sampler_stats_add(&sum, &runs[first]);
		sampler_stats_add(&sum, &runs[!first]);
		cr_expect(zero(int, memcmp(&sum, &expected, sizeof(sum))), "first: %d", first);
	}
}

/* Make a threading module with one thread of this name. */
static void name_thread(struct fake_python *py, uint64_t ident, const char *name)
{
	const struct fake_item item = {NULL, ident,
				       fake_thread_object(py, FAKE_OWN_DICT, ident, name)};

	(void)fake_threading(py, &item, 1);
}

/* Two thread states with one ident. The newer one's thread has not begun. */
Test(sampler, thread_that_has_not_begun_has_no_name)
{
	enum { IDENT = 4096 };

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct fake_python py;
		struct fake_stack stacks[2];
		struct test_sink sink;

		fake_python_init(&py, fake_stack_minors[v]);
		for (size_t i = 0; i < 2; i++) {
			(void)begin_stack(&stacks[i], &py, FAKE_NATIVE_ID(IDENT));
			fake_memory_write_u64(
				&py.fake, stacks[i].thread_addr + py.build.offsets.thread.thread_id,
				IDENT);
		}
		name_thread(&py, IDENT, "old");
		cr_assert(zero(int, dump(&py, &sink)));
		cr_assert(eq(sz, sink.nr_samples, 2));
		cr_expect(eq(str, sink.threads[0].name, (char *)"old"), "3.%u", py.minor);
		cr_expect(eq(i32, sink.threads[0].tid, FAKE_NATIVE_ID(IDENT)));
		cr_expect(eq(str, sink.threads[1].name, (char *)""));
		cr_expect(eq(i32, sink.threads[1].tid, 0));
		fake_python_done(&py);
	}
}

/* Threads come and go. Each has its own id, but slots are reused. */
Test(sampler, endless_threads_reuse_slots)
{
	enum { NR_TURNS = 40 };

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		static const struct sample_sink_ops ops = {.sample = test_sink_sample};
		struct test_sink sink = {.sink.ops = &ops};
		struct fake_python py;
		struct fake_stack stack;
		struct sampler *sampler;
		struct cached_sample *cached;
		uint32_t last_id = 0;

		fake_python_init(&py, fake_stack_minors[v]);
		(void)begin_stack(&stack, &py, 1);
		cr_assert(zero(int, sampler_create(NULL, &py.fake.memory, &py.build,
						   py.runtime_addr, &sampler)));
		for (int turn = 0; turn < NR_TURNS; turn++) {
			/* The same thread state and stack with another thread. */
			fake_memory_write_u64(&py.fake,
					      stack.thread_addr + py.build.offsets.thread.thread_id,
					      4096 + (uint64_t)turn);
			sampler->snapshot.is_stale = true;
			sink.nr_samples = 0;
			cr_assert(zero(int, sampler_tick(sampler, &sink.sink, turn + 1)));
			cr_assert(eq(sz, sink.nr_samples, 1), "3.%u", py.minor);
			cr_expect(turn == 0 || sink.threads[0].id > last_id, "3.%u", py.minor);
			cr_assert(lt(u32, sink.threads[0].slot, 2));
			/*
			 * A thread's cached sample is not passed to the next thread in its slot.
			 */
			cached = &sampler->threads[sink.threads[0].slot].cached;
			cr_expect(zero(u64, cached->nr_runs), "3.%u", py.minor);
			cached->nr_runs = 1;
			last_id = sink.threads[0].id;
		}
		cr_expect(eq(u32, sampler->identities.ids->nr_threads, NR_TURNS), "3.%u", py.minor);
		cr_expect(le(u32, sampler->nr_threads, 2));
		sampler_destroy(sampler);
		fake_python_done(&py);
	}
}

/* A thread that runs new code at each tick. */
Test(sampler, endless_code_is_dropped)
{
	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		static const struct sample_sink_ops ops = {.sample = test_sink_sample};
		const struct fake_code code = {.name = "f", .nr_units = 64};
		struct test_sink sink = {.sink.ops = &ops};
		struct fake_python py;
		struct fake_stack stack;
		struct sampler *sampler;

		fake_python_init(&py, fake_stack_minors[v]);
		remote_addr frame_addr = begin_stack(&stack, &py, 1);
		const struct py_offsets *offsets = &py.build.offsets;

		cr_assert(zero(int, sampler_create(NULL, &py.fake.memory, &py.build,
						   py.runtime_addr, &sampler)));
		for (uint64_t tick = 1; tick <= 3 * DROP_AFTER_NEW_CODES; tick++) {
			remote_addr code_addr = fake_python_code(&py, &code);

			fake_memory_write_u64(&py.fake, frame_addr + offsets->frame.executable,
					      code_addr);
			fake_memory_write_u64(&py.fake, frame_addr + offsets->frame.instr_ptr,
					      code_addr + offsets->code.code_adaptive + 20);
			sink.nr_samples = 0;
			cr_assert(zero(int, sampler_tick(sampler, &sink.sink, tick)));
		}
		/* Before 3.13 each code object is looked up twice, so it stays one turn longer. */
		cr_expect(le(sz, sampler->codes.codes.nr_used, 2 * DROP_AFTER_NEW_CODES + 2),
			  "3.%u", py.minor);
		cr_expect(lt(u64, DROP_AFTER_NEW_CODES, sampler_stats(sampler)->samples), "3.%u",
			  py.minor);
		sampler_destroy(sampler);
		fake_python_done(&py);
	}
}

/* Keeps the names of the last sample, and checks the next sample's nr_unchanged against them. */
struct stack_sink {
	struct sample_sink sink;
	char text[64]; /* "f <GC> g " */
	uint32_t flags;
	const struct function *functions[4];
	uint32_t nr_frames;
};

static int stack_sink_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct stack_sink *stack = (struct stack_sink *)sink;
	uint32_t nr_same = 0;

	cr_assert(le(uint, sample->nr_frames, 4));
	while (nr_same < sample->nr_frames && nr_same < stack->nr_frames &&
	       sample->frames[nr_same].function == stack->functions[nr_same])
		nr_same++;
	cr_expect(eq(uint, sample->nr_unchanged, nr_same), "after '%s'", stack->text);
	stack->text[0] = '\0';
	for (uint32_t i = 0; i < sample->nr_frames; i++) {
		stack->functions[i] = sample->frames[i].function;
		(void)strcat(strcat(stack->text, stack->functions[i]->qualname), " ");
	}
	stack->nr_frames = sample->nr_frames;
	stack->flags = sample->flags;
	return 0;
}

/* The collector's frame comes and goes, in any place. */
Test(sampler, collector_has_a_frame)
{
	static const struct {
		unsigned int collector; /* 1-based frame that started it; 0: none */
		char text[32];
	} cases[] = {
		{0, "f g "}, {2, "f g <GC> "}, {2, "f g <GC> "}, {1, "f <GC> g "}, {1, "f <GC> g "},
		{0, "f g "}, {1, "f <GC> g "}, {2, "f g <GC> "}, {0, "f g "},
	};
	static const struct sample_sink_ops ops = {.sample = stack_sink_sample};
	const struct fake_code codes[] = {{.name = "f", .nr_units = 64}, {.name = "g"}};
	struct stack_sink sink = {.sink.ops = &ops};
	remote_addr frames[3] = {0};
	struct fake_python py;
	struct fake_stack stack;
	struct sampler *sampler;

	fake_python_init(&py, 15);
	fake_stack_init(&stack, &py, 1, CHUNK_BYTES);
	for (size_t i = 0; i < 2; i++)
		frames[i + 1] = fake_stack_call(&stack, fake_python_code(&py, &codes[i]), 20);
	fake_stack_finish(&stack);
	cr_assert(zero(
		int, sampler_create(NULL, &py.fake.memory, &py.build, py.runtime_addr, &sampler)));
	for (unsigned int looks = 0; looks < 2; looks++) {
		sampler_set_extras(sampler, &(struct sampler_extras){.gc = looks != 0});
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			const char *text = looks ? cases[i].text : "f g ";

			fake_memory_write_u64(&py.fake,
					      py.interp_addr + py.build.offsets.interpreter.gc +
						      py.build.offsets.gc.frame,
					      frames[cases[i].collector]);
			cr_assert(
				zero(int, sampler_tick(sampler, &sink.sink, looks * 100 + i + 1)));
			cr_expect(eq(str, sink.text, (char *)text));
			cr_expect(eq(uint, sink.flags & SAMPLE_GC,
				     looks && cases[i].collector ? SAMPLE_GC : 0));
		}
	}
	sampler_destroy(sampler);
	fake_python_done(&py);
}
