/* SPDX-License-Identifier: MIT */
/*
 * Reads a recording (docs/formats.md). The file is untrusted: whatever it holds, every index
 * that is handed on is one of a definition that was handed on before it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "output/recording/recorded.h"
#include "output/run/run.h"
#include "procmem/message.h"

struct recording;

/*
 * Open the recording in fd, which is borrowed, must be seekable and is read from its
 * beginning. 0; or a negative errno and a sentence with the remedy: no recording (-EBADMSG), of
 * a newer version (-EPROTO), the file's error. recording_close() accepts NULL.
 */
int recording_open(int fd, struct recording **ret_recording, struct message *reterr);
void recording_close(struct recording *recording);

/*
 * What the file says of its run: the whole of it if the recording was finished, else what was
 * known at the last flush that can be read. Borrowed.
 */
const struct run *recording_run(const struct recording *recording);

/* What the file says of itself, and how much of it can be read. */
struct recording_about {
	unsigned int version;
	uint64_t epoch_us;   /* CLOCK_REALTIME when the clock of its ticks was 0 */
	uint64_t nr_frames;  /* that can be read */
	uint64_t nr_samples; /* in them */
	uint64_t file_bytes;
	uint32_t nr_seek_rows; /* frames that the seek table at the end has; 0: there is none */
	bool has_end;	       /* its writer came to the end */
};

/* Borrowed. */
const struct recording_about *recording_about(const struct recording *recording);

/* Whether it was not finished, and of how many bytes at its end nothing can be made. */
bool recording_is_torn(const struct recording *recording, uint64_t *ret_bytes);

/*
 * Read it from its beginning to its end, or to the tear; may be called again. 0; what a call
 * returned; -ENOMEM; the file's error.
 */
int recording_read(struct recording *recording, const struct recording_ops *ops, void *context);
