/* SPDX-License-Identifier: MIT */
#include "symbols/unwind/stack_window.h"

#include <errno.h>
#include <stdlib.h>

int stack_window_init(struct stack_window *window, struct remote_memory *memory)
{
	uint8_t *buffer = malloc(STACK_WINDOW_BYTES);

	if (!buffer)
		return -ENOMEM;
	*window = (struct stack_window){.bytes = buffer, .memory = memory, .buffer = buffer};
	return 0;
}

void stack_window_done(struct stack_window *window)
{
	if (!window)
		return;
	free(window->buffer);
	*window = (struct stack_window){0};
}

int stack_window_u64_slow(struct stack_window *window, remote_addr addr, uint64_t *ret_value)
{
	struct remote_range range = {
		.addr = addr, .buffer = window->buffer, .size = STACK_WINDOW_BYTES};
	int err;

	if (!window->memory)
		return -EFAULT;
	if (addr > UINT64_MAX - STACK_WINDOW_BYTES)
		return -EFAULT;
	window->nr_bytes = 0;
	err = remote_memory_read_ranges(window->memory, &range, 1);
	if (err)
		return err;
	window->start = addr;
	window->nr_bytes = range.done_bytes;
	if (range.done_bytes < sizeof(*ret_value))
		return -EFAULT;
	memcpy(ret_value, window->buffer, sizeof(*ret_value));
	return 0;
}
