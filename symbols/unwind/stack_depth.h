/* SPDX-License-Identifier: MIT */
/*
 * Determines how much stack a function uses at one of its instructions, by following what the
 * instructions that lead there, from its first one on, do to the stack pointer.
 *
 * Call frame information does not say: for a function with a frame pointer it counts from that
 * alone and leaves out pushed arguments and registers saved by moves into space reserved before.
 *
 * Source: the System V ABI for AMD64, §3.2.2. Zydis decodes the instructions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer code is not examined; CPython's evaluation loop has 50 KiB. */
#define STACK_DEPTH_MAX_BYTES (256u << 10)

/* The depth at a function's first instruction: the call has pushed the return address. */
#define STACK_DEPTH_AT_ENTRY 8

/* Larger frames are rejected: stacks have 8 MiB. */
#define STACK_DEPTH_MAX (16 << 20)

/* The code of one function, or more code that has the function somewhere in it. */
struct stack_depth_code {
	const uint8_t *bytes; /* borrowed */
	size_t nr_bytes;      /* at most STACK_DEPTH_MAX_BYTES */
	size_t entry_offset;  /* of its first instruction */
	uint32_t max_steps;   /* limit on instructions that are followed; 0: none */
	/* CFA - frame pointer once that is set; 0 if the function has no frame pointer. */
	int32_t frame_pointer_bytes;
};

/*
 * Determine the CFA minus the stack pointer before the instruction at offset executes or, if
 * is_call, during the call that ends at offset. All paths that lead there must agree.
 *
 * Returns 0; -ENOENT if no path that can be followed leads there (a stack allocation of variable
 * size ends a path); -EBADMSG if paths disagree; -E2BIG beyond max_steps; -ENOMEM. Always -ENOENT
 * on machines other than x86-64.
 */
int stack_depth_find(const struct stack_depth_code *code, size_t offset, bool is_call,
		     uint32_t *ret_depth_bytes);
