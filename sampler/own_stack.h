/* SPDX-License-Identifier: MIT */
/*
 * The C stack of one thread: does something lie on it? That tells which thread runs a thread state.
 * A state names the thread that made it, and programs that have CPython in them may run it in another
 * one: PyEval_SaveThread() here, PyEval_RestoreThread() there, PyThreadState_New() for a thread to
 * come. But each call of the interpreter's loop has something of its own on the C stack
 * (frame_list.loop_addr). If what the innermost one has is on the stack of the thread that the state
 * names, only that thread can move the frames that were found: another one that runs the state begins
 * a loop of its own, further in, and cannot end one that it is not in.
 *
 * The stack ends where its thread has its control block, the pthread_t (glibc, musl), that of the
 * main thread where its mapping ends. It reaches down to a page that cannot be read: the C library
 * has at least one between two stacks, the kernel leaves a megabyte below that of the main thread.
 *
 * Source: glibc nptl/allocatestack.c, musl src/thread/pthread_create.c, Linux mm/mmap.c
 * (stack_guard_gap).
 */
#pragma once

#include <stdbool.h>

#include "procmem/memory.h"

/* All zero it is not known, and everything lies on it. */
struct own_stack {
	remote_addr low_addr; /* from here on it is known to be the thread's */
	remote_addr end_addr;
};

/* The stack of a thread with that pthread_t. 0: not known. */
struct own_stack own_stack_of(uint64_t thread_id);

/*
 * Whether addr lies on the stack. What lies deeper than anything that was asked for is looked for
 * through memory page by page, 4 MiB at most in one call: false is "not yet" beyond.
 */
bool own_stack_has(struct own_stack *stack, struct remote_memory *memory, remote_addr addr);
