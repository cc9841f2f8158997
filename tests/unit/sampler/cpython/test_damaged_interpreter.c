/* SPDX-License-Identifier: MIT */
/*
 * Interpreters whose memory is damaged at random, from one seed. Loading, sampling and dumping
 * them must each end, with an error or not, in a bounded number of reads. Time is not measured,
 * because reads are what costs time.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>

#include "sampler/cpython/find/build.h"
#include "sampler/sampler.h"
#include "tests/support/fake_stack.h"
#include "tests/support/random.h"

/* Every version that can be faked. */
static const uint32_t minors[] = {
	6,
	7,
	8,
	9,
	10,
	11,
	12,
	13,
	14,
	15,
	FAKE_MAIN,
	FAKE_FREE_THREADED + 13,
	FAKE_FREE_THREADED + 14,
	FAKE_FREE_THREADED + 15,
	FAKE_FREE_THREADED + FAKE_MAIN,
};

enum { NR_MINORS = sizeof(minors) / sizeof(*minors) };

enum { NR_ROUNDS = 10000, CHUNK_BYTES = 1024, WORDS = 20, NR_TICKS = 3, TABLE_BYTES = 888 };

/* Limits for one tick, dump or load. A call takes about a microsecond in a live process. */
enum { MAX_CALLS = 20000, MAX_BYTES = 16 << 20 };

/* Counts samples, and reads all names. */
struct counting_sink {
	struct sample_sink sink;
	uint64_t nr_samples;
	size_t nr_name_bytes;
};

static int count_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct counting_sink *counting = (struct counting_sink *)sink;

	counting->nr_samples++;
	cr_assert(le(uint, sample->nr_unchanged, sample->nr_frames));
	for (uint32_t i = 0; i < sample->nr_frames; i++)
		counting->nr_name_bytes += strlen(sample->frames[i].function->qualname) +
					   strlen(sample->frames[i].function->path);
	return 0;
}

static const struct sample_sink_ops counting_ops = {.sample = count_sample};

/* An interpreter, and its undamaged memory. */
struct stage {
	struct fake_python py;
	uint8_t **saved;	     /* bytes of each segment */
	uint64_t nr_calls, nr_bytes; /* at the end of the last operation */
	struct counting_sink counting;
};

/* Two threads: frames in two chunks, shims, generators in the middle and on top. */
static void build_threads(struct fake_python *py)
{
	const struct fake_code plain = {.name = "f", .frame_words = WORDS, .first_traceable = 1};
	const struct fake_code generator = {.name = "gen", .frame_words = WORDS};
	remote_addr code = fake_python_code(py, &plain);
	remote_addr gen = fake_python_code(py, &generator);
	struct fake_stack stack;

	fake_stack_init(&stack, py, 1, CHUNK_BYTES);
	fake_stack_call_c(&stack);
	fake_stack_call(&stack, code, WORDS);
	fake_stack_resume(&stack, gen);
	fake_stack_call(&stack, code, WORDS);
	fake_stack_new_chunk(&stack, CHUNK_BYTES);
	fake_stack_call(&stack, code, WORDS);
	fake_stack_finish(&stack);
	fake_stack_init(&stack, py, 2, CHUNK_BYTES);
	fake_stack_call(&stack, code, WORDS);
	fake_stack_finish(&stack);
}

/* One thread with frame objects, before 3.11. */
static void build_heap_thread(struct fake_python *py)
{
	remote_addr code = fake_python_code(py, &(struct fake_code){.name = "f"});
	remote_addr thread_addr = fake_python_thread(py, 1);
	remote_addr back = 0;

	for (int i = 0; i < 4; i++) {
		remote_addr addr = fake_python_alloc(py, frame_head_bytes(&py->build.offsets));

		fake_python_frame_object(
			py, addr,
			&(struct fake_frame_object){.code = code, .back = back, .unit = 1});
		back = addr;
	}
	fake_memory_write_u64(&py->fake, thread_addr + py->build.offsets.thread.current_frame,
			      back);
}

static void stage_init(struct stage *stage, uint32_t minor)
{
	*stage = (struct stage){.counting.sink.ops = &counting_ops};
	fake_python_init(&stage->py, minor);
	if (stage->py.build.traits.frames_on_heap)
		build_heap_thread(&stage->py);
	else
		build_threads(&stage->py);
	stage->saved = calloc(stage->py.fake.nr_segments, sizeof(*stage->saved));
	for (size_t i = 0; i < stage->py.fake.nr_segments; i++) {
		const struct fake_segment *segment = &stage->py.fake.segments[i];

		stage->saved[i] = malloc(segment->size_bytes);
		memcpy(stage->saved[i], segment->bytes, segment->size_bytes);
	}
}

