/* SPDX-License-Identifier: MIT */
/* Plays a recording into a profile, so far as a filter lets it pass. */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "output/profile.h"
#include "output/recording.h"

/* All zero, everything passes. What it refers to is borrowed. */
struct replay_filter {
	uint64_t from_ns, to_ns;    /* [from, to) since the recording's start; to_ns 0: its end */
	const char *const *threads; /* a name or a tid each; any of them */
	uint32_t nr_threads;
	pid_t pid;	      /* 0: any */
	uint32_t flags_set;   /* enum sample_flags that a sample has to have */
	uint32_t flags_clear; /* and that it may not have */
	bool busy;	      /* only samples with Python frames that are not known to be off CPU */
	const regex_t *include; /* a frame's label has to match; NULL: none has to */
	const regex_t *exclude; /* no frame's label may match */
};

/*
 * Add a recording's samples to one side of a profile, with its processes and threads, as
 * often as there are recordings. Equal functions are one; so are threads of one tid, name and
 * process. What does not pass is not in the profile at all, not even in its accounts.
 *
 * 0; -ENOMEM; the file's error.
 */
int replay(struct recording *recording, const struct replay_filter *filter, struct profile *profile,
	   enum profile_side side);
