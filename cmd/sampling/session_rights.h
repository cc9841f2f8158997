/* SPDX-License-Identifier: MIT */
/* What a session may do beyond its user: after its set-up only what is still needed. */
#pragma once

#include "cmd/sampling/session.h"

/*
 * Give up all capabilities but those that reading the target and writing the outputs take, for good;
 * the outputs are open, and the engine is chosen. Who may read the target for another reason than
 * CAP_SYS_PTRACE keeps all: that reason may be that it has as many as the target. With --verbose those that
 * are kept are told.
 */
void session_give_up_rights(struct session *session);
