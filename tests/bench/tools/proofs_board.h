/* SPDX-License-Identifier: MIT */
/*
 * Where proofs_target.c announces which of its threads is to be sampled: a file that it and
 * proofs.c map. It is read between looks only. While sequence is odd the thread may have ended, and
 * another one may be being written; what was read while sequence changed may mix two threads.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* The announced thread. */
struct proofs_thread {
	uint64_t program; /* rises with each exec */
	uint64_t tid;
	uint64_t thread_pointer; /* its pthread_t */
	uint64_t counter_addr;	 /* 8 bytes that only this thread increments, in user mode */
	uint64_t payload_addr;	 /* memory to read as well */
	uint64_t payload_bytes;
};

/* All zero: nothing is announced yet. */
struct proofs_board {
	_Atomic uint64_t sequence;
	struct proofs_thread thread;
};
