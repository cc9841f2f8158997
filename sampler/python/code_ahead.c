/* SPDX-License-Identifier: MIT */
#include "sampler/python/code_ahead.h"

#include <string.h>

/* So far into a range that was read does a wanted one begin; more than it has: not there. */
static uint64_t offset_in(const struct ahead_range *range, const struct remote_range *wanted)
{
	const uint64_t offset = wanted->addr - range->addr;

	return offset <= range->done_bytes ? offset : UINT64_MAX;
}

/* Take a range out of what was read, as far as it could be read. Whether it is there. */
static bool take(const struct code_ahead *ahead, struct remote_range *wanted)
{
	for (size_t i = 0; i < ahead->nr_ranges; i++) {
		const struct ahead_range *range = &ahead->ranges[i];
		const uint64_t offset = offset_in(range, wanted);

		if (offset == UINT64_MAX || wanted->size > range->size - offset)
			continue;
		wanted->done_bytes = range->done_bytes - offset;
		if (wanted->done_bytes > wanted->size)
			wanted->done_bytes = wanted->size;
		memcpy(wanted->buffer, (const uint8_t *)range->bytes + offset, wanted->done_bytes);
		return true;
	}
	return false;
}

/* A text's hash, behind its length, may have been computed since. */
static bool is_hash(uint64_t offset)
{
	return offset / sizeof(uint64_t) == 1;
}

/* Whether what was read goes on behind something that was told, and begins as that does. */
static bool goes_on(const struct code_ahead *ahead, const struct remote_range *read)
{
	bool is_begun = false;

	for (size_t i = 0; i < ahead->nr_ranges; i++) {
		const struct ahead_range *range = &ahead->ranges[i];
		const uint64_t offset = offset_in(range, read);
		const uint8_t *told = range->bytes;
		const uint8_t *bytes = read->buffer;

		if (offset == UINT64_MAX)
			continue;
		for (uint64_t k = offset; k < range->done_bytes && k - offset < read->done_bytes;
		     k++)
			if (!is_hash(k) && told[k] != bytes[k - offset])
				return false;
		is_begun |= offset < range->done_bytes;
	}
	return is_begun;
}

/* Read from inner what goes on behind what was told. */
static int read_behind(struct code_ahead *ahead, struct remote_range *ranges, size_t nr_ranges)
{
	int err = remote_memory_read_ranges(ahead->inner, ranges, nr_ranges);

	for (size_t i = 0; !err && i < nr_ranges; i++)
		if (!goes_on(ahead, &ranges[i]))
			ranges[i].done_bytes = 0;
	return err;
}

static int ahead_read_ranges(struct remote_memory *memory, struct remote_range *ranges,
			     size_t nr_ranges)
{
	struct code_ahead *ahead = (struct code_ahead *)memory;
	size_t nr_taken = 0;

	while (nr_taken < nr_ranges && take(ahead, &ranges[nr_taken]))
		nr_taken++;
	if (nr_taken == nr_ranges)
		return 0;
	if (ahead->is_told)
		return read_behind(ahead, ranges, nr_ranges);
	ahead->nr_ranges = 0;
	return remote_memory_read_ranges(ahead->inner, ranges, nr_ranges);
}

static int ahead_check(struct remote_memory *memory)
{
	return remote_memory_check(((struct code_ahead *)memory)->inner);
}

static const struct remote_memory_ops ahead_ops = {
	.read_ranges = ahead_read_ranges,
	.check = ahead_check,
};

static void begin(struct code_ahead *ahead, struct remote_memory *inner, bool is_told)
{
	ahead->memory.ops = &ahead_ops;
	ahead->inner = inner;
	ahead->is_told = is_told;
	ahead->nr_ranges = 0;
}

int code_ahead_init(struct code_ahead *ahead, struct remote_memory *inner,
		    const struct py_offsets *offsets, remote_addr object_addr,
		    const struct code_fingerprint *fingerprint)
{
	struct remote_range ranges[NR_AHEAD_RANGES] = {
		{.addr = fingerprint->qualname + offsets->unicode.length,
		 .buffer = ahead->name,
		 .size = sizeof(ahead->name)},
		{.addr = fingerprint->filename + offsets->unicode.length,
		 .buffer = ahead->path,
		 .size = sizeof(ahead->path)},
		{.addr = fingerprint->linetable + offsets->bytes.ob_size,
		 .buffer = ahead->linetable,
		 .size = sizeof(ahead->linetable)},
		{.addr = object_addr, .buffer = ahead->object, .size = code_head_bytes(offsets)},
	};
	size_t nr_ranges = 4;
	int err;

	/* The object is the last one. */
	if (fingerprint->bytecode) {
		ranges[nr_ranges] = ranges[nr_ranges - 1];
		ranges[nr_ranges - 1] = (struct remote_range){
			.addr = fingerprint->bytecode + offsets->bytes.ob_size,
			.buffer = &ahead->bytecode_length,
			.size = sizeof(ahead->bytecode_length),
		};
		nr_ranges++;
	}
	begin(ahead, inner, false);
	err = remote_memory_read_ranges(inner, ranges, nr_ranges);
	for (size_t i = 0; !err && i < nr_ranges; i++)
		ahead->ranges[ahead->nr_ranges++] = (struct ahead_range){
			.addr = ranges[i].addr,
			.bytes = ranges[i].buffer,
			.size = ranges[i].size,
			.done_bytes = ranges[i].done_bytes,
		};
	return err;
}

static void add_told(struct code_ahead *ahead, remote_addr addr, const struct told_text *text)
{
	ahead->ranges[ahead->nr_ranges++] = (struct ahead_range){
		.addr = addr,
		.bytes = text->bytes,
		.size = text->is_whole ? SIZE_MAX : text->nr_bytes,
		.done_bytes = text->nr_bytes,
	};
}

void code_ahead_take(struct code_ahead *ahead, struct remote_memory *inner,
		     const struct py_offsets *offsets, const struct code_fingerprint *fingerprint,
		     const struct told_code *told)
{
	const struct told_text length = {(const uint8_t *)&told->bytecode_length,
					 sizeof(told->bytecode_length), false};
	const struct told_text object = {told->object, code_head_bytes(offsets), false};

	begin(ahead, inner, true);
	add_told(ahead, fingerprint->qualname + offsets->unicode.length, &told->qualname);
	add_told(ahead, fingerprint->filename + offsets->unicode.length, &told->filename);
	add_told(ahead, fingerprint->linetable + offsets->bytes.ob_size, &told->linetable);
	if (fingerprint->bytecode)
		add_told(ahead, fingerprint->bytecode + offsets->bytes.ob_size, &length);
	add_told(ahead, told->addr, &object);
}
