/* SPDX-License-Identifier: MIT */
/*
 * The signals that ask us to stop, SIGINT, SIGTERM and SIGHUP, and the flag that they set; the
 * one that asks to write what there is, SIGUSR1; and whom signals are passed on to. The globals
 * of the program are here: a handler knows no others.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Not 0 once one of those signals asked to finish the work and write what there is. */
const volatile sig_atomic_t *stop_flag(void);

/*
 * From now on the first of those signals sets the flag and interrupts the call that waits, be
 * it the opening of a pipe that nobody reads; the second one ends the program. One that was
 * ignored when the program began stays so, as nohup and shells without job control ask for it.
 */
void stop_catch_signals(void);

/* From now on the first signal interrupts no call any more: what is being written gets whole. */
void stop_let_finish(void);

/*
 * From now on SIGUSR1, unless it was ignored when the program began, asks to write what there is
 * and to go on. It ends a sleep, and interrupts no other call.
 */
void stop_catch_write_requests(void);

/* Whether that was asked for since this was called last. */
bool stop_take_write_request(void);

/* From now on a closed pipe and a limit of file size are errors of the write and no signals. */
void stop_survive_writes(void);

/*
 * From now on each of those signals, and of SIGQUIT, SIGUSR1 and SIGUSR2, that is sent to us
 * (stop_was_sent()) and not ignored is sent to the process pid, our child, too. 0: to nobody
 * any more.
 */
void stop_pass_on_to(pid_t pid);

/* All the signals that are, but those that are ignored. */
void stop_signals(sigset_t *ret_set);

/* Whether the number is one of SIGINT, SIGTERM and SIGHUP. */
bool stop_is_asked_by(int number);

/*
 * Whether a process sent it, to us alone as far as can be told: the kernel sends those that are
 * typed on a terminal, to all processes of the terminal's foreground group. sigaction(2)
 */
static inline bool stop_was_sent(const siginfo_t *info)
{
	return info->si_code <= 0;
}
