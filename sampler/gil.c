/* SPDX-License-Identifier: MIT */
#include "sampler/gil.h"

struct gil gil_decode(const struct gil_place *place, const uint8_t *words)
{
	const uint8_t *const holder = words + place->holder_offset;
	struct gil gil = {.last_holder_addr = field_u64(holder, 0)};

	if (place->holder_offset && field_i32(words, 0) != GIL_ON_FOR_GOOD)
		return (struct gil){.known = false};
	gil.known = gil.last_holder_addr != 0;
	gil.held = gil.known;
	if (place->locked_offset) {
		gil.held = field_i32(holder, place->locked_offset) == 1;
		gil.is_counted = true;
		gil.nr_switches = field_u64(holder, GIL_SWITCHES_OFFSET);
	}
	return gil;
}
