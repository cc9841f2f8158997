/* SPDX-License-Identifier: MIT */
#include "cmd/lookout.h"

#include <errno.h>

/*
 * The first and the longest pause between two looks, and the interval between two searches of a
 * process that seems idle.
 */
enum { FIRST_PAUSE_NS = 1000000, MAX_PAUSE_NS = 50000000, IDLE_PAUSE_NS = 500000000 };

/* A pause lasts this many times as long as the look before it took. */
enum { PAUSE_PER_LOOK = 19 };

void lookout_init(struct lookout *lookout, uint64_t now_ns, uint64_t wait_ns)
{
	*lookout = (struct lookout){
		.start_ns = now_ns,
		.end_ns = now_ns + wait_ns,
		.pause_ns = FIRST_PAUSE_NS,
	};
}

bool lookout_must_search(const struct lookout *lookout, bool unchanged, uint64_t now_ns)
{
	if (!unchanged || now_ns >= lookout->end_ns)
		return true;
	switch (lookout->err) {
	case -ENOENT:
		return false;
	case -EAGAIN:
		return now_ns - lookout->start_ns < IDLE_PAUSE_NS ||
		       now_ns - lookout->searched_ns >= IDLE_PAUSE_NS;
	default:
		return true;
	}
}

void lookout_searched(struct lookout *lookout, int err, uint64_t now_ns)
{
	lookout->err = err;
	lookout->searched_ns = now_ns;
}

uint64_t lookout_pause_ns(struct lookout *lookout, uint64_t now_ns, uint64_t look_ns)
{
	uint64_t left_ns = lookout->end_ns > now_ns ? lookout->end_ns - now_ns : 0;
	uint64_t pause_ns = lookout->pause_ns;

	/* A process that is just starting must be noticed soon. */
	if (now_ns - lookout->start_ns < IDLE_PAUSE_NS)
		look_ns = 0;
	if (look_ns > IDLE_PAUSE_NS / PAUSE_PER_LOOK)
		pause_ns = IDLE_PAUSE_NS;
	else if (look_ns * PAUSE_PER_LOOK > pause_ns)
		pause_ns = look_ns * PAUSE_PER_LOOK;
	lookout->pause_ns *= 2;
	if (lookout->pause_ns > MAX_PAUSE_NS)
		lookout->pause_ns = MAX_PAUSE_NS;
	return pause_ns < left_ns ? pause_ns : left_ns;
}
