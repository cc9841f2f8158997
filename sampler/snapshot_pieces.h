/* SPDX-License-Identifier: MIT */
/*
 * The pieces of a tick's read that are one thread's: which they are, in the order in which
 * they are copied, and what came of them. For the files that make up a snapshot.
 */
#pragma once

#include "sampler/snapshot.h"

static inline bool range_complete(const struct remote_range *range)
{
	return range->done_bytes == range->size;
}

/* Add a piece to the next read, for which reserve_ranges() has made room. */
static inline void snapshot_add_range(struct snapshot *snapshot, remote_addr addr, void *buffer,
				      size_t size)
{
	snapshot->ranges[snapshot->nr_ranges++] =
		(struct remote_range){.addr = addr, .buffer = buffer, .size = size};
}

/* How many pieces a thread has at most. */
size_t snapshot_max_pieces(const struct snapshot_thread *thread);

/* Add the pieces of a thread: 0 or -ENOMEM. */
int snapshot_add_thread(struct snapshot *snapshot, struct snapshot_thread *thread);

/*
 * Decode what was read of a thread. *range is the first of its pieces, and becomes the one
 * behind them. A thread whose state could not be read, or is another one's by now, has
 * copied == false, and the snapshot is stale.
 */
void snapshot_decode_thread(struct snapshot *snapshot, struct snapshot_thread *thread,
			    const struct remote_range **range);
