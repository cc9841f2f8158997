/* SPDX-License-Identifier: MIT */
/*
 * Signal handling. SIGINT, SIGTERM and SIGHUP set the stop flag; SIGUSR1 requests that the outputs
 * be written; SIGUSR2 sets and clears the pause flag; signals can be forwarded to a child. All
 * globals of the program are in signals.c, because a signal handler has no other access to state.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

/* Nonzero once SIGINT, SIGTERM or SIGHUP has requested the end of the work. */
const volatile sig_atomic_t *signals_stop_flag(void);

/*
 * From now on the first of these signals sets the flag and interrupts the waiting call, even the
 * opening of a pipe without a reader; the second one ends the program. A signal that was ignored
 * when the program began stays ignored, as nohup and shells without job control require.
 */
void signals_catch_stops(void);

/* From now on the first signal interrupts no call, so that what is being written is completed. */
void signals_restart_calls(void);

/*
 * From now on SIGUSR1, unless it was ignored when the program began, requests that the outputs be
 * written and the work continue. It ends a sleep, but interrupts no other call.
 */
void signals_catch_write_requests(void);

/* Whether SIGUSR1 has requested that since the last call of this function. */
bool signals_take_write_request(void);

/* Nonzero from a SIGUSR2 to the next one. */
const volatile sig_atomic_t *signals_pause_flag(void);

/*
 * From now on SIGUSR2, unless it was ignored when the program began, sets or clears the pause
 * flag. It ends a sleep, but interrupts no other call.
 */
void signals_catch_pauses(void);

/* Sleep, but not once the stop flag is set: a signal that sets it is never missed. */
void signals_sleep(uint64_t time_ns);

/* From now on a closed pipe or an exceeded file size limit is a write error, not a signal. */
void signals_make_writes_fail(void);

/*
 * From now on SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2, if they are not ignored and
 * another process than pid sends them to us (signals_sent_by_process()), are also sent to our child
 * pid. 0 ends that.
 */
void signals_forward_to(pid_t pid);

/* Set *ret_set to all these signals, except those that are ignored. */
void signals_get_handled(sigset_t *ret_set);

/* Whether number is SIGINT, SIGTERM or SIGHUP. */
bool signals_is_stop(int number);

/*
 * Set the flag for signal number, one of signals_is_stop(). Returns false, and changes nothing, if
 * the same signal came less than 200 ms ago: that is the same request. Async-signal-safe.
 */
bool signals_record_stop(int number);

/*
 * Whether a process sent the signal, which then most likely went to us alone. Signals typed on a
 * terminal come from the kernel, and go to all processes of its foreground group. Source:
 * sigaction(2)
 */
static inline bool signals_sent_by_process(const siginfo_t *info)
{
	return info->si_code <= 0;
}

/* Set or clear the pause flag, as SIGUSR2 does. */
void signals_toggle_pause(void);

/* How a terminal is put back as it was, by a handler too. */
struct signals_terminal {
	int fd;
	struct termios modes;
	char text[256]; /* what is written to it first */
	size_t nr_bytes;
};

/*
 * From now on a signal that ends the program puts the terminal back first, and SIGTSTP and SIGCONT
 * only set flags. terminal is borrowed; NULL ends that. Only one can be guarded.
 */
void signals_guard_terminal(const struct signals_terminal *terminal);

/* Put a terminal back. Async-signal-safe. */
void signals_restore_terminal(const struct signals_terminal *terminal);

/* Whether SIGTSTP has requested a stop, or SIGCONT has ended one, since the last call. */
bool signals_take_suspension(void);
bool signals_take_continuation(void);

/* Stop the program, as SIGTSTP without a handler does. Returns when it is continued. */
void signals_suspend(void);
