/* SPDX-License-Identifier: MIT */
/* Writing what was asked for of a session. */
#pragma once

#include "cmd/session.h"

/*
 * Write everything that was asked for and that there is something to say in; with holds_stdout
 * all but what goes to the standard output. status is that of the call before; that, or if it
 * was EXIT_OK that of the writing, after errors were printed.
 */
enum exit_status session_finish(struct session *session, enum exit_status status,
				bool holds_stdout);

/* Behind it, write what was held back; the same. */
enum exit_status session_finish_stdout(struct session *session, enum exit_status status);
