/* SPDX-License-Identifier: MIT */
/*
 * Which threads a tick need not copy. Frames change only under the GIL, and the GIL's own
 * words, which every tick reads anyway, tell that a thread has not had it (gil.h). Such a
 * thread is where it was: of a thousand threads that wait and one that works one is copied.
 * That is a proof, not a guess by content or time.
 *
 * Threads that run now and then stay in the read, so that they are copied at the tick's
 * instant and not behind it. One more thread is copied at each tick, in turn, to see whether
 * the proof holds: a program may have thread states run without the GIL's knowing
 * (PyThreadState_Swap(), before 3.13).
 */
#pragma once

#include <stdbool.h>

#include "sampler/snapshot.h"

/* At the beginning of a tick: which threads are due, and which are unchanged else. */
void dormancy_choose(struct snapshot *snapshot);

/*
 * The thread that is the only one to be copied until the GIL moves; NULL if there are more,
 * or the GIL does not tell.
 */
struct snapshot_thread *dormancy_lone(const struct snapshot *snapshot);

/* Behind every read: who may have run since the one before stays awake for a time. */
void dormancy_note(struct snapshot *snapshot);

/*
 * Behind the first read of a tick: threads that it did not copy and that may have run are
 * due now. Returns whether there are any.
 */
bool dormancy_follow(struct snapshot *snapshot);

/* The thread has moved, or could not be walked whole: the next ticks copy it. */
void dormancy_wake(const struct snapshot *snapshot, struct snapshot_thread *thread);

/* A thread that was copied to be checked has moved: nothing is taken from the GIL any more. */
void dormancy_distrust(struct snapshot *snapshot);
