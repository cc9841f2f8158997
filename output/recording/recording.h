/* SPDX-License-Identifier: MIT */
/*
 * Reads a recording (docs/formats.md). The file is untrusted. Whatever it holds, the reader
 * reports only indices whose definitions it has reported before.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/recording/recording_ops.h"
#include "output/run/run.h"
#include "procmem/message.h"

struct recording;

/*
 * Open the recording in fd, which is borrowed, must be seekable and is read from its beginning.
 * Returns 0; or a negative errno and a sentence with the remedy: -EBADMSG if it is no recording,
 * -EPROTO if its version is newer, the file's error. recording_close() accepts NULL.
 */
int recording_open(int fd, struct recording **ret_recording, struct message *reterr);
void recording_close(struct recording *recording);

/*
 * Returns what the file says of its run: all of it if the recording was finished, else what was
 * known at the last readable flush. Borrowed.
 */
const struct run *recording_run(const struct recording *recording);

/*
 * Returns the processes in the readable part of the file, as known at its end. Their times are
 * CLOCK_REALTIME. Borrowed.
 */
const struct process_rows *recording_processes(const struct recording *recording);

/* What the file says of itself, and how much of it is readable. */
struct recording_about {
	unsigned int version;
	uint64_t epoch_us;	 /* CLOCK_REALTIME when the clock of its ticks was 0 */
	uint64_t nr_zstd_frames; /* readable ones */
	uint64_t nr_samples;	 /* in them */
	uint64_t file_bytes;
	uint32_t nr_seek_rows; /* frames in the seek table at the end; 0 if there is none */
	bool has_end;	       /* the writer finished it */
};

/* Returns this for a recording; borrowed. */
const struct recording_about *recording_about(const struct recording *recording);

/*
 * Whether the recording was not finished or has unreadable bytes at its end; *ret_bytes is
 * their number.
 */
bool recording_is_torn(const struct recording *recording, uint64_t *ret_bytes);

/*
 * Read from the beginning to the end or the tear. May be called again. Returns 0; the result of a
 * call; -ENOMEM; the file's error.
 */
int recording_read(struct recording *recording, const struct recording_ops *ops, void *context);