static void stage_done(struct stage *stage)
{
	for (size_t i = 0; i < stage->py.fake.nr_segments; i++)
		free(stage->saved[i]);
	free(stage->saved);
	fake_python_done(&stage->py);
}

/* Check the reads of the operation that has just ended. */
static void stage_count(struct stage *stage, uint32_t round, const char *what)
{
	uint64_t calls = stage->py.fake.nr_calls - stage->nr_calls;
	uint64_t bytes = stage->py.fake.nr_bytes - stage->nr_bytes;

	cr_assert(le(u64, calls, MAX_CALLS), "round %u: %s", round, what);
	cr_assert(le(u64, bytes, MAX_BYTES), "round %u: %s", round, what);
	stage->nr_calls = stage->py.fake.nr_calls;
	stage->nr_bytes = stage->py.fake.nr_bytes;
}

/* Sample and dump with this build. */
static void stage_run(struct stage *stage, const struct py_build *build, uint32_t round)
{
	struct sampler *sampler = NULL;

	/* A look reads blocks of pages. If a block is cut off it reads piece by piece. */
	stage->py.fake.whole_pages = round % 2;
	if (sampler_create(NULL, &stage->py.fake.memory, build, stage->py.runtime_addr, &sampler))
		return;
	for (uint64_t i = 1; i <= NR_TICKS; i++) {
		(void)sampler_tick(sampler, &stage->counting.sink, i);
		stage_count(stage, round, "tick");
	}
	/* A dump retries for a while, so it is not made each time. */
	if (round % 32 == 0)
		(void)sampler_dump(sampler, &stage->counting.sink);
	stage_count(stage, round, "dump");
	sampler_destroy(sampler);
}

/* Load the interpreter and use it if it is accepted. A refusal must have a message. */
static bool stage_load(struct stage *stage, uint32_t version_hex, uint32_t round)
{
	struct message message = {0};
	struct py_build build;
	int err = build_load(&stage->py.fake.memory, stage->py.runtime_addr, version_hex, &build,
			     &message);

	stage_count(stage, round, "load");
	if (err == -ENOTSUP || err == -EBADMSG)
		cr_assert(ne(chr, message.text[0], 0), "round %u", round);
	else
		cr_assert(err == 0 || err == -EFAULT, "round %u: %d", round, err);
	if (!err)
		stage_run(stage, &build, round);
	return !err;
}

/* A harmful number: random, small, an address in memory, negative, or one bit changed. */
static uint64_t harmful_value(const struct fake_memory *fake, uint64_t *random, uint64_t old)
{
	uint64_t number = random_next(random);
	const struct fake_segment *segment = &fake->segments[number / 64 % fake->nr_segments];

	switch (number % 8) {
	case 0:
		return random_next(random);
	case 1:
		return number >> 32 & 0xfff;
	case 2:
		return segment->addr;
	case 3:
		return segment->addr + (number >> 40) % segment->size_bytes;
	case 4:
		return 0 - (number >> 40 & 0xff);
	default:
		return old ^ 1ull << (number >> 32) % 64;
	}
}

/* Damage a word in the first span bytes of a segment, aligned in seven of eight cases. */
static void damage(struct stage *stage, uint64_t *random, size_t index, size_t span)
{
	struct fake_segment *segment = &stage->py.fake.segments[index];
	uint64_t number = random_next(random);
	size_t bytes = segment->size_bytes < span ? segment->size_bytes : span;
	size_t offset = bytes > 8 ? number % (bytes - 8) : 0;
	uint64_t value = 0;

	if (segment->size_bytes < sizeof(value))
		return;
	if (number >> 61)
		offset = offset / 8 * 8;
	memcpy(&value, segment->bytes + offset, sizeof(value));
	value = harmful_value(&stage->py.fake, random, value);
	memcpy(segment->bytes + offset, &value, sizeof(value));
}

static void restore(struct stage *stage, size_t index)
{
	const struct fake_segment *segment = &stage->py.fake.segments[index];

	memcpy(segment->bytes, stage->saved[index], segment->size_bytes);
}

static size_t segment_at(const struct stage *stage, remote_addr addr)
{
	size_t i = 0;

	while (stage->py.fake.segments[i].addr != addr)
		i++;
	return i;
}

