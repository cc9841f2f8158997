/* SPDX-License-Identifier: MIT */
/*
 * A window on one thread's stack. Unwinding reads words close to each other, by rising address,
 * so the stack is read in large pieces. A window may also hold a copy that another caller made.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "procmem/memory.h"

/* Usually holds a whole stack: those of parked Python threads have 2 to 8 KiB. */
#define STACK_WINDOW_BYTES 16384

struct stack_window {
	remote_addr start; /* of bytes */
	const uint8_t *bytes;
	size_t nr_bytes;
	struct remote_memory *memory; /* borrowed; NULL: only these bytes can be read */
	uint8_t *buffer;	      /* owned, STACK_WINDOW_BYTES long; NULL if memory is */
};

/*
 * Initialise for a memory, which is borrowed. Nothing is read yet. Returns 0 or -ENOMEM.
 * stack_window_done() frees what the window holds; it accepts NULL and an all-zero window.
 */
int stack_window_init(struct stack_window *window, struct remote_memory *memory);
void stack_window_done(struct stack_window *window);

/* Discard the bytes read so far: the memory may have changed. */
static inline void stack_window_forget(struct stack_window *window)
{
	window->nr_bytes = 0;
}

/* Read a new piece that starts with the word at addr. As stack_window_u64(). */
int stack_window_u64_slow(struct stack_window *window, remote_addr addr, uint64_t *ret_value);

/* Read the word at addr, of any alignment. Returns 0, -EFAULT, -ESRCH or -EPERM. */
static inline int stack_window_u64(struct stack_window *window, remote_addr addr,
				   uint64_t *ret_value)
{
	const uint64_t offset = addr - window->start;

	if (window->nr_bytes < sizeof(*ret_value) || offset > window->nr_bytes - sizeof(*ret_value))
		return stack_window_u64_slow(window, addr, ret_value);
	memcpy(ret_value, window->bytes + offset, sizeof(*ret_value));
	return 0;
}
