/* SPDX-License-Identifier: MIT */
/*
 * What signals and their si_code are called. Source: sigaction(2),
 * include/uapi/asm-generic/siginfo.h.
 */
#pragma once

/* Room for "SIGRTMIN+30". */
#define SIGNAL_NAME_MAX_BYTES 16

/* "SIGSEGV"; "SIG99" of what is none. */
void signal_name(int number, char ret_name[SIGNAL_NAME_MAX_BYTES]);

/*
 * "SEGV_MAPERR", static; NULL if it is not known. The same code means another thing with each
 * signal.
 */
const char *signal_code_name(int number, int code);

/* What that means, a few words: "the address is not mapped"; NULL if it is not known. */
const char *signal_code_text(int number, int code);
