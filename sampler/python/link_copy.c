/* SPDX-License-Identifier: MIT */
#include "sampler/python/link_copy.h"

bool link_is_generator(const struct link_copy *link, const struct py_offsets *offsets)
{
	return offsets->frame.owner != OFFSET_ABSENT && link->valid &&
	       field_u8(link->bytes, offsets->frame.owner) == OWNED_BY_GENERATOR;
}

bool link_agrees(const struct link_copy *link, const struct py_offsets *offsets)
{
	return link->again_valid &&
	       field_u64(link->bytes, offsets->frame.executable) ==
		       field_u64(link->again, offsets->frame.executable) &&
	       field_u64(link->bytes, offsets->frame.previous) ==
		       field_u64(link->again, offsets->frame.previous);
}

bool link_seen_running(const struct link_copy *link, const struct py_offsets *offsets)
{
	return field_u64(link->bytes, offsets->frame.previous) ||
	       (link->again_valid && field_u64(link->again, offsets->frame.previous));
}

/* Count a pair of copies, one of which at least shows it running; old ones fade away. */
static void learn_pace(struct link_copy *link, const struct py_offsets *offsets, uint64_t tick)
{
	if (!link->again_valid || !link_seen_running(link, offsets))
		return;
	if (link->nr_pairs == UINT8_MAX) {
		link->nr_pairs /= 2;
		link->nr_differing /= 2;
	}
	link->ran_tick = tick;
	link->nr_pairs++;
	if (!link_agrees(link, offsets))
		link->nr_differing++;
}

bool link_is_fast(const struct link_copy *link)
{
	enum { LEAST_DIFFERING = 3, FAST_IS_ONE_OF = 8 };

	return link->nr_differing >= LEAST_DIFFERING &&
	       link->nr_differing * FAST_IS_ONE_OF > link->nr_pairs;
}

bool link_is_blurred(const struct link_copy *link)
{
	return link->reused && link_is_fast(link);
}

void link_learn(struct link_copy *link, const struct py_offsets *offsets, uint64_t tick)
{
	uint64_t executable = field_u64(link->bytes, offsets->frame.executable);
	remote_addr driver_addr = field_u64(link->bytes, offsets->frame.previous);

	if (!link_is_generator(link, offsets))
		return;
	learn_pace(link, offsets, tick);
	if (!driver_addr && link->again_valid &&
	    field_u64(link->again, offsets->frame.executable) == executable)
		driver_addr = field_u64(link->again, offsets->frame.previous);
	if (executable != link->driven_executable) {
		link->reused = link->reused || link->driven_executable;
		link->driver_addr = 0;
		link->held = false;
	}
	if (driver_addr)
		link->driver_addr = driver_addr;
	link->driven_executable = executable;
}
