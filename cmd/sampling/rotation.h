/* SPDX-License-Identifier: MIT */
/*
 * Ends a period of a session and begins the next one (--loop), while its sampler continues. A
 * sample belongs to the period in which it arrives. Writing takes place between two ticks; those
 * that are due meanwhile are late, and what arrives in the kernel's buffers waits.
 *
 * A period without samples continues until it has some. If a file cannot be written, that is
 * reported once, it lacks the period's samples, and the next period is tried.
 */
#pragma once

#include "cmd/sampling/session.h"

/* Give the outputs, which are not open, the names of the current period. Returns 0 or -ENOMEM. */
int rotation_name_outputs(struct session *session);

/*
 * Rotate if the period is over or has lost its place, or if is_requested. Call it at every tick
 * of a session with --loop. Returns 0 or -ENOMEM.
 */
int rotation_tick(struct session *session, uint64_t now_ns, bool is_requested);

/*
 * Drop what the sink has collected, and begin a new period at now_ns, in a session without outputs.
 * Returns 0; -ENOMEM; or another errno if there is no place for the recording, which the sink's
 * reason explains then.
 */
int rotation_restart(struct session *session, uint64_t now_ns);

/*
 * After session_finish(), which returned status: count the files of the last period, and print
 * what was written unless the session is quiet. Returns status, or EXIT_ERROR if that is EXIT_OK
 * and a file of an earlier period is missing. Without --loop nothing is done.
 */
enum exit_status rotation_finish(struct session *session, enum exit_status status);
