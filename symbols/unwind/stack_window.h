/* SPDX-License-Identifier: MIT */
/*
 * The words of one thread's stack, read piece by piece: unwinding asks for words that lie
 * close to one another, by rising address. A piece may also be a copy that somebody else made.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "procmem/memory.h"

/* A piece holds a whole stack, mostly: those of parked threads of Python have 2 to 8 KiB. */
#define STACK_WINDOW_BYTES 16384

struct stack_window {
	remote_addr start; /* of bytes */
	const uint8_t *bytes;
	size_t nr_bytes;
	struct remote_memory *memory; /* borrowed; NULL: there are no words but these */
	uint8_t *buffer;	      /* owned, of STACK_WINDOW_BYTES; NULL if memory is */
};

/*
 * Initialise with a memory, borrowed, of which nothing has been read. 0 or -ENOMEM.
 * stack_window_done() frees what it holds; it accepts NULL and one that is zero.
 */
int stack_window_init(struct stack_window *window, struct remote_memory *memory);
void stack_window_done(struct stack_window *window);

/* Forget what was read: of memory that may have changed. */
static inline void stack_window_forget(struct stack_window *window)
{
	window->nr_bytes = 0;
}

/* Read a word that is not in the piece, with a new piece: as stack_window_u64(). */
int stack_window_u64_slow(struct stack_window *window, remote_addr addr, uint64_t *ret_value);

/* The word at addr, however it is aligned. 0; -EFAULT, -ESRCH, -EPERM. */
static inline int stack_window_u64(struct stack_window *window, remote_addr addr,
				   uint64_t *ret_value)
{
	const uint64_t offset = addr - window->start;

	if (window->nr_bytes < sizeof(*ret_value) || offset > window->nr_bytes - sizeof(*ret_value))
		return stack_window_u64_slow(window, addr, ret_value);
	memcpy(ret_value, window->bytes + offset, sizeof(*ret_value));
	return 0;
}
