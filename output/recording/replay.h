/* SPDX-License-Identifier: MIT */
/* Replays a recording into a profile, through a filter. */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "output/profile/profile.h"
#include "output/profile/thread_filter.h"
#include "output/recording/recording.h"

/* All zero, everything passes. References are borrowed. */
struct replay_filter {
	/* [from, to) since the recording's start; a negative time counts from its last sample. */
	int64_t from_ns;
	int64_t to_ns;		      /* 0: the end */
	struct thread_filter threads; /* of the last name that a thread had */
	pid_t pid;		      /* 0: any */
	uint32_t flags_set;	      /* enum sample_flags that a sample must have */
	uint32_t flags_clear;	      /* flags that it must not have */
	/* Some frame's label (label.h, LABEL_DISPLAY) must match; NULL: any. */
	const regex_t *include;
	const regex_t *exclude; /* no frame's label may match; or NULL */
};

/*
 * Add a recording's samples to one side of a profile, with its processes and threads. May be
 * called for several recordings. Equal functions are merged. Threads are merged if process, tid,
 * interpreter and last name are equal and the profile has rows of threads; on PROFILE_BASE, which
 * usually has other processes, an equal name is enough. Samples that do not pass are left out
 * completely, even from the accounts.
 *
 * Reads the recording twice. Uses 20 bytes for each of its nodes, 170 bytes for each thread, and
 * copies of its functions; with by_thread also 50 bytes for each node that the profile may have.
 *
 * Returns 0; -ENOMEM; -ESTALE if the file changed in between; the file's error.
 */
int replay(struct recording *recording, const struct replay_filter *filter, struct profile *profile,
	   enum profile_side side);
