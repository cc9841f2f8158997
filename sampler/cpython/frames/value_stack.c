/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/frames/value_stack.h"

#include <errno.h>

#include "procmem/cleanup.h"
#include "sampler/cpython/code/exception_table.h"
#include "sampler/cpython/layout/object_offsets.h"
#include "sampler/cpython/objects/object.h"

/* Limit on an exception table; of a function with 5,000 lines it has 10 kB. */
enum { EXCEPTION_TABLE_MAX_BYTES = 1 << 20 };

/* Read the words at addr: the frame's variables, and the stack above them. */
static int read_words(struct remote_memory *memory, remote_addr addr, struct value_stack *stack)
{
	int err;

	if (stack->nr_words > VALUE_STACK_MAX_WORDS)
		return -E2BIG;
	if (stack->nr_alive > stack->nr_words || stack->nr_variables > stack->nr_words)
		return -EBADMSG;
	err = remote_memory_read(memory, addr, stack->words,
				 stack->nr_words * sizeof(*stack->words));
	for (uint32_t i = 0; !err && i < stack->nr_words; i++)
		stack->words[i] &= ~(uint64_t)OBJECT_TAG_MASK;
	return err;
}

/* 3.11 and newer: the handler of the current instruction. */
static int read_new(struct remote_memory *memory, const struct py_build *build,
		    const struct walked_frame *frame, struct value_stack *stack)
{
	const struct py_offsets *offsets = &build->offsets;
	const struct code_bytecode *bytecode = &frame->code->bytecode;
	uint8_t code[CODE_MAX_BYTES];
	cleanup_free uint8_t *table = NULL;
	size_t table_bytes;
	uint32_t depth = 0;
	uint64_t nr_words;
	int err = remote_memory_read(memory, frame->executable, code, code_head_bytes(offsets));

	if (!err &&
	    (frame->instr_ptr < bytecode->start_addr || frame->instr_ptr >= bytecode->end_addr))
		err = -ENOTSUP;
	if (!err)
		err = bytes_read(
			memory, offsets,
			field_u64(code, offsets->code.flags - CODE_EXCEPTIONTABLE_BEFORE_FLAGS),
			EXCEPTION_TABLE_MAX_BYTES, &table, &table_bytes);
	if (!err)
		err = exception_table_depth(
			table, table_bytes,
			(uint32_t)((frame->instr_ptr - bytecode->start_addr) / 2), &depth);
	if (err && err != -ENOENT)
		return err;
	stack->nr_variables = field_u32(code, offsets->code.nlocalsplus);
	if (offsets->code.framesize != OFFSET_ABSENT)
		nr_words = field_u32(code, offsets->code.framesize) - offsets->frame.localsplus / 8;
	else
		nr_words = (uint64_t)stack->nr_variables + field_u32(code, offsets->code.stacksize);
	if (nr_words > VALUE_STACK_MAX_WORDS || depth > VALUE_STACK_MAX_WORDS ||
	    stack->nr_variables > VALUE_STACK_MAX_WORDS)
		return -E2BIG;
	stack->nr_words = (uint32_t)nr_words;
	stack->nr_alive = stack->nr_variables + depth;
	return read_words(memory, frame->addr + offsets->frame.localsplus, stack);
}

/* Before 3.11: the innermost of the frame's blocks. */
static int read_old(struct remote_memory *memory, const struct py_build *build,
		    const struct walked_frame *frame, struct value_stack *stack)
{
	const struct py_offsets *offsets = &build->offsets;
	const remote_addr locals_addr = frame->addr + offsets->frame.heap_locals;
	const remote_addr size_addr =
		frame->addr + offsets->object.ob_type + sizeof(remote_addr) + SIZE_AFTER_TYPE;
	uint64_t nr_words, stack_addr;
	uint32_t nr_blocks, depth = 0;
	int err = remote_memory_read_u64(memory, size_addr, &nr_words);

	if (!err)
		err = remote_memory_read_u64(memory,
					     frame->addr + offsets->frame.executable +
						     FRAME_VALUESTACK_AFTER_CODE,
					     &stack_addr);
	if (!err)
		err = remote_memory_read(
			memory, frame->addr + offsets->frame.lasti + FRAME_IBLOCK_AFTER_LASTI,
			&nr_blocks, sizeof(nr_blocks));
	if (err)
		return err;
	if (nr_blocks > FRAME_MAX_BLOCKS || stack_addr < locals_addr ||
	    (stack_addr - locals_addr) / 8 > VALUE_STACK_MAX_WORDS)
		return -EBADMSG;
	if (nr_words > VALUE_STACK_MAX_WORDS)
		return -E2BIG;
	if (nr_blocks)
		err = remote_memory_read(
			memory,
			locals_addr - (uint64_t)(FRAME_MAX_BLOCKS - nr_blocks + 1) * BLOCK_BYTES +
				BLOCK_LEVEL,
			&depth, sizeof(depth));
	if (err)
		return err;
	if (depth > VALUE_STACK_MAX_WORDS)
		return -EBADMSG;
	stack->nr_words = (uint32_t)nr_words;
	stack->nr_variables = (uint32_t)((stack_addr - locals_addr) / 8);
	stack->nr_alive = stack->nr_variables + depth;
	return read_words(memory, locals_addr, stack);
}

int value_stack_read(struct remote_memory *memory, const struct py_build *build,
		     const struct walked_frame *frame, struct value_stack *ret_stack)
{
	if (frame->code->is_not_code || !value_types_are_known(&build->offsets))
		return -ENOTSUP;
	return build->traits.frames_on_heap ? read_old(memory, build, frame, ret_stack)
					    : read_new(memory, build, frame, ret_stack);
}
