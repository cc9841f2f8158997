/* SPDX-License-Identifier: MIT */
/* Drops the capabilities that a session does not need after its set-up. */
#pragma once

#include "cmd/sampling/session.h"

/*
 * Give up, for good, all capabilities except those that reading the target and writing the
 * outputs need. The outputs must be open and the engine chosen. Does nothing unless
 * CAP_SYS_PTRACE is in effect: the target may be readable because we have as many capabilities as
 * it has. With --verbose, prints those that are kept.
 */
void session_drop_rights(struct session *session);
