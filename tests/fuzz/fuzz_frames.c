/* SPDX-License-Identifier: MIT */
/*
 * Samples and dumps a small interpreter whose memory the input changes. The input is one byte for
 * the version, plus 8 if pages are mapped whole, then changes of 12 bytes: the piece of memory
 * (1); the kind of value (1: a number, the address of a piece, or one inside a piece); the place
 * in the piece (2); the number (8). After every fourth change there is a tick, and racing runs
 * for the threads that existed at the beginning.
 */
#include <stdint.h>
#include <stdlib.h>

#include "sampler/racing/racing.h"
#include "sampler/sampler.h"
#include "tests/support/fake_stack.h"

enum { CHANGE_BYTES = 12, CHANGES_A_TICK = 4, MAX_CHANGES = 64, CHUNK_BYTES = 1024, WORDS = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct checking_sink {
	struct sample_sink sink;
	uint64_t nr_bytes; /* length of all names, summed, so that each is read */
};

static int check_sample(struct sample_sink *sink, const struct sample *sample)
{
	struct checking_sink *checking = (struct checking_sink *)sink;

	if (sample->nr_unchanged > sample->nr_frames)
		abort();
	for (uint32_t i = 0; i < sample->nr_frames; i++)
		checking->nr_bytes += strlen(sample->frames[i].function->qualname) +
				      strlen(sample->frames[i].function->path);
	return 0;
}

/* Two threads: frames in two chunks, shims, generators in the middle and on top. */
static void build(struct fake_python *py)
{
	const struct fake_code function = {.name = "f", .frame_words = WORDS, .first_traceable = 1};
	const struct fake_code generator = {.name = "gen", .frame_words = WORDS};
	remote_addr code = fake_python_code(py, &function);
	remote_addr gen = fake_python_code(py, &generator);
	struct fake_stack stack;

	fake_stack_init(&stack, py, 1, CHUNK_BYTES);
	fake_stack_call(&stack, code, WORDS);
	fake_stack_resume(&stack, gen);
	fake_stack_call(&stack, code, WORDS);
	fake_stack_new_chunk(&stack, CHUNK_BYTES);
	fake_stack_call_c(&stack);
	fake_stack_call(&stack, code, WORDS);
	fake_stack_resume(&stack, gen);
	fake_stack_finish(&stack);
	fake_stack_init(&stack, py, 2, CHUNK_BYTES);
	fake_stack_call(&stack, code, WORDS);
	fake_stack_finish(&stack);
}

static void change(struct fake_memory *fake, const uint8_t *bytes)
{
	const struct fake_segment *to = &fake->segments[bytes[0] % fake->nr_segments];
	uint64_t value = field_u64(bytes, 4);
	const struct fake_segment *named = &fake->segments[value % fake->nr_segments];
	size_t offset = field_u16(bytes, 2);

	if (bytes[1] % 3 == 1)
		value = named->addr;
	else if (bytes[1] % 3 == 2)
		value = named->addr + value / 256 % named->size_bytes;
	if (offset + sizeof(value) <= to->size_bytes)
		memcpy(to->bytes + offset, &value, sizeof(value));
}

/* State of racing. */
struct race {
	struct fake_python *py; /* borrowed */
	struct racing racing;
	struct code_cache codes;
	struct frame_list list;
	struct thread_list threads;
	uint64_t tick;
};

static void race_init(struct race *race, struct fake_python *py)
{
	*race = (struct race){.py = py};
	code_cache_init(&race->codes, &py->fake.memory, &py->build);
	if (racing_supports(&py->build) &&
	    thread_list_read(&py->fake.memory, &py->build, py->runtime_addr, false,
			     &race->threads) != 0)
		abort();
}

static void race_done(struct race *race)
{
	racing_done(&race->racing);
	frame_list_done(&race->list);
	thread_list_done(&race->threads);
	code_cache_done(&race->codes);
}

static void race_walk(struct race *race)
{
	const struct code_clock clock = fake_python_clock(race->py, ++race->tick);

	for (size_t i = 0; i < race->threads.nr_threads; i++) {
		enum sample_loss loss;

		(void)racing_walk(&race->racing, &race->codes, &clock, &race->threads.threads[i],
				  &race->list, &loss);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sample_sink_ops ops = {.sample = check_sample};
	struct checking_sink checking = {.sink.ops = &ops};
	struct sampler *sampler = NULL;
	struct fake_python py;
	struct race race;
	uint64_t now_ns = 1;

	if (!size || (size - 1) / CHANGE_BYTES > MAX_CHANGES)
		return 0;
	fake_python_init(&py, fake_stack_minors[data[0] % NR_FAKE_STACK_MINORS]);
	py.fake.whole_pages = data[0] / NR_FAKE_STACK_MINORS % 2;
	build(&py);
	if (sampler_create(NULL, &py.fake.memory, &py.build, py.runtime_addr, &sampler) != 0)
		abort();
	race_init(&race, &py);
	for (int i = 0; i < 4; i++)
		(void)sampler_tick(sampler, &checking.sink, now_ns++);
	for (size_t i = 0; i < (size - 1) / CHANGE_BYTES; i++) {
		change(&py.fake, data + 1 + i * CHANGE_BYTES);
		if (i % CHANGES_A_TICK == 0) {
			(void)sampler_tick(sampler, &checking.sink, now_ns++);
			race_walk(&race);
		}
	}
	for (int i = 0; i < 3; i++)
		(void)sampler_tick(sampler, &checking.sink, now_ns++);
	(void)sampler_dump(sampler, &checking.sink);
	race_walk(&race);
	race_done(&race);
	sampler_destroy(sampler);
	fake_python_done(&py);
	return 0;
}
