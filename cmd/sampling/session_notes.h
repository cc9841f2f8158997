/* SPDX-License-Identifier: MIT */
/* The notes on a session for stderr, and the messages for sessions without a profile. */
#pragma once

#include "cmd/sampling/session.h"

/* Print what is sampled, when sampling begins. Prints nothing with --quiet. */
void session_notes_begin(struct session *session);

/*
 * The next four print each sentence once, of whichever process it is said first. With --quiet they
 * print nothing.
 */

/* Print which C frames are missing, and why. */
void session_notes_native(struct session *session, const struct session_process *process);

/* Print that another engine continues, why, and for racing the remedy. */
void session_notes_change(struct session *session, const struct session_process *process);

/* Print that an engine samples that is not the named one, and why. */
void session_notes_other_engine(struct session *session, const struct session_process *process,
				const struct message *why);

/*
 * Print what must be known of an interpreter that was found; with --verbose also which process or
 * program is sampled now, and how.
 */
void session_notes_found(struct session *session, const struct session_process *process);

/* With --verbose, print which process of the tree is not sampled, and why. */
void session_notes_refused(struct session *session, const struct message *why);

/*
 * Print what was sampled and lost, in one line, and what must be known to read the profile; with
 * --verbose all counters. Prints nothing with --quiet.
 */
void session_notes_end(const struct session *session);

/*
 * Print the size of each file that was written, with --loop those of the last period, and the
 * command that shows it if one is needed. Prints nothing with --quiet.
 */
void session_notes_written(const struct session *session);

/* Set the message for a process whose CPU cannot be taken: one sentence with the remedy. */
void session_explain_no_reach(const struct session *session, const struct session_process *process,
			      struct message *retmessage);

/* Set the message for a run without errors that has no sample: one sentence with the remedy. */
void session_explain_no_sample(const struct session *session, struct message *reterr);

/* Set the message for a run in which no thread matched --thread: its threads. */
void session_explain_no_thread(const struct session *session, struct message *reterr);

/*
 * Set the message for a run whose samples have nothing to show in its mode: one sentence with the
 * remedy.
 */
void session_explain_none_shown(const struct session *session, struct message *reterr);
