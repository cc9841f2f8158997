/* SPDX-License-Identifier: MIT */
#include "sampler/python/chunk_order.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

enum { MAX_TEST_CHUNKS = 600, HEADER_WORDS = 4 };

/* Chunks, of which only the headers are copied. Each lies at its number in thousands. */
struct chain {
	struct py_offsets offsets;
	struct chunk_copy chunks[MAX_TEST_CHUNKS];
	uint64_t headers[MAX_TEST_CHUNKS][HEADER_WORDS];
	struct stack_copy stack;
};

static void chain_init(struct chain *chain)
{
	*chain = (struct chain){.stack.chunks = chain->chunks};
	chain->offsets.chunk.data = sizeof(chain->headers[0]);
	chain->offsets.chunk.previous = sizeof(uint64_t);
}

/* Add the chunk of a number; previous is the number of the one below it. */
static void chain_add(struct chain *chain, uint64_t number, uint64_t previous)
{
	size_t i = chain->stack.nr_chunks++;

	chain->headers[i][1] = previous * 1000;
	chain->chunks[i] = (struct chunk_copy){
		.addr = number * 1000,
		.bytes = (uint8_t *)chain->headers[i],
		.done_bytes = sizeof(chain->headers[i]),
	};
}

static uint64_t number_at(const struct chain *chain, size_t i)
{
	return chain->chunks[i].addr / 1000;
}

/* A recursion that went up again has taken all chunks but the oldest the other way round. */
Test(chunk_order, all_chunks_the_other_way_round)
{
	enum { NR = 300 };
	static struct chain chain;

	chain_init(&chain);
	chain_add(&chain, 1, 0);
	for (uint64_t i = 2; i <= NR; i++)
		chain_add(&chain, i, i < NR ? i + 1 : 1);
	chunk_order_renew(&chain.stack, &chain.offsets);
	cr_expect(eq(u64, number_at(&chain, 0), 1));
	for (size_t i = 1; i < NR; i++)
		cr_expect(eq(u64, number_at(&chain, i), NR + 1 - i), "%zu", i);
}

/* One is taken from far above; those between keep their order. */
Test(chunk_order, a_far_one_is_moved_before_the_others)
{
	static const uint64_t expected[] = {1, 9, 2, 3, 4, 5, 6, 7, 8};
	static struct chain chain;

	chain_init(&chain);
	chain_add(&chain, 1, 0);
	chain_add(&chain, 2, 9);
	for (uint64_t i = 3; i < 9; i++)
		chain_add(&chain, i, 0);
	chain_add(&chain, 9, 1);
	chunk_order_renew(&chain.stack, &chain.offsets);
	for (size_t i = 0; i < chain.stack.nr_chunks; i++)
		cr_expect(eq(u64, number_at(&chain, i), expected[i]), "%zu", i);
}

/* What was not copied names nobody, and what lies below first_chunk stays where it is. */
Test(chunk_order, what_was_not_copied_keeps_its_place)
{
	static struct chain chain;

	for (size_t first = 0; first < 2; first++) {
		chain_init(&chain);
		chain.stack.first_chunk = first;
		for (uint64_t i = 1; i < 4; i++)
			chain_add(&chain, i, i == 3 ? 1 : 0);
		if (!first)
			chain.chunks[2].done_bytes = 0;
		chunk_order_renew(&chain.stack, &chain.offsets);
		for (size_t i = 0; i < 3; i++)
			cr_expect(eq(u64, number_at(&chain, i), i + 1), "%zu %zu", first, i);
	}
}

/* A chain that a hostile target has made so that each is looked for among all others. */
Test(chunk_order, steps_are_bounded)
{
	static struct chain chain;
	size_t nr_placed = 0;

	chain_init(&chain);
	chain_add(&chain, 1, 0);
	for (uint64_t i = 2; i <= MAX_TEST_CHUNKS; i++)
		chain_add(&chain, i, i < MAX_TEST_CHUNKS ? i + 1 : 1);
	chunk_order_renew(&chain.stack, &chain.offsets);
	while (nr_placed + 1 < MAX_TEST_CHUNKS &&
	       number_at(&chain, nr_placed + 1) == MAX_TEST_CHUNKS - nr_placed)
		nr_placed++;
	cr_expect(lt(sz, 100, nr_placed));
	cr_expect(lt(sz, nr_placed, 200));
}
