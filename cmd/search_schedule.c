/* SPDX-License-Identifier: MIT */
#include "cmd/search_schedule.h"

#include <errno.h>

/*
 * The first and the longest pause between two looks, and the interval between two searches of a
 * process that seems idle.
 */
enum { FIRST_PAUSE_NS = 1000000, MAX_PAUSE_NS = 50000000, IDLE_PAUSE_NS = 500000000 };

/* A pause lasts this many times as long as the look before it took. */
enum { PAUSE_PER_LOOK = 19 };

void search_schedule_init(struct search_schedule *schedule, uint64_t now_ns, uint64_t wait_ns)
{
	*schedule = (struct search_schedule){
		.start_ns = now_ns,
		.end_ns = now_ns + wait_ns,
		.pause_ns = FIRST_PAUSE_NS,
	};
}

bool search_schedule_is_due(const struct search_schedule *schedule, bool unchanged, uint64_t now_ns)
{
	if (!unchanged || now_ns >= schedule->end_ns)
		return true;
	switch (schedule->err) {
	case -ENOENT:
		return false;
	case -EAGAIN:
		return now_ns - schedule->start_ns < IDLE_PAUSE_NS ||
		       now_ns - schedule->searched_ns >= IDLE_PAUSE_NS;
	default:
		return true;
	}
}

void search_schedule_record(struct search_schedule *schedule, int err, uint64_t now_ns)
{
	schedule->err = err;
	schedule->searched_ns = now_ns;
}

uint64_t search_schedule_pause_ns(struct search_schedule *schedule, uint64_t now_ns,
				  uint64_t look_ns)
{
	uint64_t left_ns = schedule->end_ns > now_ns ? schedule->end_ns - now_ns : 0;
	uint64_t pause_ns = schedule->pause_ns;

	/* A process that is just starting must be noticed soon. */
	if (now_ns - schedule->start_ns < IDLE_PAUSE_NS)
		look_ns = 0;
	if (look_ns > IDLE_PAUSE_NS / PAUSE_PER_LOOK)
		pause_ns = IDLE_PAUSE_NS;
	else if (look_ns * PAUSE_PER_LOOK > pause_ns)
		pause_ns = look_ns * PAUSE_PER_LOOK;
	schedule->pause_ns *= 2;
	if (schedule->pause_ns > MAX_PAUSE_NS)
		schedule->pause_ns = MAX_PAUSE_NS;
	return pause_ns < left_ns ? pause_ns : left_ns;
}
