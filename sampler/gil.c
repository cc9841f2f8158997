/* SPDX-License-Identifier: MIT */
#include "sampler/gil.h"

struct gil gil_decode(const struct gil_place *place, const uint8_t *words)
{
	struct gil gil = {.last_holder_addr = field_u64(words, 0)};

	gil.known = gil.last_holder_addr != 0;
	gil.held = gil.known;
	if (place->locked_offset) {
		gil.held = field_i32(words, place->locked_offset) == 1;
		gil.is_counted = true;
		gil.nr_switches = field_u64(words, GIL_SWITCHES_OFFSET);
	}
	return gil;
}
