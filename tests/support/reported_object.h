/* SPDX-License-Identifier: MIT */
/* A code object of a fake CPython in the form in which the thread that runs it reports it. */
#pragma once

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "sampler/cpython/code/code.h"
#include "sampler/cpython/objects/object.h"
#include "tests/support/fake_python.h"

enum { REPORTED_TEXT_BYTES = 4096 };

struct reported_object {
	struct reported_code reported;
	uint8_t object[CODE_MAX_BYTES];
	uint8_t qualname[REPORTED_TEXT_BYTES], filename[REPORTED_TEXT_BYTES],
		linetable[REPORTED_TEXT_BYTES];
};

/*
 * Read a str or bytes object at addr into bytes. The result has at most max_bytes of its
 * contents.
 */
static inline struct reported_text reported_text_read(const struct fake_python *py,
						      remote_addr addr, bool is_str, uint8_t *bytes,
						      size_t max_bytes)
{
	const struct py_offsets *offsets = &py->build.offsets;
	struct remote_range range = {
		.addr = addr + offsets->unicode.length,
		.buffer = bytes,
		.size = REPORTED_TEXT_BYTES,
	};
	struct remote_memory *memory = (struct remote_memory *)&py->fake.memory;
	size_t nr_bytes;

	cr_assert(zero(int, remote_memory_read_ranges(memory, &range, 1)));
	nr_bytes = is_str ? string_valid_bytes(offsets, bytes, range.done_bytes)
			  : offsets->bytes.ob_sval - offsets->bytes.ob_size + field_u64(bytes, 0);
	return (struct reported_text){
		.bytes = bytes,
		.nr_bytes = nr_bytes < max_bytes ? nr_bytes : max_bytes,
		.is_whole = nr_bytes < max_bytes,
	};
}

/* Describe the code object at addr as it is now, with at most max_bytes of each text. */
static inline void reported_object_read(struct reported_object *ret, const struct fake_python *py,
					remote_addr addr, uint64_t identity, size_t max_bytes)
{
	const struct py_offsets *offsets = &py->build.offsets;
	struct remote_memory *memory = (struct remote_memory *)&py->fake.memory;

	cr_assert(
		zero(int, remote_memory_read(memory, addr, ret->object, code_head_bytes(offsets))));
	ret->reported = (struct reported_code){
		.addr = addr,
		.identity = identity,
		.object = ret->object,
		.texts =
			{
				reported_text_read(py,
						   field_u64(ret->object, offsets->code.qualname),
						   true, ret->qualname, max_bytes),
				reported_text_read(py,
						   field_u64(ret->object, offsets->code.filename),
						   true, ret->filename, max_bytes),
				reported_text_read(py,
						   field_u64(ret->object, offsets->code.linetable),
						   false, ret->linetable, max_bytes),
			},
	};
	if (offsets->code.bytecode != OFFSET_ABSENT)
		cr_assert(zero(
			int, remote_memory_read_u64(memory,
						    field_u64(ret->object, offsets->code.bytecode) +
							    offsets->bytes.ob_size,
						    &ret->reported.bytecode_length)));
}
