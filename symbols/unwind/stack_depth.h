/* SPDX-License-Identifier: MIT */
/*
 * How much of the stack a function has taken at one of its instructions: told by what the
 * instructions that lead there, from the function's first one on, do to the stack pointer.
 *
 * Where a function has a frame pointer, call frame information counts from that alone, and says
 * nothing of the stack pointer: pushed arguments, and registers that are saved by moves into
 * room that was made before, are not in it.
 *
 * Source: the System V ABI for AMD64, §3.2.2; instructions are decoded by Zydis.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer functions are not looked at; CPython's evaluation loop has 50 KiB. */
#define STACK_DEPTH_MAX_BYTES (256u << 10)

/* A call has pushed the return address. */
#define STACK_DEPTH_AT_ENTRY 8

/* Frames of more bytes are not believed: stacks have 8 MiB. */
#define STACK_DEPTH_MAX (16 << 20)

/* The code of one function, from its first instruction on. */
struct stack_depth_code {
	const uint8_t *bytes; /* borrowed */
	size_t nr_bytes;      /* at most STACK_DEPTH_MAX_BYTES */
	/* How far its frame pointer is below its CFA once it is set; 0: it has none. */
	int32_t frame_pointer_bytes;
};

/*
 * *ret_depth_bytes, the CFA less the stack pointer, before the instruction at offset is executed;
 * or, if is_call, while the call that ends at offset is. All ways have to tell the same. 0;
 * -ENOENT (no way that is understood leads there, or the function makes room of any size),
 * -EBADMSG (they do not tell the same), -ENOMEM. On machines other than x86-64: -ENOENT.
 */
int stack_depth_find(const struct stack_depth_code *code, size_t offset, bool is_call,
		     uint32_t *ret_depth_bytes);
