/* SPDX-License-Identifier: MIT */
/*
 * Signal handling. SIGINT, SIGTERM and SIGHUP set a flag that asks us to stop; SIGUSR1 asks to
 * write what there is; signals can be forwarded to a child. All globals of the program are here,
 * because a signal handler can reach nothing else.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Nonzero once SIGINT, SIGTERM or SIGHUP has asked to finish the work and write what there is. */
const volatile sig_atomic_t *stop_flag(void);

/*
 * From now on the first of these signals sets the flag and interrupts the waiting call, even the
 * opening of a pipe without a reader; the second one ends the program. A signal that was ignored
 * when the program began stays ignored, as nohup and shells without job control require.
 */
void stop_catch_signals(void);

/* From now on the first signal interrupts no call, so that what is being written is completed. */
void stop_let_finish(void);

/*
 * From now on SIGUSR1, unless it was ignored when the program began, asks to write what there is
 * and to continue. It ends a sleep, but interrupts no other call.
 */
void stop_catch_write_requests(void);

/* Whether SIGUSR1 has asked for that since the last call of this function. */
bool stop_take_write_request(void);

/* From now on a closed pipe or an exceeded file size limit is a write error, not a signal. */
void stop_survive_writes(void);

/*
 * From now on SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2, if they are not ignored and
 * another process than pid sends them to us (stop_was_sent()), are also sent to our child pid. 0
 * ends that.
 */
void stop_forward_to(pid_t pid);

/* Set *ret_set to all these signals, except those that are ignored. */
void stop_signals(sigset_t *ret_set);

/* Whether number is SIGINT, SIGTERM or SIGHUP. */
bool stop_is_request(int number);

/*
 * Set the flag for a signal that was received while it was blocked. Returns false, and changes
 * nothing, if the same signal came less than 200 ms ago: that is the same request.
 */
bool stop_record_request(int number);

/*
 * Whether a process sent the signal, which then most likely went to us alone. Signals typed on a
 * terminal come from the kernel, and go to all processes of its foreground group. Source:
 * sigaction(2)
 */
static inline bool stop_was_sent(const siginfo_t *info)
{
	return info->si_code <= 0;
}
