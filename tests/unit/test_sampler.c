/* SPDX-License-Identifier: MIT */
#include "sampler/sampler.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "tests/support/fake_stack.h"

enum { CHUNK_BYTES = 4096, MAX_SAMPLES = 8 };

/* Keeps what a sampler hands on, without the frames. */
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
	test->threads[test->nr_samples] = *sample->thread;
	test->samples[test->nr_samples++] = *sample;
	return 0;
}

/* The stack of one thread: f, which is called from C and executes. */
static void begin_stack(struct fake_stack *stack, struct fake_python *py, uint64_t tid)
{
	const struct fake_code code = {.name = "f"};

	fake_stack_init(stack, py, tid, CHUNK_BYTES);
	(void)fake_stack_call(stack, fake_python_code(py, &code), 20);
	fake_stack_finish(stack);
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

Test(sampler, dump_hands_on_every_thread)
{
	for (size_t v = 0; v < NR_FAKE_PYTHONS; v++) {
		struct fake_python py;
		struct fake_stack stacks[2];
		struct test_sink sink;

		fake_python_init(&py, fake_python_minors[v]);
		for (uint64_t i = 0; i < 2; i++)
			begin_stack(&stacks[i], &py, i + 1);
		cr_assert(zero(int, dump(&py, &sink)), "3.%u", py.minor);
		cr_assert(eq(sz, sink.nr_samples, 2));
		for (size_t i = 0; i < 2; i++) {
			cr_expect(eq(int, sink.threads[i].tid, (int)i + 1), "the oldest first");
			cr_expect(eq(uint, sink.samples[i].nr_frames, 1), "3.%u", py.minor);
			cr_expect(zero(uint, sink.samples[i].flags), "3.%u", py.minor);
		}
		fake_python_done(&py);
	}
}

/* A list that is damaged until it was read a number of times. */
struct motion {
	remote_addr addr; /* the word that is damaged */
	uint64_t whole;	  /* what it is afterwards */
	uint64_t nr_calls;
};

static void move_on(struct fake_memory *fake, size_t range_index)
{
	struct motion *motion = fake->context;

	(void)range_index;
	if (fake->nr_calls >= motion->nr_calls)
		fake_memory_write_u64(fake, motion->addr, motion->whole);
}

Test(sampler, dump_reads_a_list_in_motion_again)
{
	static const struct {
		char name[32];
		uint64_t head; /* of the list of interpreters, for a while */
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
		begin_stack(&stack, &py, 1);
		struct motion motion = {
			.addr = py.runtime_addr + py.build.offsets.runtime.interpreters_head,
			.whole = py.interp_addr,
			.nr_calls = cases[i].nr_calls,
		};
		fake_memory_write_u64(&py.fake, motion.addr, cases[i].head);
		py.fake.before_range = move_on;
		py.fake.context = &motion;
		cr_expect(eq(int, dump(&py, &sink), cases[i].err), "%s", cases[i].name);
		cr_expect(eq(sz, sink.nr_samples, cases[i].err ? 0 : 1), "%s", cases[i].name);
		fake_python_done(&py);
	}
}

Test(sampler, dump_of_what_is_gone_is_not_tried_again)
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
