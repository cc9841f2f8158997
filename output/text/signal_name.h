/* SPDX-License-Identifier: MIT */
/*
 * Names of signals and of their si_code. Source: sigaction(2),
 * include/uapi/asm-generic/siginfo.h.
 */
#pragma once

/* Room for "SIGRTMIN+30". */
#define SIGNAL_NAME_MAX_BYTES 16

/* Write the name of a signal: "SIGSEGV", or "SIG99" for an unknown number. */
void signal_name(int number, char ret_name[SIGNAL_NAME_MAX_BYTES]);

/*
 * Returns the name of a code, "SEGV_MAPERR", which is static; NULL if it is unknown. Equal codes
 * mean different things for different signals.
 */
const char *signal_code_name(int number, int code);

/* Returns its meaning in a few words: "the address is not mapped"; NULL if it is unknown. */
const char *signal_code_text(int number, int code);
