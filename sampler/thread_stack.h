/* SPDX-License-Identifier: MIT */
/*
 * Finds out whose C stack a call of the interpreter's loop is on, and so which thread runs a
 * thread state. A state names the thread that made it, but programs that embed CPython may run it
 * in another one: PyEval_SaveThread() in one thread, PyEval_RestoreThread() in another, or
 * PyThreadState_New() for a future thread. Each call of the loop leaves an address on the C stack
 * (frame_list.loop_addr). If the innermost one is on the stack of the thread that the state
 * names, only that thread can move the frames that were found: another thread that runs the state
 * begins a loop of its own, further in, and cannot end a loop that it is not in.
 *
 * The stack of a thread is below its pthread_t, where the C library keeps the control block, in
 * the same mapping. Two stacks are separated by an unreadable page, or else by the pthread_t of
 * the lower one. The main thread has "[stack]". A program may also call the loop on memory that
 * is no thread's stack (makecontext(), C++ coroutines); its owner stays unknown.
 *
 * Source: glibc nptl/allocatestack.c, sysdeps/x86_64/nptl/tls.h (tcbhead_t); musl
 * src/thread/pthread_create.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "procmem/maps.h"
#include "procmem/memory.h"

enum stack_owner { STACK_OWN, STACK_FOREIGN, STACK_UNKNOWN };

/* What is known about a thread's stack. */
struct thread_stack {
	remote_addr low_addr, end_addr; /* the stack, or the known part of it */
	/* A different place that was looked up: another thread's stack, or of unknown owner. */
	remote_addr other_low_addr, other_end_addr;
	enum stack_owner other_owner;
	remote_addr pending_addr; /* looked up, and in neither of them; 0: none */
	bool has_unknown_stack;	  /* the loop ran on a stack of unknown owner; there may be many */
	bool has_self_addr;	  /* the thread's control block holds its own address */
};

/* What there is to find an owner with. */
struct stack_context {
	struct remote_memory *memory; /* borrowed, like all pointers here */
	const struct maps *maps;
	const uint64_t *thread_ids; /* the pthread_t of every known thread */
	size_t nr_thread_ids;
	uint64_t main_thread_id; /* the first thread's, which ends no stack; 0: unknown */
};

/* A thread as its state names it. */
struct stack_thread {
	uint64_t thread_id; /* its pthread_t; 0: unknown */
	bool is_main;	    /* it is the first thread of the process */
	bool is_other;	    /* it is not; both false: unknown */
};

/*
 * What the pthread_t of a thread alone says about its stack: the part right below it. thread_id
 * is 0 if it is unknown, or for the first thread.
 */
struct thread_stack thread_stack_of_id(uint64_t thread_id);

/* The first thread's stack, as far as it has grown in these mappings. */
struct thread_stack thread_stack_of_first(const struct maps *maps);

/*
 * The owner of the stack that addr is on. If addr is a little below the known part, the memory
 * between is read, once: the stack is the thread's if there is no other control block in it,
 * provided that control blocks can be recognised. If the owner is still unknown, pending_addr is
 * set to addr.
 */
enum stack_owner thread_stack_owner(struct thread_stack *stack, struct remote_memory *memory,
				    remote_addr addr);

/* Find out whose stack pending_addr is on. */
void thread_stack_resolve(struct thread_stack *stack, const struct stack_thread *thread,
			  const struct stack_context *context);
