/* SPDX-License-Identifier: MIT */
/* What is told of a session, on stderr and beside the profile. */
#pragma once

#include "cmd/sampling/session.h"

/* What is sampled, when it begins. Nothing with --quiet. */
void session_notes_begin(const struct session *session);

/* What cannot be told of C frames, and why. Nothing with --quiet. */
void session_notes_natives(const struct session *session);

/* That another engine goes on, why, and, if that is racing, the remedy. Nothing with --quiet. */
void session_notes_change(const struct session *session);

/* With --verbose what program of the process is sampled now, and how. */
void session_notes_followed(const struct session *session);

/*
 * What there is and what was lost, in one line, and what has to be known to read the
 * profile; with --verbose all counters. Nothing with --quiet.
 */
void session_notes_end(const struct session *session);

/* When all is written: how large a recording is, and what shows the first file that needs it. */
void session_notes_written(const struct session *session);

/* Why a run that went well has no sample: one sentence with the remedy. */
void session_explain_no_sample(const struct session *session, struct message *reterr);

/* Why a run with samples has nothing to show in its mode: one sentence with the remedy. */
void session_explain_none_shown(const struct session *session, struct message *reterr);
