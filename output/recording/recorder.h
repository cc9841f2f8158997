/* SPDX-License-Identifier: MIT */
/*
 * Writes a recording (docs/formats.md): a sample sink that keeps every sample. The file can be
 * read up to its last flush, whatever happens to the writer. While ticks come, it flushes at
 * least once a second.
 *
 * Memory is bounded: when the tables are full, the recorder starts new ones and records a reset.
 * Threads are never forgotten, so a recording is full at RECORDING_MAX_THREADS of them.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "output/profile/processes.h"
#include "output/run/run.h"
#include "sampler/sample.h"

struct recorder; /* a struct sample_sink */

/*
 * Begin a recording in fd, which is borrowed and written from its current position. run is what
 * is known of the run so far; it is not kept. Returns 0; -ENOMEM; the error of the write.
 * recorder_destroy() accepts NULL and writes nothing.
 */
int recorder_create(int fd, const struct run *run, struct recorder **ret_recorder);
void recorder_destroy(struct recorder *recorder);

/*
 * Returns the sink for samplers that share their ids (sampler/sample_ids.h), borrowed from
 * recorder. Its calls return 0; -ENOMEM; the
 * error of a write as negative errno, and what was flushed before can be read; -E2BIG if there is
 * no room for another thread, and the recording can still be finished.
 */
struct sample_sink *recorder_sink(struct recorder *recorder);

/*
 * Add a process, at any time before the first sample of its threads, whose process is then
 * *ret_process; PROFILE_NONE beyond RECORDING_MAX_PROCESSES. It is written with that sample. info,
 * with start_ns in CLOCK_MONOTONIC, is copied. A string is dropped if all would exceed
 * RECORDING_MAX_COMMAND_BYTES; names have precedence. Returns 0 or -ENOMEM.
 */
int recorder_add_process(struct recorder *recorder, const struct process_info *info,
			 uint32_t *ret_process);

/*
 * A process ended at end_ns, in CLOCK_MONOTONIC. PROFILE_NONE is ignored. Returns 0; -ENOMEM; the
 * error of a write.
 */
int recorder_end_process(struct recorder *recorder, uint32_t process, uint64_t end_ns);

/*
 * Write the counters at stats with every flush, so that a torn recording has them. stats is
 * borrowed until the next call; NULL: no counters.
 */
void recorder_set_stats(struct recorder *recorder, const struct sampler_stats *stats);

/* Returns the size of the file so far. */
uint64_t recorder_bytes(const struct recorder *recorder);

/*
 * Returns the totals of the samples and of those that the mode shows, as a profile of the
 * recording would have them. Borrowed.
 */
const struct profile_sums *recorder_sums(const struct recorder *recorder);

/*
 * Write everything received until now_ns, so that it can be read, and the state of the run. If
 * run is NULL, the counters of recorder_set_stats() are written instead. Returns 0, -ENOMEM, or
 * the error of a write.
 */
int recorder_flush(struct recorder *recorder, const struct run *run, uint64_t now_ns);

/*
 * Write the rest, the final state of the run and the seek table. Returns 0, -ENOMEM, or the error
 * of a write.
 */
int recorder_finish(struct recorder *recorder, const struct run *run);

/*
 * Write a complete recording of what was received until now_ns to to_fd, and continue. The file
 * of the recorder is flushed first, and read from offset 0 of from_fd. Returns 0, -ENOMEM, or the
 * error of a read or write. An error of to_fd or from_fd leaves the recorder as it was.
 */
int recorder_copy(struct recorder *recorder, const struct run *run, uint64_t now_ns, int from_fd,
		  int to_fd);