Test(damaged_interpreter, damaged_tables_are_read_in_bounds)
{
	uint64_t random = 88172645463325252u;
	uint32_t nr_accepted = 0;

	for (size_t v = 0; v < NR_FAKE_STACK_MINORS; v++) {
		struct stage stage;
		size_t runtime;

		if (fake_stack_minors[v] < 13)
			continue;
		stage_init(&stage, fake_stack_minors[v]);
		runtime = segment_at(&stage, stage.py.runtime_addr);
		for (uint32_t round = 0; round < NR_ROUNDS / 6; round++) {
			for (uint32_t k = 0; k <= round % 4; k++)
				damage(&stage, &random, runtime, TABLE_BYTES);
			nr_accepted += stage_load(&stage, 0, round);
			restore(&stage, runtime);
		}
		stage_done(&stage);
	}
	/* Some damage is accepted, because it hits numbers that are not used. */
	cr_expect(lt(uint, NR_ROUNDS / 10, nr_accepted));
	cr_expect(lt(uint, nr_accepted, NR_ROUNDS * 9 / 10));
}

Test(damaged_interpreter, random_versions_are_read_in_bounds)
{
	uint64_t random = 362436069;
	struct stage stage;

	for (size_t v = 0; v < NR_MINORS; v++) {
		size_t runtime;

		stage_init(&stage, minors[v]);
		runtime = segment_at(&stage, stage.py.runtime_addr);
		for (uint32_t round = 0; round < NR_ROUNDS / NR_MINORS; round++) {
			uint32_t version = (uint32_t)random_next(&random);

			/*
			 * Most versions are of Python 3, with a minor version that exists or may
			 * exist.
			 */
			if (round % 4)
				version = 0x03000000 | (version & 0x1fffff);
			if (minors[v] >= 13)
				memcpy(stage.py.fake.segments[runtime].bytes + 8, &version,
				       sizeof(version));
			(void)stage_load(&stage, version, round);
			restore(&stage, runtime);
		}
		stage_done(&stage);
	}
}

/* Damage anywhere: lists, thread states, chunks, frames, code objects, names. */
Test(damaged_interpreter, damaged_states_are_read_in_bounds)
{
	uint64_t random = 521288629;
	uint64_t nr_samples = 0;

	for (size_t v = 0; v < NR_MINORS; v++) {
		struct stage stage;

		stage_init(&stage, minors[v]);
		for (uint32_t round = 0; round < NR_ROUNDS / NR_MINORS; round++) {
			size_t hit[8];
			size_t nr = 1 + round % 8;

			for (size_t k = 0; k < nr; k++) {
				hit[k] = random_next(&random) % stage.py.fake.nr_segments;
				damage(&stage, &random, hit[k], 32768);
			}
			stage_run(&stage, &stage.py.build, round);
			if (round % 8 == 0)
				(void)stage_load(&stage, stage.py.build.version_hex, round);
			for (size_t k = 0; k < nr; k++)
				restore(&stage, hit[k]);
		}
		nr_samples += stage.counting.nr_samples;
		stage_done(&stage);
	}
	cr_expect(lt(u64, NR_ROUNDS, nr_samples));
}

/* Circular lists of threads, interpreters, chunks and frames. */
Test(damaged_interpreter, cyclic_lists_are_bounded)
{
	for (size_t v = 0; v < NR_MINORS; v++) {
		struct stage stage;
		const struct py_offsets *o = &stage.py.build.offsets;
		remote_addr thread_addr, chunk_addr = 0, frame_addr;

		stage_init(&stage, minors[v]);
		cr_assert(zero(int, remote_memory_read_u64(&stage.py.fake.memory,
							   stage.py.interp_addr +
								   o->interpreter.threads_head,
							   &thread_addr)));
		if (o->thread.datastack_chunk != OFFSET_ABSENT)
			cr_assert(zero(
				int, remote_memory_read_u64(&stage.py.fake.memory,
							    thread_addr + o->thread.datastack_chunk,
							    &chunk_addr)));
		frame_addr = chunk_addr + o->chunk.data + 8;
		if (chunk_addr) {
			fake_memory_write_u64(&stage.py.fake, frame_addr + o->frame.previous,
					      frame_addr);
			stage_run(&stage, &stage.py.build, (uint32_t)v);
			fake_memory_write_u64(&stage.py.fake, chunk_addr + o->chunk.previous,
					      chunk_addr);
			stage_run(&stage, &stage.py.build, (uint32_t)v);
		}
		fake_memory_write_u64(&stage.py.fake, thread_addr + o->thread.next, thread_addr);
		stage_run(&stage, &stage.py.build, (uint32_t)v);
		fake_memory_write_u64(&stage.py.fake, stage.py.interp_addr + o->interpreter.next,
				      stage.py.interp_addr);
		stage_run(&stage, &stage.py.build, (uint32_t)v);
		(void)stage_load(&stage, stage.py.build.version_hex, (uint32_t)v);
		stage_done(&stage);
	}
}
