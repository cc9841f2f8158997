/* SPDX-License-Identifier: MIT */
#include "sampler/gil.h"

struct gil gil_decode(const uint8_t words[GIL_BYTES], uint32_t locked_offset)
{
	struct gil gil = {
		.held = field_i32(words, locked_offset) == 1,
		.is_counted = true,
		.last_holder_addr = field_u64(words, 0),
		.nr_switches = field_u64(words, GIL_SWITCHES_OFFSET),
	};

	gil.known = gil.last_holder_addr != 0;
	return gil;
}

struct gil gil_of_current(remote_addr current_thread_addr)
{
	return (struct gil){
		.known = current_thread_addr != 0,
		.held = current_thread_addr != 0,
		.last_holder_addr = current_thread_addr,
	};
}
