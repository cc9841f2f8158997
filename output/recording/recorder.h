/* SPDX-License-Identifier: MIT */
/*
 * Writes a recording (docs/formats.md): a sample sink that keeps every sample, in a file that
 * can be read up to its last flush, whatever becomes of the writer. A flush is at least once a
 * second as long as ticks come.
 *
 * Memory is bounded: when its tables are full it begins new ones, and the file says so. Threads
 * are not forgotten: with RECORDING_MAX_THREADS of them a recording is full.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "output/run/run.h"
#include "sampler/sample.h"

struct recorder; /* a struct sample_sink */

/*
 * Begin a recording in fd, which is borrowed and written from where it stands; run is what is
 * known of the run so far, and not kept. 0; -ENOMEM; the error of the write. recorder_destroy()
 * accepts NULL and writes nothing.
 */
int recorder_create(int fd, const struct run *run, struct recorder **ret_recorder);
void recorder_destroy(struct recorder *recorder);

/*
 * The sink to hand to a sampler; borrowed from recorder. Its calls return 0, -ENOMEM, or the
 * error of a write as negative errno; what was flushed before that can be read. -E2BIG: the
 * recording has no place for a thread more; it can be finished.
 */
struct sample_sink *recorder_sink(struct recorder *recorder);

/*
 * Add a process: threads whose samples begin from now on are its own. command_line, NULL if
 * not known, is copied, or left out where all that there were have RECORDING_MAX_COMMAND_BYTES.
 * 0; -ENOMEM; the error of a write; -E2BIG: there are RECORDING_MAX_PROCESSES.
 */
int recorder_add_process(struct recorder *recorder, pid_t pid, const char *command_line);

/* What follows is another sampler's, whose ids mean other functions and threads. */
void recorder_change_sampler(struct recorder *recorder);

/*
 * Have the counters at stats in every flush, so that a recording that was torn has them; they
 * are borrowed until this is called again. NULL: none.
 */
void recorder_watch(struct recorder *recorder, const struct sampler_stats *stats);

/* Bytes of the file so far. */
uint64_t recorder_bytes(const struct recorder *recorder);

/*
 * What was taken in, and the sums of what mode shows of it, as a profile of it would have.
 * Borrowed.
 */
const struct profile_sums *recorder_sums(const struct recorder *recorder);

/*
 * Write what is not written yet, so that all that came until now_ns can be read, and what there
 * is to say of the run by now; NULL: the counters that are watched. 0, -ENOMEM, or the error of
 * a write.
 */
int recorder_flush(struct recorder *recorder, const struct run *run, uint64_t now_ns);

/*
 * Write what is not written yet, what there is to say of the run now that it is over, and the
 * table of contents. 0, -ENOMEM, or the error of a write.
 */
int recorder_finish(struct recorder *recorder, const struct run *run);
