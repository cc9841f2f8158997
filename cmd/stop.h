/* SPDX-License-Identifier: MIT */
/* The stop flag, the one global of the program, and the signals that set it. */
#pragma once

#include <signal.h>

/* Not 0 once SIGINT, SIGTERM or SIGHUP asked to finish the work and write what there is. */
const volatile sig_atomic_t *stop_flag(void);

/*
 * From now on the first of those signals sets the flag and interrupts the call that waits, be
 * it the opening of a pipe that nobody reads; the second one ends the program. One that was
 * ignored when the program began stays so, as nohup and shells without job control ask for it.
 */
void stop_catch_signals(void);

/* From now on the first signal interrupts no call any more: what is being written gets whole. */
void stop_let_finish(void);

/* From now on a closed pipe and a limit of file size are errors of the write, not our end. */
void stop_survive_writes(void);
