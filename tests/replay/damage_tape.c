/* SPDX-License-Identifier: MIT */
/*
 * damage_tape FILE.tape...: load and sample a recorded process after changing words at random,
 * from one seed. Fails if that takes too many reads, crashes, or makes a sanitizer complain.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/cpython/find/build.h"
#include "sampler/sampler.h"
#include "tests/support/random.h"
#include "tests/support/tape.h"

enum { NR_ROUNDS = 2000, NR_TICKS = 3, MAX_CHANGES = 8, DUMP_EVERY = 64 };

/* The same limit as in the suite hostile; there are four operations. */
enum { MAX_CALLS = 80000 };

/* A changed word and its old value. */
struct change {
	uint8_t *at;
	uint64_t value;
};

/* Change a word: usually one bit; else to the address of a piece, or to any number. */
static struct change damage(struct fake_memory *fake, uint64_t *random)
{
	uint64_t number = random_next(random);
	const struct fake_segment *segment = &fake->segments[number % fake->nr_segments];
	const struct fake_segment *other = &fake->segments[number / 64 % fake->nr_segments];
	struct change change = {0};
	uint64_t value;

	if (segment->size_bytes < sizeof(value))
		return change;
	change.at = segment->bytes + random_next(random) % (segment->size_bytes - 7);
	memcpy(&change.value, change.at, sizeof(value));
	value = change.value ^ 1ull << (number >> 32) % 64;
	if (number >> 61 == 0)
		value = other->addr;
	else if (number >> 61 == 1)
		value = random_next(random);
	memcpy(change.at, &value, sizeof(value));
	return change;
}

static int ignore_sample(struct sample_sink *sink, const struct sample *sample)
{
	(void)sink;
	(void)sample;
	return 0;
}

static void use(struct tape *tape, unsigned int round)
{
	static const struct sample_sink_ops ops = {.sample = ignore_sample};
	struct sample_sink sink = {.ops = &ops};
	struct sampler *sampler = NULL;
	struct message message = {0};
	struct py_build build;

	if (build_load(&tape->fake.memory, tape->runtime_addr, tape->version_hex, &build,
		       &message) != 0 ||
	    sampler_create(NULL, &tape->fake.memory, &build, tape->runtime_addr, &sampler) != 0)
		return;
	for (uint64_t i = 1; i <= NR_TICKS; i++)
		(void)sampler_tick(sampler, &sink, i);
	if (round % DUMP_EVERY == 0)
		(void)sampler_dump(sampler, &sink);
	sampler_destroy(sampler);
}

static int damage_tape(struct tape *tape, const char *path)
{
	uint64_t random = 2463534242;

	for (unsigned int round = 0; round < NR_ROUNDS; round++) {
		struct change changes[MAX_CHANGES];
		size_t nr = 1 + round % MAX_CHANGES;
		uint64_t nr_calls = tape->fake.nr_calls;

		for (size_t i = 0; i < nr; i++)
			changes[i] = damage(&tape->fake, &random);
		use(tape, round);
		for (size_t i = nr; i > 0; i--)
			if (changes[i - 1].at)
				memcpy(changes[i - 1].at, &changes[i - 1].value, sizeof(uint64_t));
		if (tape->fake.nr_calls - nr_calls > MAX_CALLS) {
			(void)fprintf(stderr, "damage_tape: %s: round %u took %llu reads\n", path,
				      round, (unsigned long long)(tape->fake.nr_calls - nr_calls));
			return EXIT_FAILURE;
		}
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	int status = EXIT_SUCCESS;

	for (int i = 1; i < argc; i++) {
		struct tape tape;
		int err = tape_load(argv[i], &tape);

		if (err) {
			(void)fprintf(stderr, "damage_tape: %s: %s\n", argv[i], strerror(-err));
			return EXIT_FAILURE;
		}
		if (damage_tape(&tape, argv[i]) != EXIT_SUCCESS)
			status = EXIT_FAILURE;
		tape_done(&tape);
	}
	return status;
}
