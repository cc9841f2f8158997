/* SPDX-License-Identifier: MIT */
/* Writing what was asked for of a session: at its end, and while it goes on. */
#pragma once

#include "cmd/sampling/session.h"

/*
 * Write, in the midst of session_sample(), what there is by now: each file that is replaced as a
 * whole, and of a recording what is not written yet. What is written in place, as stdout and
 * pipes, comes at the end alone. Says so in a line of progress; errors are printed, and the
 * sampling goes on. 0; or a negative errno, that of the recording or -ENOMEM, which ends it.
 */
int session_write_now(struct session *session);

/*
 * Write everything that was asked for and that there is something to say in; with holds_stdout
 * all but what goes to the standard output. status is that of the call before; that, or if it
 * was EXIT_OK that of the writing, after errors were printed.
 */
enum exit_status session_finish(struct session *session, enum exit_status status,
				bool holds_stdout);

/* Behind it, write what was held back; the same. */
enum exit_status session_finish_stdout(struct session *session, enum exit_status status);
