/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/frames/await_chain.h"

#include <errno.h>

#include "sampler/cpython/base/circle.h"
#include "sampler/cpython/frames/frames.h"

/* Room for a generator object up to its frame's locals: 152 bytes in 3.15. */
enum { GENERATOR_MAX_BYTES = 512 };

/* Awaiters that drive each other: anext(numbers, None) drives what numbers.asend() gives. */
enum { MAX_AWAITERS_IN_A_ROW = 4 };

struct chain {
	struct frame_walk walk;
	struct remote_memory *memory;
	struct type_cache *types;
	struct circle circle;
};

/* The type of an object, and the word behind it, in front of which nothing is of use. */
struct object_head {
	uint64_t type_addr;
	uint64_t first_field;
};

/* What the frame of a generator at frame_addr awaits: the reference on its stack. 0: nothing. */
static int read_awaited(struct chain *chain, remote_addr frame_addr,
			const struct frame_words *words, remote_addr *ret_addr)
{
	const struct py_build *build = chain->walk.build;
	const uint64_t depth_bytes = build->traits.generator_states.awaited_words * 8ull;
	const remote_addr stack_addr = frame_addr + build->offsets.frame.localsplus;
	uint64_t reference;
	int err;

	if (words->stackpointer < stack_addr + depth_bytes ||
	    words->stackpointer - frame_addr > STRUCT_MAX_BYTES)
		return -EBADMSG;
	err = remote_memory_read_u64(chain->memory, words->stackpointer - depth_bytes, &reference);
	if (!err)
		*ret_addr = reference & ~(uint64_t)OBJECT_TAG_MASK;
	return err;
}

/* Take the frame of a generator at addr, and what it awaits. */
static int take_generator(struct chain *chain, remote_addr addr, remote_addr *ret_next)
{
	const struct py_build *build = chain->walk.build;
	const struct generator_states *states = &build->traits.generator_states;
	const uint32_t iframe = build->offsets.generator.iframe;
	const uint32_t frame_state = build->offsets.generator.frame_state;
	const size_t bytes = iframe + frame_head_bytes(&build->offsets);
	uint8_t generator[GENERATOR_MAX_BYTES];
	struct frame_words words;
	int8_t state;
	int err;

	if (bytes > sizeof(generator) || frame_state >= bytes)
		return -EBADMSG;
	err = remote_memory_read(chain->memory, addr, generator, bytes);
	if (err)
		return err;
	state = (int8_t)field_u8(generator, frame_state);
	if (state >= states->first_finished)
		return 0;
	words = frame_words(&build->offsets, generator + iframe);
	if (words.owner != OWNED_BY_GENERATOR)
		return -EBADMSG;
	err = walk_frame(&chain->walk, addr + iframe, &words);
	if (err)
		return err == -ENOENT ? -EBADMSG : err;
	if (state < states->first_awaiting || state > states->last_awaiting)
		return 0;
	return read_awaited(chain, addr + iframe, &words, ret_next);
}

/* The type of an object, and its head. */
static int read_type(struct chain *chain, remote_addr addr, struct object_head *ret_head,
		     struct value_type *ret_type)
{
	const struct py_offsets *offsets = &chain->walk.build->offsets;
	int err = remote_memory_read(chain->memory, addr + offsets->object.ob_type, ret_head,
				     sizeof(*ret_head));

	return err ? err
		   : type_cache_get(chain->types, chain->memory, offsets, ret_head->type_addr,
				    ret_type);
}

/* Whether it may be the type of awaiters for all that can be read of it. */
static bool may_drive(const struct value_type *type)
{
	return type->kind == VALUE_OBJECT && !type->has_name;
}

/* Whether an object that may be an awaiter is one: what it drives in the end has a frame. */
static bool is_awaiter(struct chain *chain, const struct object_head *head)
{
	struct object_head driven = *head;
	struct value_type type = {.kind = VALUE_OBJECT};

	for (int i = 0; i < MAX_AWAITERS_IN_A_ROW && may_drive(&type); i++)
		if (read_type(chain, driven.first_field, &driven, &type))
			return false;
	return type.kind == VALUE_GENERATOR;
}

/* One step along the chain: *ret_next is 0 at its end. */
static int chain_step(struct chain *chain, remote_addr addr, remote_addr *ret_next)
{
	struct object_head head;
	struct value_type type;
	int err;

	*ret_next = 0;
	if (circle_closes(&chain->circle, addr) || chain->circle.nr > AWAIT_CHAIN_MAX)
		return -E2BIG;
	err = read_type(chain, addr, &head, &type);
	if (err)
		return err;
	if (type.kind == VALUE_AWAITER || (may_drive(&type) && is_awaiter(chain, &head)))
		*ret_next = head.first_field;
	return type.kind == VALUE_GENERATOR ? take_generator(chain, addr, ret_next) : 0;
}

int await_chain_walk(struct code_cache *codes, struct remote_memory *memory,
		     struct type_cache *types, const struct code_clock *clock,
		     remote_addr coro_addr, struct frame_list *list)
{
	struct chain chain = {
		.walk = {.build = codes->build, .codes = codes, .clock = clock, .list = list},
		.memory = memory,
		.types = types,
	};
	remote_addr addr = coro_addr;
	int err = 0;

	frame_list_begin(list, 0);
	while (!err && addr)
		err = chain_step(&chain, addr, &addr);
	return err;
}
