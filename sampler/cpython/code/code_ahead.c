/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/code/code_ahead.h"

#include <string.h>

/* So far into a range that was read does a wanted one begin; more than it has: not there. */
static uint64_t offset_in(const struct remote_range *range, const struct remote_range *wanted)
{
	const uint64_t offset = wanted->addr - range->addr;

	return offset <= range->done_bytes ? offset : UINT64_MAX;
}

/* Take a range out of what was read, as far as it could be read. Whether it is there. */
static bool take(const struct code_ahead *ahead, struct remote_range *wanted)
{
	for (size_t i = 0; i < ahead->nr_ranges; i++) {
		const struct remote_range *range = &ahead->ranges[i];
		const uint64_t offset = offset_in(range, wanted);

		if (offset == UINT64_MAX || wanted->size > range->size - offset)
			continue;
		wanted->done_bytes = range->done_bytes - offset;
		if (wanted->done_bytes > wanted->size)
			wanted->done_bytes = wanted->size;
		memcpy(wanted->buffer, (const uint8_t *)range->buffer + offset, wanted->done_bytes);
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
		const struct remote_range *range = &ahead->ranges[i];
		const uint64_t offset = offset_in(range, read);
		const uint8_t *told = range->buffer;
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

/* Have size bytes of an object in buffer, or wanted there. */
static void add(struct code_ahead *ahead, remote_addr addr, void *buffer, size_t size)
{
	ahead->ranges[ahead->nr_ranges++] =
		(struct remote_range){.addr = addr, .buffer = buffer, .size = size};
}

int code_ahead_init(struct code_ahead *ahead, struct remote_memory *inner,
		    const struct py_offsets *offsets, remote_addr object_addr,
		    const struct code_fingerprint *fingerprint)
{
	begin(ahead, inner, false);
	add(ahead, fingerprint->qualname + offsets->unicode.length, ahead->name,
	    sizeof(ahead->name));
	add(ahead, fingerprint->filename + offsets->unicode.length, ahead->path,
	    sizeof(ahead->path));
	add(ahead, fingerprint->linetable + offsets->bytes.ob_size, ahead->linetable,
	    sizeof(ahead->linetable));
	if (fingerprint->bytecode)
		add(ahead, fingerprint->bytecode + offsets->bytes.ob_size, &ahead->bytecode_length,
		    sizeof(ahead->bytecode_length));
	add(ahead, object_addr, ahead->object, code_head_bytes(offsets));
	return remote_memory_read_ranges(inner, ahead->ranges, ahead->nr_ranges);
}

/* Have what was told of an object, which is read and no more. */
static void add_told(struct code_ahead *ahead, remote_addr addr, const void *bytes, size_t nr_bytes,
		     bool is_whole)
{
	add(ahead, addr, (void *)bytes, is_whole ? SIZE_MAX : nr_bytes);
	ahead->ranges[ahead->nr_ranges - 1].done_bytes = nr_bytes;
}

void code_ahead_take(struct code_ahead *ahead, struct remote_memory *inner,
		     const struct py_offsets *offsets, const struct code_fingerprint *fingerprint,
		     const struct told_code *told)
{
	begin(ahead, inner, true);
	add_told(ahead, fingerprint->qualname + offsets->unicode.length, told->qualname.bytes,
		 told->qualname.nr_bytes, told->qualname.is_whole);
	add_told(ahead, fingerprint->filename + offsets->unicode.length, told->filename.bytes,
		 told->filename.nr_bytes, told->filename.is_whole);
	add_told(ahead, fingerprint->linetable + offsets->bytes.ob_size, told->linetable.bytes,
		 told->linetable.nr_bytes, told->linetable.is_whole);
	if (fingerprint->bytecode)
		add_told(ahead, fingerprint->bytecode + offsets->bytes.ob_size,
			 &told->bytecode_length, sizeof(told->bytecode_length), false);
	add_told(ahead, told->addr, told->object, code_head_bytes(offsets), false);
}
