/* SPDX-License-Identifier: MIT */
/* Replays a recording into a profile, through a filter. */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "output/profile/name_filter.h"
#include "output/profile/profile.h"
#include "output/recording/recording.h"

/* All zero, everything passes. References are borrowed. */
struct replay_filter {
	/* [from, to) since the recording's start; a negative time counts from its last sample. */
	int64_t from_ns;
	int64_t to_ns;		      /* 0: the end */
	struct name_filter threads;   /* of the last name that a thread had */
	struct name_filter processes; /* of process_name(); a thread without one passes none */
	uint32_t flags_set;	      /* enum sample_flags that a sample must have */
	uint32_t flags_clear;	      /* flags that it must not have */
	/* Some frame's label (label.h, LABEL_DISPLAY) must match; NULL: any. */
	const regex_t *include;
	const regex_t *exclude; /* no frame's label may match; or NULL */
};

/*
 * Add a recording's samples to one side of a profile, with its processes and threads. May be
 * called for several recordings. Equal functions are merged, and processes that are the same
 * (process_is_same()). Threads are merged if process, tid, interpreter and last name are equal and the profile
 * has rows of threads; on PROFILE_BASE, which usually has other processes, an equal name is
 * enough, with by_process in a process of an equal name. Samples that do not pass are left out
 * completely, even from the accounts.
 *
 * Reads the recording twice. Uses 20 bytes for each of its nodes, 170 bytes for each thread, and
 * copies of its functions; with by_thread or by_process also 50 bytes for each node that the
 * profile may have.
 *
 * Returns 0; -ENOMEM; -ESTALE if the file changed in between; the file's error.
 */
int replay(struct recording *recording, const struct replay_filter *filter, struct profile *profile,
	   enum profile_side side);

/*
 * Find whether samples of several processes of one recording pass the filter, in a profile with
 * these options. Errors of replay().
 */
int replay_has_several_processes(struct recording *recording, const struct replay_filter *filter,
				 const struct profile_options *options, bool *ret_are_several);
