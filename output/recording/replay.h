/* SPDX-License-Identifier: MIT */
/* Plays a recording into a profile, so far as a filter lets it pass. */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "output/profile/profile.h"
#include "output/recording/recording.h"

/* All zero, everything passes. What it refers to is borrowed. */
struct replay_filter {
	int64_t from_ns; /* [from, to) since each recording's start; if negative since its last */
	int64_t to_ns;	 /* sample; 0: its end */
	const char *const *threads; /* a name, the last one it had, or a tid each; any of them */
	uint32_t nr_threads;
	pid_t pid;	      /* 0: any */
	uint32_t flags_set;   /* enum sample_flags that a sample has to have */
	uint32_t flags_clear; /* and that it may not have */
	bool busy;	      /* only samples with Python frames that are not known to be off CPU */
	bool idle;	      /* only the others */
	const regex_t *include; /* a frame's label (label.h, LABEL_DISPLAY) has to match; NULL */
	const regex_t *exclude; /* no frame's label may match */
};

/*
 * Add a recording's samples to one side of a profile, with its processes and threads, as
 * often as there are recordings. Equal functions are one; so are threads of one tid, last name
 * and interpreter of a process, if the profile has rows of threads; on PROFILE_BASE, where another
 * process is the rule, those of one name. What does not pass is not in the profile at all, not
 * even in its accounts.
 *
 * Reads the recording twice. Memory beside the profile: 20 bytes for each node of the recording,
 * its functions, its threads, 170 bytes each, and with by_thread 50 bytes for each node that the
 * profile may have.
 *
 * 0; -ENOMEM; -ESTALE, the file has changed meanwhile; the file's error.
 */
int replay(struct recording *recording, const struct replay_filter *filter, struct profile *profile,
	   enum profile_side side);
