/* SPDX-License-Identifier: MIT */
/*
 * System calls in which threads wait: their names, and what their arguments say of what they wait
 * for. The numbers are those of the machine that this is compiled for.
 */
#pragma once

#include <stdint.h>

/* What the arguments (from 0) mean. */
enum call_kind {
	CALL_OTHER,	  /* nothing that is used here */
	CALL_FUTEX,	  /* 0: address; 1: operation; 3: timeout or NULL */
	CALL_DESCRIPTOR,  /* 0: descriptor */
	CALL_POLL,	  /* 0: struct pollfd[]; 1: their number */
	CALL_SELECT,	  /* 0: bits in each set; 1 and 2: sets; 4: timeval or timespec, or NULL */
	CALL_EPOLL,	  /* 0: descriptor of the epoll instance */
	CALL_WAIT4,	  /* 0: process, or not positive */
	CALL_WAITID,	  /* 0: P_PID (1) or another type; 1: process */
	CALL_SLEEP,	  /* 0: struct timespec */
	CALL_CLOCK_SLEEP, /* 0: clock; 1: TIMER_ABSTIME (1) or 0; 2: struct timespec */
	CALL_FLOCK,	  /* 0: descriptor */
	CALL_FCNTL,	  /* 0: descriptor; 1: operation */
};

struct blocking_call {
	const char *name; /* static */
	enum call_kind kind;
};

/* Returns the call with that number, static; NULL if it is not in the table. */
const struct blocking_call *blocking_call_find(int64_t number);
