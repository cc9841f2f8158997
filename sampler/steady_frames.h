/* SPDX-License-Identifier: MIT */
/*
 * Which outer frames of a thread stay where they are from look to look. Of a program that calls and
 * returns every microsecond what a look finds is not what a copy of a moment before had; but what
 * each of the last looks has found was there in between.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/python/frame_list.h"

/*
 * A frame is steady when so many looks have found it, and all frames around it. One that takes turns
 * with another in the same place, each half of the time, is found so often by one chance in 65536.
 */
enum { STEADY_FRAMES_LOOKS = 16 };

/* Of one thread. All zero there was no look. */
struct steady_frames {
	pid_t tid; /* of the thread that was looked at */
	struct steady_frame {
		remote_addr addr;
		remote_addr previous;
		uint64_t executable;
		uint32_t nr_looks; /* that found it in a row; at most STEADY_FRAMES_LOOKS */
	} * frames;		   /* outermost first; owned */
	uint32_t nr_frames, max_frames;
};

/* Free what it holds; it is all zero then. Accepts NULL. */
void steady_frames_done(struct steady_frames *steady);

/* Note what a look has found of the thread. 0 or -ENOMEM. */
int steady_frames_look(struct steady_frames *steady, pid_t tid, const struct frame_list *list);

/* Whether the frame at index of the list that was noted last is steady. */
bool steady_frames_has(const struct steady_frames *steady, uint32_t index);
