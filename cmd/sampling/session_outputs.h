/* SPDX-License-Identifier: MIT */
/* Writes the outputs of a session, at its end and while it continues. */
#pragma once

#include "cmd/sampling/session.h"

/*
 * Write, during session_sample(), what there is so far: each file that is replaced as a whole,
 * and what is not yet written of a recording. Files that are written in place, such as stdout and
 * pipes, are written only at the end. Prints a line about it in place of the progress; errors are
 * printed, and sampling continues. Returns 0; or a negative errno, that of the recording or
 * -ENOMEM, which ends the sampling.
 */
int session_write_now(struct session *session);

/*
 * Write the outputs, none of which is a stream, from the samples of a period, which part describes.
 * Its recording is ended. Returns EXIT_OK, or EXIT_ERROR after printing errors, unless the outputs
 * are silent.
 */
enum exit_status session_write_period(struct session *session, const struct run *part);

/*
 * Write all outputs that have something to show; with defers_stdout, all except those to stdout.
 * status is that of the previous call. Returns status if it is not EXIT_OK, otherwise the status
 * of the writing, after printing errors.
 */
enum exit_status session_finish(struct session *session, enum exit_status status,
				bool defers_stdout);

/* After session_finish(), write the deferred outputs. Returns as session_finish() does. */
enum exit_status session_finish_stdout(struct session *session, enum exit_status status);
